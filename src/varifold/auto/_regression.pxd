from libc.stdint cimport int32_t

from varifold._engine.models.regression cimport RegressionModel, TargetStatistics
from varifold._engine.view cimport View
from varifold.auto._expert_set cimport ExpertSet
from varifold.auto._levels cimport Level
from varifold.auto._warm_up cimport WarmUp

cdef enum:
    STATISTICS_NUMBERS = 4     # as saved
    ERRORS_NUMBERS = 4

cdef struct Statistics:
    double rounds              # instances judged
    double typical_error       # running mean of the mixture's absolute error, in deviations of the target
    double stack_square        # running mean of the stack's squared error
    double outliers            # outliers in a row: above the prediction counted up from 0, below it down

cdef struct Errors:            # of the predictions, in the target's units, for the report
    double recent              # mean of about 50
    double usual               # mean of about 1,000,
    double usual_square        # and of their squares
    double count


cdef class RegressionMixture(RegressionModel):
    cdef tuple table               # the experts as given, to begin again
    cdef ExpertSet experts
    cdef bint absolute             # experts are judged by absolute instead of squared errors
    cdef TargetStatistics own      # statistics of the targets without outliers, for the experts
    cdef Statistics* statistics
    cdef Errors* errors
    cdef double* mean              # [k + 1]: weights of the stack, and its constant
    cdef double* cov               # [k + 1][k + 1]: their covariance
    cdef Level* level              # an offset to the experts' predictions
    cdef WarmUp warm_up            # the first instances, until it is known which targets are outliers
    cdef RegressionMixture relearned   # one that has learned these without outliers; learning adopts it

    # of the instance at hand, in deviations from the mean
    cdef double* prediction        # [k + 1]: of experts and stack
    cdef double* loss              # [k + 1]
    cdef double* work              # [k + 1]
    cdef double* share             # [slot]: contributions of one expert

    cdef int prepare_warm_up(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) except -1 nogil
    cdef int relearn(self) except -1
    cdef int adopt_relearned(self) except -1
    cdef double warm(self, View* v, double y, double w) noexcept nogil
    cdef View* seen_by(self, int e, View* v) noexcept nogil
    cdef void predict_all(self, View* v) noexcept nogil
    cdef double stacked(self) noexcept nogil
    cdef double mixed(self) noexcept nogil
    cdef double mixture(self) noexcept nogil
    cdef double without_outlier(self, double y) noexcept nogil
    cdef double at_level(self, double y) noexcept nogil
    cdef void learn_combination(self, double z, double w) noexcept nogil
    cdef void learn_weights(self, double z, double w) noexcept nogil
    cdef void learn_stack(self, double z, double w) noexcept nogil
    cdef void learn_experts(self, View* v, double y, double w) noexcept nogil
    cdef void count_error(self, double error) noexcept nogil
    cdef double part_of(self, int e) noexcept nogil
    cdef bint is_moderate(self, Py_ssize_t n) noexcept nogil
