from libc.stdint cimport int32_t

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

cdef class PythonCaller(Model):
    cdef object failed               # what the Python code raised, until pending_error() returns it

    cdef void keep(self, object error, str call, View* v) noexcept


cdef class PythonModel(PythonCaller):
    cdef readonly object learner     # a river classifier; its labels are class indices
    cdef bint takes_weight

    cdef dict instance(self, View* v)
    cdef void ask(self, View* v, double* out) noexcept with gil
    cdef void teach(self, View* v, int y, double w) noexcept with gil


cdef class RuleModel(PythonCaller):
    cdef object rule                 # a varifold.PythonRule

    cdef dict instance(self, View* v)
    cdef void ask(self, View* v, double* out) noexcept with gil
    cdef void teach(self, View* v, int y, double w) noexcept with gil
    cdef void drop(self, int32_t slot) noexcept with gil
    cdef double weigh(self, int32_t slot) noexcept with gil
    cdef void explain(self, View* v, int label, double* out) noexcept with gil
