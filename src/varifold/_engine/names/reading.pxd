from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int64_t

cdef extern from "Python.h":
    bint PyBool_Check(object) noexcept

cdef extern from "varifold/_engine/constants.h":
    const double LARGEST "VARIFOLD_LARGEST"   # larger magnitudes are clamped to it, since their squares overflow

cdef enum:
    MOST_BITS = 2000   # of an int that is a name or a label; Python writes no text of much larger ones

# The kind of a value that was read.
cdef enum Read:
    BAD = -1
    ABSENT = 0
    NUMBER = 1
    LEVEL = 2

cdef bint is_numpy_scalar(PyObject* value) noexcept
cdef str plain_text(object text)
cdef int check_size(object name, int64_t step) except -1
cdef object canonical_name(object name)
cdef dict plain_dict(object x, int64_t step)
cdef int read_value(PyObject* value, double* out) except -3
cdef object name_error(object name, int64_t step)
cdef object value_error(object name, object value, int64_t step)
cdef object conflict_error(object name, int64_t step)
cdef object repeated_error(object name, int64_t step)


cdef inline bint runs_no_code(PyObject* key, PyObject* value) noexcept:
    """Return whether reading this pair cannot run code of the caller, which might change the dict meanwhile."""
    if not (PyUnicode_CheckExact(<object> key) or PyLong_CheckExact(<object> key)):
        return False
    if (PyFloat_CheckExact(<object> value) or PyUnicode_CheckExact(<object> value) or PyLong_CheckExact(<object> value)
            or <object> value is None or PyBool_Check(<object> value)):
        return True
    return is_numpy_scalar(value)


cdef inline int quick_read(PyObject* value, double* out) except -3:
    """Do read_value(), with an ordinary float in line."""
    if PyFloat_CheckExact(<object> value):
        out[0] = PyFloat_AS_DOUBLE(<object> value)
        if -LARGEST <= out[0] <= LARGEST:
            return NUMBER
    return read_value(value, out)
