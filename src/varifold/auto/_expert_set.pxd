from libc.stdint cimport int64_t

from varifold._engine.models.model cimport Components
from varifold._engine.state cimport State
from varifold._engine.view cimport View
from varifold._numeric.hedge cimport Experts
from varifold.auto._history cimport WeightHistory
from varifold.auto._views cimport InstanceViews


# What an expert sees of an instance.
cdef enum Sees:
    EVERYTHING
    COLUMNS         # which columns are present
    BOUNDED         # of a wide string column the frequent levels and, in place of the others, one statistic


cdef class ExpertSet:
    cdef readonly list names
    cdef Components components     # the models
    cdef readonly list models      # the same as a list
    cdef int count                 # of experts
    cdef int stacks                # of combinations of them
    cdef State arrays
    cdef int64_t* sees             # [expert]: one of Sees
    cdef int64_t* max_columns      # [expert]: columns beyond which it is disabled; 0: no limit
    cdef int64_t* disabled         # [expert]: 1 if it is disabled for good
    cdef Experts weights           # exponential weights of the experts and, last, the stacks
    cdef double* portion           # [count + stacks]: the same, adding up to 1; see update_portions()
    cdef WeightHistory history
    cdef InstanceViews views

    cdef int reserve_views(self, Py_ssize_t capacity) except -1
    cdef View* columns_of(self, View* v) noexcept nogil
    cdef void update_portions(self) noexcept nogil
