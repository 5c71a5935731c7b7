from libc.stdint cimport int32_t

from varifold._core.model cimport Model
from varifold._core.view cimport View

cdef struct Moments:
    double n          # weight of the values met with the class
    double mean
    double m2         # summed squared deviations
    double column     # weight of the instances of the class in which the column was present

cdef class GaussianNBModel(Model):
    cdef readonly double prior
    cdef Moments* table       # [slot][class]
    cdef double* counts       # weight by class
    cdef Py_ssize_t room      # classes there is room for

    cdef void evidence(self, int32_t slot, double x, double* out) noexcept nogil
    cdef inline double log_prior(self, int c) noexcept nogil
