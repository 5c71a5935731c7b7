"""Blocks: many instances as CSR over a vocabulary that only grows."""

import numpy as np

from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from cpython.long cimport PyLong_CheckExact
from libc.math cimport isfinite, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc

from varifold._engine.names cimport (
    ABSENT, BAD, COLUMN, INDICATOR, LEVEL, NUMBER, NUMERIC, NameTable, canonical_name, conflict_error, name_error,
    plain_dict, quick_read, value_error,
)
from varifold.errors import DataError, FeatureValueError, LabelError

cdef double LARGEST = 1e150


cdef class Vocabulary(NameTable):
    """Name -> id, shared by the blocks of one stream; ids are never given up."""

    def add(self, name):
        """The id of a feature that carries numbers, new or known."""
        canonical = canonical_name(name)
        if canonical is None:
            raise name_error(name, 1)
        i = self.ensure_numeric(canonical)
        if i < 0:
            raise conflict_error(name, 1)
        return i

    def add_level(self, column, level):
        """The id of the indicator 'column=level', new or known."""
        canonical = canonical_name(column)
        if canonical is None:
            raise name_error(column, 1)
        i = self.ensure_level(canonical, str(level))
        if i < 0:
            raise conflict_error(f"{column}={level}", 1)
        return i

    def is_indicator(self, Py_ssize_t i):
        """Whether an id stands for a string value of a column."""
        return bool(self.kind[i] & INDICATOR)

    def column_array(self):
        """Column id by id, as an int32 array; masks that work on columns use it."""
        out = np.empty(self.size, dtype=np.int32)
        cdef int32_t[::1] column = out
        cdef Py_ssize_t i
        for i in range(self.size):
            column[i] = self.column[i]
        return out

    def level_of(self, Py_ssize_t i):
        """(column name, level) of an indicator id."""
        column_name = <object> self.key[self.column[i]]
        return column_name, (<object> self.key[i])[len(str(column_name)) + 1:]

    def __reduce__(self):
        return _restore_vocabulary, self.dump()


def _restore_vocabulary(names, kinds, columns, free_ids):
    v = Vocabulary()
    v.fill(names, kinds, columns, free_ids)
    return v


cdef class Labels:
    """Label -> code in order of first sight; shared by the blocks of one stream."""

    def __cinit__(self, values=()):
        self.values = []
        self.index = {}
        for y in values:
            self.code(y)

    def code(self, y):
        """The code of a label, new or known."""
        y = plain_label(y)
        found = self.index.get(y)
        if found is None:
            found = len(self.values)
            self.index[y] = found
            self.values.append(y)
        return found

    def __len__(self):
        return len(self.values)

    def __reduce__(self):
        return Labels, (self.values,)


def plain_label(y, step=None):
    """A label as a plain Python object; missing and unhashable ones are refused."""
    if isinstance(y, np.generic):
        y = y.item()
    where = "" if step is None else f" at step {step:,}"
    try:
        hash(y)
    except TypeError:
        raise LabelError(f"the label {y!r}{where} is of type {type(y).__name__}, which cannot be hashed; "
                         "use a str, a number, a bool or a tuple") from None
    if y is None or y != y:
        raise LabelError(f"the label is {y!r}{where}; learn only instances whose label is known")
    return y


