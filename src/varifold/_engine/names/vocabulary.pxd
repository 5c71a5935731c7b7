from varifold._engine.names.table cimport NameTable


cdef class Vocabulary(NameTable):
    cdef int check_id(self, Py_ssize_t i) except -1


cdef class Labels:
    cdef list items               # by code
    cdef dict index
