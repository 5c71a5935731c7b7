from libc.stdint cimport int32_t

from varifold._engine.view cimport View
from varifold.naive_bayes._class_table cimport ClassTable

cdef struct Moments:
    double n          # weight of the values seen with the class
    double mean
    double m2         # summed squared deviations
    double column     # weight of the instances of the class in which the column was present

cdef class GaussianNBModel(ClassTable):
    cdef double* product          # scratch, [class]: product of variances
    cdef double* evidence_of      # scratch, [class]: what one feature adds

    cdef void evidence(self, int32_t slot, double x, double* out, double* product) noexcept nogil
    cdef void two_classes(self, View* v, double* out) noexcept nogil
