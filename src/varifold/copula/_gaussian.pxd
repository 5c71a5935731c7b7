from libc.stdint cimport int32_t

from varifold._engine.model cimport Model
from varifold._engine.view cimport View


# Arrays that grow with slots and classes at once.
cdef struct Matrices:
    Py_ssize_t room      # slots there is room for
    int classes          # classes there is room for
    double* mean         # [class][slot]
    double* weight       # [class][slot]: weight behind the mean
    double* cov          # [1 + class][slot][slot]: of all classes, then of each
    double* factor       # scratch [slot][slot], by column


cdef class GaussianModel(Model):
    cdef Py_ssize_t most           # slots that are looked at
    cdef Matrices held             # owns the arrays below
    cdef Py_ssize_t room
    cdef double* mean
    cdef double* weight
    cdef double* cov
    cdef double* factor
    cdef double* total             # [1]: weight learned
    cdef double* counts            # [class]: weight learned
    cdef double* seen              # [slot]: instances
    cdef double* value             # scratch [slot]: values present
    cdef double* distance          # scratch [slot]
    cdef double* goal              # scratch [slot]: what covariances move towards
    cdef int32_t* order            # scratch [slot]: slots present, then slots absent

    cdef int fit(self, Py_ssize_t room, int classes) except -1
    cdef Py_ssize_t gather(self, View* v) noexcept nogil
    cdef Py_ssize_t absent(self, Py_ssize_t present) noexcept nogil
    cdef double own_part(self, int c) noexcept nogil
    cdef void gather_covariances(self, int c, Py_ssize_t j, Py_ssize_t present, Py_ssize_t all,
                                 double* out) noexcept nogil
    cdef void factorise(self, int c, Py_ssize_t present, Py_ssize_t all) noexcept nogil
    cdef void centre(self, int c, Py_ssize_t present) noexcept nogil
    cdef double log_density(self, int c, Py_ssize_t i) noexcept nogil
    cdef void move(self, int c, Py_ssize_t present, Py_ssize_t all, double own, double common) noexcept nogil