cdef class Block:
    """Instances in CSR form: ``indptr``, vocabulary ``indices``, ``values``, label ``codes``, ``weights``.

    Absent features are simply not stored; a stored 0.0 is an observed zero. Rows hold each id at most once.
    """

    def __init__(self, Vocabulary vocabulary, indptr, indices, values, codes=None, Labels labels=None, weights=None):
        self.vocabulary = vocabulary
        self.labels = Labels() if labels is None else labels
        self.indptr = np.ascontiguousarray(indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(indices, dtype=np.int32)
        self.values = np.ascontiguousarray(values, dtype=np.float64)
        n = len(self.indptr) - 1
        self.codes = np.full(n, -1, dtype=np.int32) if codes is None else np.ascontiguousarray(codes, dtype=np.int32)
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        if n < 0 or self.indptr[0] != 0 or self.indptr[n] != len(self.indices) or len(self.values) != len(self.indices):
            raise DataError("indptr, indices and values do not fit together")
        if len(self.codes) != n:
            raise DataError(f"{len(self.codes)} labels for {n} instances")
        if self.weights is not None:
            check_weights(self.weights, n)
        if len(self.indices) and not (0 < self.indices.min() and self.indices.max() < vocabulary.size):
            raise DataError("an index lies outside the vocabulary")
        check_values(self)

    @staticmethod
    def from_dicts(rows, y=None, w=None, Vocabulary vocabulary=None, Labels labels=None):
        """From an iterable of instances, each a dict; y and w are sequences of the same length."""
        if vocabulary is None:
            vocabulary = Vocabulary()
        builder = Builder(vocabulary)
        for x in rows:
            builder.add(x)
        return builder.finish(y, w, labels)

    @property
    def n(self):
        """Number of instances."""
        return len(self.indptr) - 1

    def __len__(self):
        return len(self.indptr) - 1

    @property
    def y(self):
        """Labels as a list, None where there is none."""
        values = self.labels.values
        return [values[c] if c >= 0 else None for c in self.codes.tolist()]

    def row(self, Py_ssize_t i, bint indicators=False):
        """Instance i as a dict; string values as such, or as indicators 'column=level': 1.0."""
        cdef Py_ssize_t k
        if not 0 <= i < len(self):
            raise IndexError(f"no instance {i} in a block of {len(self)}")
        x = {}
        lo, hi = int(self.indptr[i]), int(self.indptr[i + 1])
        for j, value in zip(self.indices[lo:hi].tolist(), self.values[lo:hi].tolist()):
            k = j
            if self.vocabulary.kind[k] & INDICATOR and not indicators:
                if value != 0.0:
                    column, level = self.vocabulary.level_of(k)
                    x[column] = level
            else:
                x[<object> self.vocabulary.key[k]] = value
        return x

    def rows(self, bint indicators=False):
        """Instances as dicts, in order."""
        for i in range(len(self)):
            yield self.row(i, indicators)

    def take(self, rows):
        """The instances at these positions, in this order, over the same vocabulary."""
        cdef Py_ssize_t i, k, r
        cdef int64_t a, b, p
        cdef int64_t[::1] pick = np.ascontiguousarray(rows, dtype=np.int64)
        cdef const int64_t[::1] ptr = self.indptr
        cdef const int32_t[::1] idx = self.indices
        cdef const double[::1] val = self.values
        indptr = np.zeros(len(pick) + 1, dtype=np.int64)
        cdef int64_t[::1] out_ptr = indptr
        cdef Py_ssize_t n = len(self.indptr) - 1
        for i in range(pick.shape[0]):
            r = pick[i]
            if not 0 <= r < n:
                raise IndexError(f"no instance {r} in a block of {n}")
            out_ptr[i + 1] = out_ptr[i] + ptr[r + 1] - ptr[r]
        indices = np.empty(int(indptr[len(pick)]), dtype=np.int32)
        values = np.empty(int(indptr[len(pick)]))
        cdef int32_t[::1] out_idx = indices
        cdef double[::1] out_val = values
        for i in range(pick.shape[0]):
            r = pick[i]
            p = out_ptr[i]
            for k in range(ptr[r], ptr[r + 1]):
                out_idx[p] = idx[k]
                out_val[p] = val[k]
                p += 1
        picked = np.asarray(pick)
        weights = None if self.weights is None else self.weights[picked]
        return trusted(self.vocabulary, indptr, indices, values, self.codes[picked], self.labels, weights)

    def __getitem__(self, rows):
        if not isinstance(rows, slice):
            raise TypeError("a block is sliced; use row(i) for one instance and take(rows) for a choice")
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        stop = max(start, stop)
        lo, hi = self.indptr[start], self.indptr[stop]
        weights = None if self.weights is None else self.weights[start:stop]
        return trusted(self.vocabulary, self.indptr[start:stop + 1] - lo, self.indices[lo:hi], self.values[lo:hi],
                        self.codes[start:stop], self.labels, weights)

    def keep(self, mask):
        """The same instances with only those stored cells where the mask (one bool a cell) is true."""
        mask = np.ascontiguousarray(mask, dtype=bool)
        if len(mask) != len(self.indices):
            raise DataError(f"{len(mask)} mask entries for {len(self.indices)} cells")
        cdef const uint8_t[::1] kept = mask.view(np.uint8)
        cdef const int64_t[::1] ptr = self.indptr
        cdef const int32_t[::1] idx = self.indices
        cdef const double[::1] val = self.values
        cdef Py_ssize_t n = len(self.indptr) - 1, i, k
        cdef int64_t p = 0
        indptr = np.zeros(n + 1, dtype=np.int64)
        indices = np.empty(len(self.indices) + 1, dtype=np.int32)
        values = np.empty(len(self.indices) + 1)
        cdef int64_t[::1] out_ptr = indptr
        cdef int32_t[::1] out_idx = indices
        cdef double[::1] out_val = values
        with nogil:
            for i in range(n):
                for k in range(ptr[i], ptr[i + 1]):
                    # written always, counted when kept: no branch to mispredict
                    out_idx[p] = idx[k]
                    out_val[p] = val[k]
                    p += kept[k]
                out_ptr[i + 1] = p
        if 2 * p < len(self.indices):
            indices, values = indices[:p].copy(), values[:p].copy()
        return trusted(self.vocabulary, indptr, indices[:p], values[:p], self.codes, self.labels, self.weights)

    def __reduce__(self):
        return Block, (self.vocabulary, self.indptr, self.indices, self.values, self.codes, self.labels, self.weights)


cdef trusted(Vocabulary vocabulary, indptr, indices, values, codes, Labels labels, weights):
    """A block whose parts come from a checked one."""
    cdef Block b = Block.__new__(Block)
    b.vocabulary = vocabulary
    b.labels = labels
    b.indptr = np.ascontiguousarray(indptr, dtype=np.int64)
    b.indices = np.ascontiguousarray(indices, dtype=np.int32)
    b.values = np.ascontiguousarray(values, dtype=np.float64)
    b.codes = np.ascontiguousarray(codes, dtype=np.int32)
    b.weights = weights
    return b


def concatenate(blocks):
    """One block of several over the same vocabulary and labels."""
    blocks = list(blocks)
    first = blocks[0]
    if any(b.vocabulary is not first.vocabulary or b.labels is not first.labels for b in blocks):
        raise DataError("only blocks of one stream (same vocabulary, same labels) can be joined")
    indptr = [first.indptr]
    offset = int(first.indptr[len(first)])
    for b in blocks[1:]:
        indptr.append(b.indptr[1:] + offset)
        offset += int(b.indptr[len(b)])
    weights = None
    if any(b.weights is not None for b in blocks):
        weights = np.concatenate([np.ones(len(b)) if b.weights is None else b.weights for b in blocks])
    return trusted(first.vocabulary, np.concatenate(indptr), np.concatenate([b.indices for b in blocks]),
                    np.concatenate([b.values for b in blocks]), np.concatenate([b.codes for b in blocks]),
                    first.labels, weights)


cdef int check_values(Block b) except -1:
    """Finite, clamped, every id once a row, indicators 0 or 1."""
    cdef double[::1] val
    cdef const int32_t[::1] idx = b.indices
    cdef const int64_t[::1] ptr = b.indptr
    cdef Py_ssize_t i, k
    values = b.values
    if not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        i = int(np.searchsorted(b.indptr, k, side="right")) - 1
        raise value_error(b.vocabulary.name_of(int(b.indices[k])), float(values[k]), i + 1)
    if len(values) and max(values.max(), -values.min()) > LARGEST:
        b.values = np.clip(values, -LARGEST, LARGEST)
    cdef int64_t[::1] last = np.full(b.vocabulary.size, -1, dtype=np.int64)
    for i in range(ptr.shape[0] - 1):
        if ptr[i + 1] < ptr[i]:
            raise DataError("indptr must not fall")
        for k in range(ptr[i], ptr[i + 1]):
            if last[idx[k]] == i:
                raise DataError(f"feature {b.vocabulary.name_of(idx[k])!r} is given twice in instance {i}")
            last[idx[k]] = i
    return 0


def check_weights(weights, Py_ssize_t n):
    """Sample weights: as many as instances, finite and not negative."""
    if len(weights) != n:
        raise DataError(f"{len(weights)} weights for {n} instances")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(f"the weight of instance {int(bad[0])} is {weights[bad[0]]!r}; weights are finite and >= 0")


cdef class Builder:
    """Takes instances one by one and makes a block of them."""

    cdef Vocabulary vocabulary
    cdef int32_t* idx
    cdef double* val
    cdef Py_ssize_t n, room
    cdef list ends

    def __cinit__(self, Vocabulary vocabulary):
        self.vocabulary = vocabulary
        self.ends = [0]

    def __dealloc__(self):
        free(self.idx)
        free(self.val)

    def add(self, x):
        """One instance; an error leaves the builder as it was before it."""
        cdef Py_ssize_t pos = 0, before = self.n
        cdef PyObject* key
        cdef PyObject* value
        cdef dict d
        d = x if type(x) is dict else plain_dict(x, len(self.ends))
        if self.n + len(d) > self.room:
            self.room = 2 * (self.n + len(d)) + 64
            self.idx = <int32_t*> realloc(self.idx, self.room * sizeof(int32_t))
            self.val = <double*> realloc(self.val, self.room * sizeof(double))
            if self.idx == NULL or self.val == NULL:
                raise MemoryError
        try:
            while PyDict_Next(d, &pos, &key, &value):
                self.cell(key, value)
        except:
            self.n = before
            raise
        self.ends.append(self.n)

    cdef int cell(self, PyObject* key, PyObject* value) except -1:
        cdef double number = 0.0
        cdef int found = quick_read(value, &number)
        cdef int32_t i
        cdef object name = <object> key
        if not (PyUnicode_CheckExact(name) or PyLong_CheckExact(name)):
            name = canonical_name(name)
            if name is None:
                raise name_error(<object> key, len(self.ends))
        if found == ABSENT:
            return 0
        if found == BAD:
            raise value_error(name, <object> value, len(self.ends))
        if found == NUMBER:
            i = self.vocabulary.ensure_numeric(name)
        else:
            number = 1.0
            i = self.vocabulary.ensure_level(name, str(<object> value))
        if i < 0:
            raise conflict_error(name if found == NUMBER else f"{name}={<object> value}", len(self.ends))
        self.idx[self.n] = i
        self.val[self.n] = number
        self.n += 1
        return 0

    def finish(self, y=None, w=None, Labels labels=None):
        """The block; y and w have one entry an instance."""
        if labels is None:
            labels = Labels()
        indices = np.empty(self.n, dtype=np.int32)
        values = np.empty(self.n)
        cdef int32_t[::1] out_idx = indices
        cdef double[::1] out_val = values
        cdef Py_ssize_t k, rows = len(self.ends) - 1
        for k in range(self.n):
            out_idx[k] = self.idx[k]
            out_val[k] = self.val[k]
        weights = None
        if w is not None:
            weights = np.array(w, dtype=np.float64)
            check_weights(weights, rows)
        codes = encode_labels(y, labels, rows, weights)
        return trusted(self.vocabulary, np.array(self.ends, dtype=np.int64), indices, values, codes, labels, weights)


def encode_labels(y, Labels labels, Py_ssize_t n, weights=None):
    """Label codes of a sequence (None: no labels at all).

    Of equal labels (1 and True) the first is kept; one of no weight, which is never learned, only if there is no other.
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
        if code is None:
            plain_label(y[i], i + 1)
            code = labels.code(y[i])
        out[i] = code
    return codes
