from libc.stdint cimport int32_t, uint8_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View


cdef class CategoriesModel(Model):
    cdef double smoothing
    cdef Py_ssize_t wide_columns       # columns that are wide now
    cdef Py_ssize_t stride             # capacity for classes
    cdef double* counts                # [slot][class]: weight learned of a level, or of all levels of a column
    cdef double* class_weight          # [class]: weight learned
    cdef double* mean_square           # [slot]: of a wide column, running mean of its squared statistic
    cdef int32_t* levels               # [slot]: of a column, the number of its levels
    cdef double* lift                  # scratch [class]
    cdef int32_t* prepared             # scratch [slot]
    cdef View bounded                  # the instance with bounded columns, see bound()
    cdef int32_t* slot                 # the arrays of `bounded`
    cdef double* x
    cdef double* raw
    cdef uint8_t* is_new
    cdef int32_t* origin               # [entry]: the entry of the instance from which it was made

    cdef bint is_wide_level(self, int32_t slot) noexcept nogil
    cdef bint is_frequent(self, int32_t slot) noexcept nogil
    cdef double weight_of(self, int32_t slot) noexcept nogil
    cdef bint find_lift(self, int32_t slot) noexcept nogil
    cdef double statistic(self) noexcept nogil
    cdef void count_level(self, int32_t slot, int change) noexcept nogil
    cdef void bound(self, View* v) noexcept nogil
    cdef Py_ssize_t insert(self, Py_ssize_t n, int32_t slot) noexcept nogil
    cdef Py_ssize_t slots_to_prepare(self, const int32_t* slots, Py_ssize_t n) noexcept nogil
    cdef double scaled(self, double statistic, int32_t column) noexcept nogil
    cdef double value_of(self, int32_t slot) noexcept nogil
    cdef int32_t seen_as(self, int32_t slot) noexcept nogil
