"""Read the names and values of features; errors for everything that is neither."""

import datetime
import decimal
from collections.abc import Mapping

import numpy as np

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsDouble, PyLong_Check, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_Check, PyUnicode_CheckExact
from libc.math cimport isfinite, isnan
from libc.stdint cimport int64_t

from varifold.errors import DataError, FeatureNameError, FeatureValueError

cdef tuple NUMPY_SCALARS = (np.float64, np.float32, np.int64, np.int32, np.bool_, np.float16, np.int16, np.int8, np.uint64,
                            np.uint32, np.uint16, np.uint8)


cdef object name_error(object name, int64_t step):
    return FeatureNameError(
        f"feature name {name!r} is of type {type(name).__name__} at step {step:,}; "
        "use a str or an int as the key"
    )


cdef object conflict_error(object name, int64_t step):
    return FeatureNameError(
        f"feature {name!r} at step {step:,} is both a feature and the indicator of a string value; "
        "rename one of the two"
    )


cdef object repeated_error(object name, int64_t step):
    return FeatureNameError(
        f"feature {name!r} is given twice at step {step:,}, by keys that differ although they are the same name; "
        "use exact str or int keys"
    )


cdef object value_error(object name, object value, int64_t step):
    if isinstance(value, (float, int, decimal.Decimal, np.generic)):
        if isinstance(value, int) and not isinstance(value, bool):
            shown = "an int too large for a float"
        else:
            shown = f"{value!r} of type {type(value).__name__}"
        if not isinstance(value, (int, np.complexfloating, np.datetime64, np.timedelta64, np.bytes_, np.void)):
            try:
                shown = "-inf" if value < 0 else "inf"
            except TypeError:
                pass  # no number: its type is named
        return FeatureValueError(
            f"feature {name!r} is {shown} at step {step:,}; drop the key or pass None for \"not observed\""
        )
    shown = repr(value)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return FeatureValueError(
            f"feature {name!r} is {shown} of type {type(value).__name__} at step {step:,}; pass the parts that "
            "matter as features, such as the hour as a number and the weekday as a str, or read the data with "
            f"varifold.streams.read(..., dates={{{name!r}: ['hour', 'weekday']}})"
        )
    return FeatureValueError(
        f"feature {name!r} is {shown} of type {type(value).__name__} at step {step:,}; "
        "pass a number, a bool, a str (a category), or None for \"not observed\""
    )


cdef int check_size(object name, int64_t step) except -1:
    """Reject an int that has too many digits for a file; Python writes no text of it either."""
    if PyLong_CheckExact(name) and name.bit_length() > MOST_BITS:
        raise FeatureNameError(f"a feature name at step {step:,} is an int of {name.bit_length():,} bits; use ints of at "
                               f"most {MOST_BITS:,} bits, or a str")
    return 0


cdef str plain_text(object text):
    """Return the exact str of a str or a subclass, whose own __str__ may differ, as that of an Enum."""
    return <str> text if PyUnicode_CheckExact(text) else str.__str__(text)


cdef object canonical_name(object name):
    """Return the exact str or int of a name, or None if it is neither."""
    if PyUnicode_CheckExact(name):
        return name
    if PyLong_CheckExact(name):
        check_size(name, 1)
        return name
    if PyUnicode_Check(name):
        return plain_text(name)
    if PyBool_Check(name) or isinstance(name, np.bool_):
        return None
    if PyLong_Check(name) or isinstance(name, np.integer):
        exact = int(name)
        check_size(exact, 1)
        return exact
    return None


cdef bint is_numpy_scalar(PyObject* value) noexcept:
    """Return whether the type of a value is exactly one of NumPy's numbers."""
    kind = type(<object> value)
    for known in NUMPY_SCALARS:
        if known is kind:
            return True
    return False


cdef dict plain_dict(object x, int64_t step):
    """Return a mapping of names to values as a dict."""
    if not isinstance(x, Mapping) and not hasattr(x, "keys"):
        raise DataError(f"the instance at step {step:,} is of type {type(x).__name__}; pass a mapping of feature names to "
                        "values, such as a dict, or many at once to learn_many")
    return dict(x)


cdef int read_other(object value, double* out) except -3:
    """Read what is not an exact float: bool, int, None, str, NumPy scalars, Decimal, the NA of pandas."""
    if value is None:
        return ABSENT
    if PyUnicode_Check(value):
        return LEVEL
    if PyLong_Check(value):
        try:
            out[0] = PyLong_AsDouble(value)
        except OverflowError:
            return BAD
    elif isinstance(value, np.generic):
        if isinstance(value, (np.datetime64, np.timedelta64)):  # the latter is an integer to NumPy
            return ABSENT if np.isnat(value) else BAD
        if isinstance(value, (np.floating, np.integer, np.bool_)):
            out[0] = float(value)
        else:
            return BAD
    elif isinstance(value, (float, decimal.Decimal)):
        if isinstance(value, decimal.Decimal) and value.is_snan():
            return ABSENT
        out[0] = float(value)
    elif type(value).__name__ in ("NAType", "NaTType"):
        return ABSENT
    else:
        return BAD
    if isfinite(out[0]):
        return NUMBER
    return ABSENT if isnan(out[0]) else BAD


cdef int read_value(PyObject* value, double* out) except -3:
    """Read a value: its kind (see Read), and the clamped number of a NUMBER."""
    cdef int found
    if PyFloat_CheckExact(<object> value):
        out[0] = PyFloat_AS_DOUBLE(<object> value)
        if isfinite(out[0]):
            found = NUMBER
        else:
            return ABSENT if isnan(out[0]) else BAD
    else:
        found = read_other(<object> value, out)
    if found == NUMBER:
        if out[0] > LARGEST:
            out[0] = LARGEST
        elif out[0] < -LARGEST:
            out[0] = -LARGEST
    return found
