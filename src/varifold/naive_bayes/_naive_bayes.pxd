from libc.stdint cimport int32_t

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

cdef struct Moments:
    double n          # weight of the values met with the class
    double mean
    double m2         # summed squared deviations
    double column     # weight of the instances of the class in which the column was present

cdef class ClassTable(Model):
    cdef readonly double prior    # observations added to every class
    cdef int width
    cdef double* table            # [slot][class][width]
    cdef double* counts           # weight by class
    cdef Py_ssize_t room          # classes there is room for

    cdef inline double* row(self, int32_t slot) noexcept nogil
    cdef inline double log_prior(self, int c) noexcept nogil

cdef class GaussianNBModel(ClassTable):
    cdef double* product          # scratch by class

    cdef int fit(self) except -1
    cdef void evidence(self, int32_t slot, double x, double* out, double* product) noexcept nogil

cdef struct Ranked:
    double chi2
    Py_ssize_t i

cdef class NB3Model(ClassTable):
    cdef readonly double M        # share of the features present that speak
    cdef Ranked* ranked           # scratch

    cdef double chi2(self, int32_t slot) noexcept nogil
    cdef Py_ssize_t choose(self, View* v) noexcept nogil
    cdef inline double says(self, int32_t slot, int label) noexcept nogil
