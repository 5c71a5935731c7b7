from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, uint8_t

cdef extern from "Python.h":
    ctypedef struct PyASCIIObject:
        Py_hash_t hash

# The kind of an id; NUMERIC and COLUMN may both be set (a column that has numbers and strings).
cdef enum Kind:
    FREE = 0
    NUMERIC = 1      # has a number under this name
    COLUMN = 2       # has string levels, each with a separate indicator id
    INDICATOR = 4    # 'column=level', value 1.0
    RESERVED = 8     # id 0: the intercept

cdef class NameTable:
    cdef PyObject** key           # id -> name object, owned
    cdef int32_t* column          # id -> id of its column (itself unless an indicator)
    cdef uint8_t* kind
    cdef Py_ssize_t capacity
    cdef readonly Py_ssize_t size       # ids assigned so far, freed ones and id 0 included
    cdef Py_ssize_t indicators          # live ids that are indicators
    cdef readonly Py_ssize_t features   # live ids that have a value (NUMERIC or INDICATOR)
    cdef int32_t* table           # open addressing: 0 empty, -1 deleted, else id + 1
    cdef Py_ssize_t mask
    cdef Py_ssize_t filled
    cdef dict levels              # column id -> {level: indicator id}
    cdef list free_ids

    cdef int32_t find(self, PyObject* name) except -2
    cdef int32_t find_level(self, int32_t column, object level) except -2
    cdef int32_t insert(self, object name, int kind, int32_t column) except -2
    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef int32_t ensure_numeric(self, object name) except -2
    cdef int32_t ensure_level(self, object column_name, object level) except -2
    cdef int remove(self, int32_t i) except -1
    cdef int rehash(self, Py_ssize_t slots) except -1
    cdef int erase(self, int32_t i) except -1
    cdef int reserve(self, Py_ssize_t names) except -1
    cdef Py_ssize_t table_size(self, Py_ssize_t names)
    cdef int place_of(self, int32_t i) except -1
    cdef int rename(self, dict changes) except -1


cdef inline int32_t quick_find(NameTable table, PyObject* name) except -2:
    """Do find(), with the usual case (the same str object as before, at its first place) in line."""
    cdef Py_hash_t h
    cdef int32_t e
    if PyUnicode_CheckExact(<object> name):
        h = (<PyASCIIObject*> name).hash
        if h != -1:
            e = table.table[h & table.mask]
            if e > 0 and table.key[e - 1] == name:
                return e - 1
    return table.find(name)
