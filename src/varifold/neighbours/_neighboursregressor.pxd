from libc.stdint cimport int32_t

from varifold._engine.regression_model cimport RegressionModel
from varifold._engine.view cimport View
from varifold.neighbours._neighbours cimport NeighboursModel


cdef class NeighboursRegression(RegressionModel):
    cdef NeighboursModel ring      # the last instances, all of one class
    cdef double* targets           # [window]: their targets, by place in the ring
    cdef int32_t* partial_slot     # scratch: slots of the instance without one feature
    cdef double* partial_x         # scratch: their values
