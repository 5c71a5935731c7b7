from libc.stdint cimport int32_t

from varifold._engine.regression_model cimport RegressionModel
from varifold._engine.space cimport Space
from varifold._engine.view cimport View
from varifold.copula._latent cimport Copula


cdef class CopulaRegression(RegressionModel):
    cdef readonly Copula copula
    cdef Space shifted             # the copula's space: slot 1 is the target, slot s + 1 the feature of slot s
    cdef View inner                # the instance in that space
    cdef int32_t* inner_slot       # scratch [slot]
    cdef double* inner_raw         # scratch [slot]
    cdef int32_t* place            # scratch [slot]: by column, where the view has it, plus 1
    cdef double* chance            # scratch [window]: probability of each value in the target's window, ascending
    cdef Py_ssize_t known          # values in the target's window when `chance` was made

    cdef void copy_kind(self, int32_t slot) noexcept nogil
    cdef void lay_out(self, View* v) noexcept nogil
    cdef double expected(self, double z, double sd) noexcept nogil
    cdef double conditional(self, View* v, double* sd) noexcept nogil
    cdef Py_ssize_t target_node(self) noexcept nogil
