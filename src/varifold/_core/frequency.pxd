from varifold._core.model cimport Model

cdef class FrequencyModel(Model):
    cdef double* counts
