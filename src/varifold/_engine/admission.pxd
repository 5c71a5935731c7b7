cimport cython

from libc.stdint cimport int32_t, uint32_t

from varifold._engine.conformal.levels cimport Conformal
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport Model
from varifold._engine.scaler cimport Scaler
from varifold._engine.names.space cimport Space


@cython.final
cdef class Admission:
    cdef Space space
    cdef Scaler scaler
    cdef Model model
    cdef Instance instance
    cdef Conformal conformal           # None without intervals or sets
    cdef Py_ssize_t max_features       # 0: no limit
    cdef bint lightest                 # evict by magnitude; otherwise the features seen longest ago
    cdef Py_ssize_t fitted             # slots that scaler and model have memory for
    cdef uint32_t* waiting             # [hash of a name] its fingerprint, and how often it came while no slot was left
    cdef Py_ssize_t n_waiting          # a power of two; 0 if names need not wait

    cdef Py_ssize_t check(self, list pending) except -1
    cdef int reserve(self) except -1 with gil
    cdef int admit(self) except -1 with gil
    cdef list returning(self, list pending)
    cdef Py_ssize_t evict(self, Py_ssize_t needed) except -1
    cdef list first_to_go(self, Py_ssize_t count)
    cdef int shrink(self) except -1
    cdef int drop(self, int32_t slot) except -1
    cdef int drop_marked(self) except -1 with gil
    cdef Py_ssize_t rename(self, dict names, bint partial) except -1
