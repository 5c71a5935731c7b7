from varifold.copula._latent cimport Copula
from varifold._engine.model cimport Model
from varifold._engine.view cimport View

cdef class ImputerModel(Model):
    cdef readonly Copula copula
    cdef double reach                  # half the width of the interval, in standard deviations
    cdef bint mean

    cdef double centre(self, Py_ssize_t node, double z, double sd) noexcept nogil
