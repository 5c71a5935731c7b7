"""Parse numbers and labels from text."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.math cimport INFINITY, NAN, isinf, isnan
from libc.stdint cimport uint64_t

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* s, char** end, PyObject* overflow) except? -1.0


cdef int long_number(const char* s, Py_ssize_t n, char decimal, double* out) except -1:
    """Read a number of any length with Python's own float()."""
    cdef char* copy = <char*> PyMem_Malloc(n + 1)
    cdef char* end = NULL
    cdef Py_ssize_t i
    if copy == NULL:
        raise MemoryError
    try:
        for i in range(n):
            copy[i] = 46 if s[i] == decimal else s[i]
        copy[n] = 0
        out[0] = PyOS_string_to_double(copy, &end, NULL)
        return 1 if end == copy + n else 0
    except ValueError:
        return 0
    finally:
        PyMem_Free(copy)


cdef int word_number(const char* s, Py_ssize_t n, bint negative, double* out) except -1:
    """Read nan, inf or infinity in any case; return 0 for other words."""
    cdef bytes word
    if n != 3 and n != 8:
        return 0
    word = PyBytes_FromStringAndSize(s, n).lower()
    if word == b"nan":
        out[0] = NAN
        return 1
    if word == b"inf" or word == b"infinity":
        out[0] = -INFINITY if negative else INFINITY
        return 1
    return 0


cdef inline bint read_exponent(const char* s, Py_ssize_t n, Py_ssize_t i, int* out) noexcept nogil:
    """Read the exponent from s[i], the e, to the end; return False if it is not one."""
    cdef int e = 0
    cdef bint negative = False
    if s[i] != 101 and s[i] != 69:
        return False
    i += 1
    if i < n and (s[i] == 45 or s[i] == 43):
        negative = s[i] == 45
        i += 1
    if i == n:
        return False
    while i < n:
        if not 48 <= s[i] <= 57:
            return False
        if e < 100000:
            e = 10 * e + (s[i] - 48)
        i += 1
    out[0] = -e if negative else e
    return True


cdef inline Py_ssize_t group_mark(const char* s, Py_ssize_t n, char thousands) noexcept nogil:
    """Return the length of the separator of thousands at s, 0 if there is none.

    A space may be a no-break space (U+00A0), a narrow one (U+202F) or a thin one (U+2009), an apostrophe U+2019.
    """
    cdef unsigned char first = s[0]
    if s[0] == thousands:
        return 1
    if thousands == 32:
        if first == 0xC2:
            return 2 if n > 1 and <unsigned char> s[1] == 0xA0 else 0
        if first == 0xE2 and n > 2 and <unsigned char> s[1] == 0x80:
            return 3 if <unsigned char> s[2] == 0xAF or <unsigned char> s[2] == 0x89 else 0
    elif thousands == 39 and first == 0xE2 and n > 2:
        return 3 if <unsigned char> s[1] == 0x80 and <unsigned char> s[2] == 0x99 else 0
    return 0


cdef int read_number(const char* s, Py_ssize_t n, char decimal, char thousands, double* out) except -1:
    """Read a number: the first group has one to three digits, all others three; no group follows the decimal."""
    cdef char[64] plain
    cdef Py_ssize_t i, length = 0, digits = 0, mark, skipped = 0
    cdef bint grouped = False, whole = True
    if thousands == 0 or n > 64:
        return read_plain(s, n, decimal, out)
    for i in range(n):
        if skipped:
            skipped -= 1
            continue
        mark = group_mark(s + i, n - i, thousands) if whole else 0
        if mark:
            if digits == 0 or digits > 3 or (grouped and digits != 3):
                return 0
            grouped, digits, skipped = True, 0, mark - 1
            continue
        if whole and 48 <= s[i] <= 57:
            digits += 1
        elif i or (s[i] != 45 and s[i] != 43):
            if grouped and whole and digits != 3:
                return 0
            whole = False
        plain[length] = s[i]
        length += 1
    if grouped and whole and digits != 3:
        return 0
    return read_plain(plain, length, decimal, out)


cdef int read_plain(const char* s, Py_ssize_t n, char decimal, double* out) except -1:
    """Read a number without groups. Most numbers need only their digits and a power of ten."""
    cdef Py_ssize_t i = 0
    cdef bint negative = False, point = False, any_digit = False
    cdef int digits = 0, exponent = 0, shift = 0
    cdef uint64_t m = 0
    cdef char c
    if n == 0:
        return 0
    if s[0] == 45 or s[0] == 43:
        negative = s[0] == 45
        i = 1
    if i < n and s[i] > 57:
        return word_number(s + i, n - i, negative, out)
    while i < n:
        c = s[i]
        if 48 <= c <= 57:
            any_digit = True
            if m or c != 48:
                digits += 1
                if digits > 19:
                    return long_number(s, n, decimal, out)
                m = 10 * m + <uint64_t> (c - 48)
            shift += point
        elif c == decimal and not point:
            point = True
        else:
            break
        i += 1
    if not any_digit or (i < n and not read_exponent(s, n, i, &exponent)):
        return 0
    if m == 0:
        out[0] = 0.0
    elif not scaled(m, exponent - shift, out):
        return long_number(s, n, decimal, out)
    if negative:
        out[0] = -out[0]
    return 1


cdef inline char character(str given) except? 0:
    """Return a separator as a byte, 0 where there is none."""
    return <char> ord(given) if given else 0


def parse_number(str text, str decimal=".", str thousands=""):
    """Return the number that a text spells (also NaN and inf), or None."""
    cdef double x = 0.0
    cdef bytes data = text.encode("utf-8", "surrogatepass")
    cdef const char* s = data
    return x if read_number(s, len(data), character(decimal), character(thousands), &x) else None


def not_numbers(list cells, str decimal="."):
    """Return the texts among the cells that spell no number."""
    return [text for text in cells if parse_number(text, decimal) is None]


def label_of(bytes text, str decimal=".", str thousands=""):
    """Return a label: a number where the text spells a finite one (an int if it is whole), else the text."""
    cdef double x = 0.0
    cdef const char* s = text
    if (read_number(s, len(text), character(decimal), character(thousands), &x)
            and not isnan(x) and not isinf(x)):
        return int(x) if x == int(x) else x
    return text.decode()
