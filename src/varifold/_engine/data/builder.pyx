"""Build a block from dicts."""

import numpy as np

from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from libc.stdint cimport int32_t
from libc.stdlib cimport free

from varifold._engine.data.block cimport trusted
from varifold._engine.names.reading cimport (
    ABSENT, BAD, NUMBER, canonical_name, check_size, conflict_error, name_error, plain_dict, plain_text, quick_read,
    repeated_error, runs_no_code, value_error,
)
from varifold._engine.names.vocabulary cimport Labels, Vocabulary
from varifold._numeric.memory cimport resize

from varifold._engine.data.block import checked_weights
from varifold._engine.names.vocabulary import encode_labels


cdef class Builder:
    """Reads instances one by one into a block."""

    cdef Vocabulary vocabulary
    cdef int32_t* idx
    cdef double* val
    cdef Py_ssize_t n, capacity
    cdef list ends

    def __cinit__(self, Vocabulary vocabulary):
        self.vocabulary = vocabulary
        self.ends = [0]

    def __dealloc__(self):
        free(self.idx)
        free(self.val)

    def add(self, x):
        """Add one instance; an error leaves the builder as it was before."""
        cdef Py_ssize_t pos = 0, before = self.n
        cdef PyObject* key
        cdef PyObject* value
        cdef dict d
        d = x if type(x) is dict else plain_dict(x, len(self.ends))
        self.reserve(len(d))
        try:
            while PyDict_Next(d, &pos, &key, &value):
                if not runs_no_code(key, value):
                    self.n = before
                    self.add_items(list(d.items()))
                    break
                self.cell(key, value)
            self.ends.append(self.n)
        finally:
            self.n = self.ends[len(self.ends) - 1]  # drop an instance that failed half-way

    cdef int add_items(self, list items) except -1:
        """Read pairs whose own code may run: the list keeps them alive, and equal names are rejected."""
        cdef set names = set()
        self.reserve(len(items))
        for name, value in items:
            exact = canonical_name(name)
            if exact is None:
                raise name_error(name, len(self.ends))
            if exact in names:
                raise repeated_error(exact, len(self.ends))
            names.add(exact)
            self.cell(<PyObject*> exact, <PyObject*> value)
        return 0

    cdef int reserve(self, Py_ssize_t cells) except -1:
        """Reserve memory for this many more cells."""
        cdef Py_ssize_t capacity = 2 * (self.n + cells) + 64
        if self.n + cells <= self.capacity:
            return 0
        if (resize(<void**> &self.idx, capacity * sizeof(int32_t)) < 0
                or resize(<void**> &self.val, capacity * sizeof(double)) < 0):
            raise MemoryError
        self.capacity = capacity
        return 0

    cdef int cell(self, PyObject* key, PyObject* value) except -1:
        """Append one pair; the name is an exact str or int."""
        cdef double number = 0.0
        cdef int found = quick_read(value, &number)
        cdef int32_t i
        cdef object name = <object> key
        check_size(name, len(self.ends))
        if found == ABSENT:
            return 0
        if found == BAD:
            raise value_error(name, <object> value, len(self.ends))
        if found == NUMBER:
            i = self.vocabulary.ensure_numeric(name)
        else:
            number = 1.0
            i = self.vocabulary.ensure_level(name, plain_text(<object> value))
        if i < 0:
            raise conflict_error(name if found == NUMBER else f"{name}={<object> value}", len(self.ends))
        self.idx[self.n] = i
        self.val[self.n] = number
        self.n += 1
        return 0

    def finish(self, y=None, w=None, Labels labels=None):
        """Return the block; y and w have one entry per instance."""
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
            weights = checked_weights(w, rows)
        codes = encode_labels(y, labels, rows, weights)
        return trusted(self.vocabulary, np.array(self.ends, dtype=np.int64), indices, values, codes, labels, weights,
                       None)
