from varifold._engine.model cimport Model
from varifold._engine.view cimport View

cdef class ForeignModel(Model):
    cdef readonly object learner     # a river classifier; labels are class indices
    cdef object failed               # the exception it raised, until it is told

    cdef dict instance(self, View* v)
    cdef void ask(self, View* v, double* out) noexcept with gil
    cdef void teach(self, View* v, int y, double w) noexcept with gil
