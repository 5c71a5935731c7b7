from libc.stdint cimport int32_t

from varifold._engine.view cimport View
from varifold.auto._warm_up cimport FirstInstances
from varifold.auto._levels cimport Level
from varifold.auto._mixture cimport RegressionMixture


cdef class AutoRegression(RegressionMixture):
    cdef double* errors            # [4]: mean error of about 50 and of about 1,000 answers, mean square of these, their number
    cdef Level* level              # an offset to the experts' answers
    cdef FirstInstances first      # until their outliers are known
    cdef AutoRegression relearned  # a model that learned the first instances without their outliers; learning takes it over

    cdef double without_outlier(self, double y) noexcept nogil
    cdef double at_level(self, double y) noexcept nogil
    cdef void note_error(self, double error) noexcept nogil
    cdef double warm_up(self, View* v, double y, double w) noexcept nogil
    cdef int prepare_first(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) except -1 nogil
    cdef int relearn(self) except -1
    cdef int take_over(self) except -1
