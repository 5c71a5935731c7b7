from libc.stdint cimport int32_t, int64_t

from varifold._engine.block cimport Block
from varifold._engine.core cimport Core
from varifold._engine.regression_model cimport RegressionModel, Target


cdef class RegressionEngine(Core):
    cdef readonly Target target
    cdef RegressionModel rule    # the model, of its own type
    cdef double prediction       # of the instance at hand, for its interval

    cdef double number_of(self, object y) except? -1.0
    cdef int learn(self, object x, object y, double w) except -1
    cdef int learn_gathered(self, list pending, double number, double w) except -1
    cdef void learn_view(self, double y, double w) noexcept nogil
    cdef double answer(self) noexcept nogil
    cdef void foresee(self, double prediction) noexcept nogil
    cdef int foresee_gathered(self) except -1 nogil
    cdef double ask(self, object x) except? -1.0
    cdef double ask_gathered(self) except? -1.0
    cdef dict explain(self, object x)
    cdef int step_row(self, int64_t code, const int32_t* idx, const double* val, Py_ssize_t m, double y, double w,
                      bint learns, double* out, double* bounds) except -1 nogil
    cdef object walk(self, Block block, schedule, bint planned, bint learn, bint predict, bint intervals)
    cdef int take(self, names, dict arrays) except -1
