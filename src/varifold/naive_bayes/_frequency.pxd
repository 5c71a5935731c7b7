from varifold._engine.model cimport Model

cdef class FrequencyModel(Model):
    cdef double* counts    # [class]: weight learned
