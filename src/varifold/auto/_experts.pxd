from libc.stdint cimport int32_t, int64_t

from varifold._engine.model cimport Calls, Model
from varifold._engine.view cimport View
from varifold.auto._categories cimport CategoriesModel
from varifold.auto._stacking cimport Temperature
from varifold.auto._views cimport InstanceViews


# When an expert may be paused.
cdef enum Pausing:
    NEVER
    LATE
    EARLY


cdef class ExpertPool(Model):
    cdef readonly list names
    cdef list models
    cdef void** inner              # the models again, for calls without the GIL
    cdef Calls calls
    cdef int k                     # experts
    cdef int64_t* sees             # [expert]: how it sees an instance, see Sees
    cdef CategoriesModel categories    # one of the models, or None
    cdef int categories_at         # which of the experts that is, -1 for none
    cdef int64_t* pausing          # [expert]: see Pausing; not NEVER: disabled when there are many classes
    cdef int64_t* max_columns      # [expert]: columns beyond which it is disabled; 0 none
    cdef int64_t* matrix_side      # [expert]: rows of its matrices, one per class; 0 none
    cdef int64_t* renews           # [expert]: is a RenewedModel
    cdef int64_t* paused           # [expert]: asked and taught in one round of PAUSE_INTERVAL
    cdef int64_t* disabled         # [expert]: for good
    cdef Temperature* temperature  # [expert]
    cdef double* usual             # [class][expert]: running mean of the logits, which stand in while it is paused
    cdef double* logit             # [expert][class]
    cdef double* calibrated        # [expert and stack][class]
    cdef double* score             # [class]
    cdef int64_t* answered         # [expert]: class with the largest score, of those that renew themselves
    cdef InstanceViews views

    cdef int add_experts(self, object experts) except -1
    cdef bint rewrites(self) noexcept nogil
    cdef void rewrite(self, View* v) noexcept nogil
    cdef bint stands_aside(self, int e) noexcept nogil
    cdef View* seen_by(self, int e, View* v) noexcept nogil
    cdef Py_ssize_t origin(self, int e, Py_ssize_t i) noexcept nogil
    cdef double magnitude_in(self, int e, int32_t slot) noexcept nogil
    cdef Py_ssize_t width(self) noexcept nogil
    cdef bint idle(self, int e, int64_t step) noexcept nogil
    cdef bint too_many_classes(self, int e) noexcept nogil
    cdef bint too_large(self, int e, Py_ssize_t classes) noexcept nogil
    cdef void ask(self, View* v) noexcept nogil
    cdef void share_answers(self, int64_t step) noexcept nogil
    cdef bint renewed(self, int e, int64_t step) noexcept nogil
    cdef void teach(self, View* v, int y, double w) noexcept nogil
