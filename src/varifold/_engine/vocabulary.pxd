from varifold._engine.names cimport NameTable


cdef class Vocabulary(NameTable):
    cdef int check_id(self, Py_ssize_t i) except -1


cdef class Labels:
    cdef readonly list values
    cdef dict index
