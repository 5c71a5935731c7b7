from libc.stdint cimport int32_t, int64_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold.auto._categories cimport CategoriesModel
from varifold.auto._error_watch cimport ErrorWatch
from varifold.auto._expert_set cimport ExpertSet
from varifold.auto._guard cimport Guard
from varifold.auto._stacking cimport Stack, Temperature


# Whether, and from when on, an expert may be paused.
cdef enum Pausing:
    NEVER
    LATE
    EARLY


cdef class ClassificationMixture(Model):
    cdef ExpertSet experts
    cdef CategoriesModel categories    # one of the models, or None
    cdef int categories_at             # its expert, -1 for none
    cdef int64_t* pausing              # [expert]: one of Pausing
    cdef int64_t* matrix_side          # [expert]: rows of the matrices that it holds per class; 0: none
    cdef int64_t* restarts             # [expert]: is a RestartingModel
    cdef int64_t* paused               # [expert]: takes part in one of PAUSE_INTERVAL instances
    cdef double* excess_loss           # [expert]: running mean of its log loss less the mixture's
    cdef double* stack_use             # [expert]: running mean of how far it moves the stack's logits
    cdef double* usual_logits          # [class][expert]: running means, used in place of a paused expert's logits
    cdef Temperature* temperature      # [expert]
    cdef Stack stack
    cdef Temperature* final            # of the mixture
    cdef double final_variance         # of its temperature at the start, never exceeded
    cdef Guard* guard
    cdef double guard_strength, guard_full
    cdef double threshold
    cdef double* class_weight          # [class]: weight learned
    cdef double* recent_losses         # [4]: mean error and log loss, each of the last 50 and the last 1,000
    cdef ErrorWatch watch

    # of the instance at hand
    cdef double* score                 # [class]: of one expert
    cdef double* logit                 # [expert][class]
    cdef double* calibrated            # [expert and stack][class]: probabilities
    cdef int64_t* predicted            # [expert]: class with the largest score, of those that restart
    cdef double* mixed                 # [class]: probabilities of the mixture,
    cdef double* mixed_logit           # [class]: their logits,
    cdef double* sharpened             # [class]: the mixture at its temperature,
    cdef double* output                # [class]: and after the guard
    cdef double* loss                  # [expert and stack]
    cdef double* share                 # [slot]: contributions of one expert

    cdef bint has_wide_columns(self) noexcept nogil
    cdef bint exceeds_classes(self, int e) noexcept nogil
    cdef bint exceeds_matrices(self, int e, Py_ssize_t classes) noexcept nogil
    cdef Py_ssize_t columns(self) noexcept nogil
    cdef bint takes_no_part(self, int e) noexcept nogil
    cdef bint is_idle(self, int e, int64_t step) noexcept nogil
    cdef void bound_columns(self, View* v) noexcept nogil
    cdef View* seen_by(self, int e, View* v) noexcept nogil
    cdef Py_ssize_t origin(self, int e, Py_ssize_t i) noexcept nogil
    cdef double magnitude_in(self, int e, int32_t slot) noexcept nogil
    cdef void predict_all(self, View* v) noexcept nogil
    cdef void predict_experts(self, View* v) noexcept nogil
    cdef void mix(self, int64_t step) noexcept nogil
    cdef void sharpen(self) noexcept nogil
    cdef void apply_guard(self) noexcept nogil
    cdef double log_threshold(self, int c) noexcept nogil
    cdef void learn_combination(self, View* v, int y, double w) noexcept nogil
    cdef void learn_experts(self, View* v, int y, double w) noexcept nogil
    cdef void pass_predictions(self, int64_t step) noexcept nogil
    cdef bint was_restarted(self, int e, int64_t step) noexcept nogil
    cdef void update_pauses(self, int64_t step) noexcept nogil
    cdef void update_use(self, int e) noexcept nogil
    cdef void record(self, int64_t step, int y) noexcept nogil
    cdef void current_weights(self, double* out) noexcept nogil
