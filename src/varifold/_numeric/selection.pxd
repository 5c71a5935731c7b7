"""Find the k-th smallest number without sorting (Hoare's selection)."""

cdef inline double select(double* numbers, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Return the k-th smallest of n numbers, k from 0, in place; the numbers before position k are then not larger."""
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
