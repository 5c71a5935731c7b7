from libc.stdint cimport int32_t

from varifold._engine.regression_model cimport RegressionModel, Target
from varifold._engine.view cimport View
from varifold.forest._window_trees cimport WindowTrees

cdef class RegressionTrees(WindowTrees):
    cdef Target target             # statistics of all targets: their mean is the parent of every root
    cdef double typical            # absolute error, averaged as the losses are
    cdef double squares            # squared loss, averaged
    cdef double centre             # scratch: of the node that is split, its targets count as (target - centre) / unit
    cdef double unit
    cdef double mean_square        # scratch: of the targets so counted
    cdef double root_unit          # of the tree that grows: unit at its root,
    cdef double root_squares       # and weighted sum of squares there

    cdef double descend(self, int32_t node, double y, double w) noexcept nogil
    cdef double predict_and_count(self, double y, double w) noexcept nogil
    cdef double predict(self, View* v) noexcept nogil
    cdef void learn_target(self, View* v, double y, double w) noexcept nogil
    cdef void monitor_error(self, double error) noexcept nogil
    cdef void follow(self, int32_t node) noexcept nogil
    cdef void share(self, View* v) noexcept nogil


cdef class WindowForestRegression(RegressionModel):
    cdef readonly RegressionTrees forest
