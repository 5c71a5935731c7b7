from libc.stdint cimport int32_t

from varifold._engine.model cimport Model
from varifold._engine.view cimport View


cdef class GaussianModel(Model):
    cdef Py_ssize_t most           # slots that are looked at
    cdef Py_ssize_t room           # slots there is room for
    cdef int held                  # classes there is room for
    cdef double total              # weight learned
    cdef double* counts            # [class]
    cdef double* seen              # [slot]: instances
    cdef double* mean              # [class][slot]
    cdef double* weight            # [class][slot]: weight behind the mean
    cdef double* cov               # [1 + class][slot][slot]: of all, then of each class
    cdef double* factor            # scratch [slot][slot]
    cdef double* value             # scratch [slot]
    cdef double* far               # scratch [slot]
    cdef int32_t* who              # scratch [slot]: those present, then those absent

    cdef void release(self) noexcept
    cdef int fit(self, Py_ssize_t room, int held) except -1
    cdef Py_ssize_t gather(self, View* v) noexcept nogil
    cdef Py_ssize_t absent(self, Py_ssize_t present) noexcept nogil
    cdef double spread(self, int c, int32_t a, int32_t b) noexcept nogil
    cdef void factorise(self, int c, Py_ssize_t present, Py_ssize_t all) noexcept nogil
    cdef void centre(self, int c, Py_ssize_t present) noexcept nogil
    cdef double says(self, int c, Py_ssize_t i) noexcept nogil
    cdef void move(self, int c, Py_ssize_t present, Py_ssize_t all, double own, double common) noexcept nogil
