"""The k-th of some numbers without sorting them (Hoare's selection)."""

cdef inline double select(double* numbers, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """The number that is k-th of n when sorted, counted from 0; those before it in the array are not larger."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef double pivot, kept
    while low < high:
        pivot = numbers[(low + high) >> 1]
        i = low
        j = high
        while i <= j:
            while numbers[i] < pivot:
                i += 1
            while numbers[j] > pivot:
                j -= 1
            if i <= j:
                kept = numbers[i]
                numbers[i] = numbers[j]
                numbers[j] = kept
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return numbers[k]
