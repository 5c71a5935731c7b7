from libc.stdint cimport int64_t

from varifold._engine.model cimport Calls
from varifold._engine.regression_model cimport RegressionCalls, RegressionModel, Target
from varifold._engine.view cimport View
from varifold._numeric.hedge cimport Experts
from varifold.auto._history cimport History
from varifold.auto._views cimport InstanceViews


cdef enum:                         # the numbers of a mixture
    COUNT = 0
    TYPICAL = 1
    STACK_SQUARE = 2
    ROW = 3                        # above the answer counted up from 0, below it down


cdef double within(double z) noexcept nogil


cdef class RegressionMixture(RegressionModel):
    cdef readonly list names
    cdef tuple experts             # as they were given, to begin again
    cdef list models
    cdef void** inner              # the models again, for calls without the GIL
    cdef Calls calls
    cdef RegressionCalls regress
    cdef int k                     # experts
    cdef bint absolute             # experts are judged by the absolute error, not by its square
    cdef Target own                # statistics of the targets without their outliers, for the experts
    cdef int64_t* on_columns       # [expert]: sees which columns are present, not values
    cdef int64_t* max_features     # [expert]: slots beyond which it is disabled; 0 none
    cdef int64_t* disabled         # [expert]: for good
    cdef Experts weights           # of the experts and, last, the stack
    cdef double* numbers           # [4]: rounds, typical error of the answers, mean square of the stack's error, outliers in a row
    cdef double* mean              # [k + 1]: the stack's weight of every expert, and its constant
    cdef double* cov               # [k + 1][k + 1]: their covariance
    cdef double* answer_of         # [k + 1]: what experts and stack say, in deviations from the mean
    cdef double* portion           # [k + 1]
    cdef double* loss              # [k + 1]
    cdef double* work              # [k + 1]
    cdef double* share             # [slot]: contributions of one expert
    cdef History history
    cdef InstanceViews views

    cdef View* seen_by(self, int e, View* v) noexcept nogil
    cdef void ask(self, View* v) noexcept nogil
    cdef void teach(self, View* v, double y, double w) noexcept nogil
    cdef double stacked(self) noexcept nogil
    cdef double mixed(self) noexcept nogil
    cdef void learn_round(self, double z, double w) noexcept nogil
    cdef void judge(self, double z, double w) noexcept nogil
    cdef void learn_stack(self, double z, double w) noexcept nogil
    cdef bint moderate(self, Py_ssize_t n) noexcept nogil
    cdef double counts_for(self, int e) noexcept nogil
    cdef double answer(self) noexcept nogil
    cdef int become(self, RegressionMixture other) except -1
