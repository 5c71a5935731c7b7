from libc.stdint cimport int32_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

cdef class PythonCaller(Model):
    cdef object failed               # what the Python code raised, until pending_error() returns it

    cdef void keep(self, object error, str call, View* v) noexcept


cdef class PythonModel(PythonCaller):
    cdef readonly object learner     # a river classifier; its labels are class indices
    cdef bint takes_weight

    cdef dict instance(self, View* v)
    cdef void call_scores(self, View* v, double* out) noexcept with gil
    cdef void call_learn(self, View* v, int y, double w) noexcept with gil


cdef class RuleModel(PythonCaller):
    cdef object rule                 # a varifold.PythonRule

    cdef dict instance(self, View* v)
    cdef void call_scores(self, View* v, double* out) noexcept with gil
    cdef void call_learn(self, View* v, int y, double w) noexcept with gil
    cdef void call_forget(self, int32_t slot) noexcept with gil
    cdef double call_weight(self, int32_t slot) noexcept with gil
    cdef void call_explain(self, View* v, int label, double* out) noexcept with gil
