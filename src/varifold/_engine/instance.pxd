cimport cython

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint64_t

from varifold._engine.names.binding cimport Binding
from varifold._engine.scaler cimport Scaler
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View
from varifold._engine.names.vocabulary cimport Vocabulary


@cython.final
cdef class Instance:
    cdef Space space
    cdef Scaler scaler
    cdef Binding binding               # slots of the vocabulary of the last block
    cdef bint intercept                # slot 0 is part of every view
    cdef bint wants_columns            # the model reads View.column
    cdef View view                     # what present() lays out for the model
    # the pairs gathered, at positions 1 to n; position 0 is the intercept
    cdef Py_ssize_t n
    cdef Py_ssize_t unknown            # names that have no slot yet
    cdef list pending                  # these names, as (name, column, level, value); of a row see unknown_pairs()
    cdef const int32_t* row_ids        # the row gathered; NULL for a dict
    cdef const double* row_values
    cdef Py_ssize_t row_length
    cdef bint ordered                  # the pairs are in slot order
    cdef bint admitted                 # the view may hold new slots
    # scratch
    cdef Py_ssize_t capacity
    cdef int32_t* slots
    cdef int32_t* slots2
    cdef double* values
    cdef double* values2
    cdef double* scaled
    cdef uint64_t* marks               # a bit per slot, for ordering; zeros between calls
    cdef int32_t* former               # slots of the last dict in its order: the next one often has the same keys
    cdef uint8_t* is_new
    cdef int32_t* indicator_columns    # columns of the indicators present
    cdef Py_ssize_t n_indicator_columns
    cdef int32_t* noted                # known columns whose values have no slot
    cdef Py_ssize_t n_noted
    cdef int32_t* columns

    cdef int reserve(self, Py_ssize_t n) except -1
    cdef int append(self, int32_t slot, double value) except -1
    cdef void note_column(self, int32_t slot) noexcept nogil
    cdef int gather(self, object x) except -1
    cdef list gather_dict(self, dict x)
    cdef list gather_items(self, list items)
    cdef list gather_pair(self, PyObject* key, PyObject* value, list pending)
    cdef int bind(self, Vocabulary vocabulary) except -1
    cdef void gather_row(self, const int32_t* ids, const double* values, Py_ssize_t length) noexcept nogil
    cdef list unknown_pairs(self)
    cdef int bind_admitted(self) except -1
    cdef void present(self, double w, bint commit) noexcept nogil
    cdef void scale(self, double w, bint commit) noexcept nogil
    cdef void scale_robust(self, double w, bint commit) noexcept nogil
    cdef void list_columns(self) noexcept nogil
    cdef void mark_seen(self, bint counts_empty) noexcept nogil
