"""Ids of a stream's names and codes of its labels, shared by its blocks."""

import numpy as np

from cpython.bool cimport PyBool_Check
from cpython.bytes cimport PyBytes_Check
from cpython.float cimport PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.tuple cimport PyTuple_Check
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport int32_t

from varifold._engine.names.table cimport INDICATOR, NameTable
from varifold._engine.names.reading cimport MOST_BITS, canonical_name, conflict_error, name_error, plain_text
from varifold.errors import DataError, LabelError

DEEPEST_LABEL = 20
"""Maximum number of tuples within one another in a label."""


cdef class Vocabulary(NameTable):
    """Name -> id, shared by the blocks of one stream; ids are never reused."""

    def add(self, name):
        """Return the id of a feature with numbers, new or known."""
        canonical = canonical_name(name)
        if canonical is None:
            raise name_error(name, 1)
        i = self.ensure_numeric(canonical)
        if i < 0:
            raise conflict_error(name, 1)
        return i

    def add_level(self, column, level):
        """Return the id of the indicator 'column=level', new or known."""
        canonical = canonical_name(column)
        if canonical is None:
            raise name_error(column, 1)
        i = self.ensure_level(canonical, str(level))
        if i < 0:
            raise conflict_error(f"{column}={level}", 1)
        return i

    cdef int check_id(self, Py_ssize_t i) except -1:
        if not 0 < i < self.size or self.key[i] == NULL:
            raise IndexError(f"no name has id {i}")
        return 0

    def is_indicator(self, Py_ssize_t i):
        """Return whether an id is that of a string value of a column."""
        self.check_id(i)
        return bool(self.kind[i] & INDICATOR)

    def column_array(self):
        """Return column id by id, as an int32 array; masks that work on columns use it."""
        out = np.empty(self.size, dtype=np.int32)
        cdef int32_t[::1] column = out
        cdef Py_ssize_t i
        for i in range(self.size):
            column[i] = self.column[i]
        return out

    def level_of(self, Py_ssize_t i):
        """Return (column name, level) of an indicator id."""
        self.check_id(i)
        if not self.kind[i] & INDICATOR:
            raise ValueError(f"id {i} is the feature {<object> self.key[i]!r}, not the string value of a column")
        column_name = <object> self.key[self.column[i]]
        return column_name, (<object> self.key[i])[len(str(column_name)) + 1:]

    def __reduce__(self):
        return _restore_vocabulary, self.dump()


def _restore_vocabulary(names, kinds, columns, free_ids):
    v = Vocabulary()
    v.fill(names, kinds, columns, free_ids)
    return v


cdef class Labels:
    """Label -> code in order of first occurrence; shared by the blocks of one stream."""

    def __cinit__(self, values=()):
        self.items = []
        self.index = {}
        for y in values:
            self.code(y)

    @property
    def values(self):
        """Labels by code, as a new list."""
        return list(self.items)

    def code(self, y):
        """Return the code of a label, new or known."""
        y = plain_label(y)
        found = self.index.get(y)
        if found is None:
            found = len(self.items)
            self.index[y] = found
            self.items.append(y)
        return found

    def __len__(self):
        return len(self.items)

    def __reduce__(self):
        return Labels, (self.items,)


def clear_labels(Labels labels):
    """Forget all labels of a stream whose blocks need them no more: existing codes become invalid."""
    labels.items.clear()
    labels.index.clear()


def is_missing(y):
    """Return whether a label or a value is None, NaN, NaT or pandas' NA."""
    if y is None or type(y).__name__ in ("NAType", "NaTType"):  # NA has no truth value, and pandas may not be installed
        return True
    if hasattr(y, "as_py"):  # a scalar of Arrow
        return is_missing(y.as_py())
    try:
        return bool(y != y)
    except (TypeError, ValueError):  # an array has no truth value
        return False
    except ArithmeticError:  # a Decimal that is a signalling NaN
        return True


def plain_label(y, step=None):
    """Return a label as a plain Python object; reject missing and unhashable ones.

    A str, number, bytes or tuple is exact: a subclass may compare or hash otherwise from one call to the next.
    """
    where = "" if step is None else f" at step {step:,}"
    if isinstance(y, np.generic):
        y = y.item()
    elif hasattr(y, "as_py"):  # a scalar of Arrow, which equals no value of Python
        y = y.as_py()
    if isinstance(y, str):
        return plain_text(y)
    if is_missing(y):
        raise LabelError(f"the label is {y!r}{where}, which means that there is none")
    try:
        hash(y)
    except TypeError:
        raise LabelError(f"the label {y!r}{where} is of type {type(y).__name__}, which cannot be hashed; "
                         "use a str, a number, a bool or a tuple") from None
    return _exact(y, 0)


cdef object _exact(object y, int depth):
    """Return the plain value of a str, number, bytes or tuple, or of a subclass; other objects stay as they are."""
    if depth > DEEPEST_LABEL:
        raise LabelError(f"the label has more than {DEEPEST_LABEL} tuples within one another; use fewer")
    if PyUnicode_Check(y):
        return plain_text(y)
    if PyBool_Check(y):
        return y
    if PyLong_Check(y):
        whole = int.__int__(y)
        if whole.bit_length() > MOST_BITS:  # too many digits for a file, and for repr()
            raise LabelError(f"a label is an int of {whole.bit_length():,} bits; use ints of at most {MOST_BITS:,} bits")
        return whole
    if PyFloat_Check(y):
        return float.__float__(y)
    if PyBytes_Check(y):
        return b"".join((y,))
    if PyTuple_Check(y):
        return tuple([_exact(part, depth + 1) for part in tuple.__iter__(y)])
    return y


def encode_labels(y, Labels labels, Py_ssize_t n, weights=None):
    """Return the label codes of a sequence (None: no labels at all), -1 where a label is missing.

    Of equal labels (1 and True) the first is kept; one of weight 0, which is never learned, only if there is no other.
    """
    if y is None:
        return np.full(n, -1, dtype=np.int32)
    if hasattr(y, "tolist"):
        y = y.tolist()
    elif hasattr(y, "to_list"):
        y = y.to_list()
    y = list(y)
    if len(y) != n:
        raise DataError(f"{len(y)} labels for {n} instances")
    known = labels.index
    codes = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] out = codes
    cdef Py_ssize_t i
    for i in range(n) if weights is None else np.argsort(weights == 0.0, kind="stable").tolist():
        try:
            code = known.get(y[i])
        except TypeError:
            code = None
        if code is None and is_missing(y[i]):
            code = -1
        elif code is None:
            plain_label(y[i], i + 1)
            code = labels.code(y[i])
        out[i] = code
    return codes
