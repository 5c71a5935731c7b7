"""The default learner's experts: several models over one space, asked for calibrated probabilities and taught together."""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from varifold._engine.model cimport Model, model_calls
from varifold._engine.space cimport Space
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax, softmax
from varifold._numeric.memory cimport allocate
from varifold.auto._categories cimport BOUNDED, COLUMNS, CategoriesModel
from varifold.auto._renewed cimport RenewedModel, changed_at, set_answer
from varifold.auto._views cimport as_columns, forget_last, views_free, views_reserve

from varifold._engine.state import checked_array, fixed, per_class

SEES = ("everything", "columns", "bounded")    # the names of `Sees`,
PAUSING = ("never", "late", "early")           # and of `Pausing`

ctypedef void (*answer_call)(void*, int) noexcept nogil
ctypedef int64_t (*changed_call)(void*) noexcept nogil

cdef double SHARPEST = 8.0         # largest logit an expert may bring
cdef int64_t PAUSE_INTERVAL = 8    # a paused expert is asked and taught once in so many rounds
cdef int MANY_CLASSES = 256        # costly experts are disabled beyond it: some hold a matrix per class
cdef Py_ssize_t MOST_CELLS = 65_536    # numbers in the matrices of an expert, one per class, beyond which it is disabled


cdef class ExpertPool(Model):
    """A subclass hands the experts to add_experts() when it is made."""

    cdef int add_experts(self, object experts) except -1:
        """Make the models of the experts (see `experts.Expert`)."""
        cdef int e, k
        self.names = [expert.name for expert in experts]
        self.models = [expert.model() for expert in experts]
        k = self.k = len(self.models)
        self.sees_empty = True
        self.wants_columns = True
        self.prepares = any(model.prepares for model in self.models)
        self.calls = model_calls()
        self.categories_at = -1
        self.inner = <void**> allocate(k * sizeof(void*))
        if self.inner == NULL:
            raise MemoryError
        self.arrays.scratch(&self.sees, fixed(k))
        self.arrays.scratch(&self.pausing, fixed(k))
        self.arrays.scratch(&self.max_columns, fixed(k))
        self.arrays.scratch(&self.matrix_side, fixed(k))
        self.arrays.scratch(&self.renews, fixed(k))
        self.arrays.scratch(&self.answered, fixed(k))
        self.arrays.declare("paused", &self.paused, fixed(k, low=0, high=1))
        self.arrays.declare("disabled", &self.disabled, fixed(k, low=0, high=1))
        self.arrays.declare("temperature", <double**> &self.temperature, fixed(k, width=2))
        self.arrays.scratch(&self.usual, per_class(width=k))
        self.arrays.scratch(&self.logit, per_class(width=k))
        self.arrays.scratch(&self.calibrated, per_class(width=k + 1))
        self.arrays.scratch(&self.score, per_class())
        for e, (expert, model) in enumerate(zip(experts, self.models)):
            self.inner[e] = <void*> (<Model?> model)
            self.sees[e] = SEES.index(expert.sees)
            if isinstance(model, CategoriesModel):
                self.categories = model
                self.categories_at = e
            self.renews[e] = isinstance(model, RenewedModel)
            self.pausing[e] = PAUSING.index(expert.pausing)
            self.max_columns[e] = expert.max_columns or 0
            self.matrix_side[e] = expert.matrix_side or 0
            self.temperature[e].a = expert.temperature
        return 0

    def __dealloc__(self):
        free(self.inner)
        views_free(&self.views)

    # ---------------------------------------------------------------- memory

    cdef int attach(self, Space space) except -1:
        for m in self.models:
            (<Model> m).attach(space)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef int e
        if views_reserve(&self.views, capacity + 1) < 0:
            raise MemoryError
        for e in range(self.k):
            if not self.disabled[e]:
                (<Model> self.models[e]).grow(capacity)
        forget_last(&self.views)
        return Model.grow(self, capacity)

    cdef bint too_many_classes(self, int e) noexcept nogil:
        """Whether the next class disables the expert."""
        return (self.pausing[e] != NEVER and self.classes >= MANY_CLASSES) or self.too_large(e, self.classes + 1)

    cdef bint too_large(self, int e, Py_ssize_t classes) noexcept nogil:
        """Whether the expert would hold too many numbers in its matrices, one per class."""
        cdef Py_ssize_t side = min(self.space.size - 1, self.matrix_side[e])
        return classes * side * side > MOST_CELLS

    cdef int reserve_class(self) except -1:
        cdef int e
        for e in range(self.k):
            if not self.disabled[e] and not self.too_many_classes(e):
                (<Model> self.models[e]).reserve_class()
        return Model.reserve_class(self)

    cdef int add_class(self) except -1:
        cdef int e
        for e in range(self.k):
            if self.too_many_classes(e):
                self.disabled[e] = 1
            if not self.disabled[e]:
                (<Model> self.models[e]).add_class()
        forget_last(&self.views)
        return Model.add_class(self)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        cdef int e
        if self.rewrites():
            n = self.categories.slots_to_prepare(slots, n)
            slots = self.categories.prepared
        for e in range(self.k):
            if not self.disabled[e] and not (y < 0 and self.too_many_classes(e)):
                self.calls.prepare(self.inner[e], slots, n, n_new, y)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int e
        for e in range(self.k):
            if not self.disabled[e]:
                self.calls.forget(self.inner[e], slot)
        forget_last(&self.views)

    # ---------------------------------------------------------------- asking and teaching

    cdef bint rewrites(self) noexcept nogil:
        """Whether some experts see wide columns otherwise than as they come."""
        return self.categories_at >= 0 and self.categories.wide_columns > 0

    cdef bint idle(self, int e, int64_t step) noexcept nogil:
        """Whether the expert stands aside, or is paused in this round."""
        return self.stands_aside(e) or (self.paused[e] and step % PAUSE_INTERVAL != 0)

    cdef void rewrite(self, View* v) noexcept nogil:
        """Write the instance as experts see it that see wide columns otherwise."""
        if self.rewrites():
            self.categories.rewrite(v)

    cdef bint stands_aside(self, int e) noexcept nogil:
        """Whether the expert is disabled or has nothing to go by; a paused one is asked now and then."""
        return self.disabled[e] or (e == self.categories_at and self.categories.wide_columns == 0)

    cdef View* seen_by(self, int e, View* v) noexcept nogil:
        """The instance as the expert sees it; rewrite() was called for it."""
        if self.sees[e] == COLUMNS:
            return as_columns(&self.views, v)
        return &self.categories.bounded if self.sees[e] == BOUNDED and self.rewrites() else v

    cdef Py_ssize_t origin(self, int e, Py_ssize_t i) noexcept nogil:
        """The entry of the instance that an entry of what the expert sees stands for."""
        return self.categories.origin[i] if self.sees[e] == BOUNDED and self.rewrites() else i

    cdef double magnitude_in(self, int e, int32_t slot) noexcept nogil:
        """What the expert makes of a slot, under the slot and as large as it sees it."""
        if self.sees[e] != BOUNDED or not self.rewrites():
            return self.calls.magnitude(self.inner[e], slot)
        return self.categories.value_of(slot) * self.calls.magnitude(self.inner[e], self.categories.seen_as(slot))

    cdef Py_ssize_t width(self) noexcept nogil:
        """Count the columns."""
        return self.space.size - self.space.indicators

    cdef void ask(self, View* v) noexcept nogil:
        """Logits and calibrated probabilities by expert."""
        cdef int e, c, k = self.classes
        cdef double mean
        cdef double* logit
        cdef double* p
        self.rewrite(v)
        for e in range(self.k):
            logit = self.logit + e * k
            p = self.calibrated + e * k
            if self.idle(e, v.step):
                for c in range(k):
                    logit[c] = 0.0 if self.stands_aside(e) else self.usual[c * self.k + e]
                continue
            self.calls.scores(self.inner[e], self.seen_by(e, v), self.score)
            if self.renews[e]:
                self.answered[e] = argmax(k, self.score)
            self.calls.proba(self.inner[e], self.score, p)
            mean = 0.0
            for c in range(k):
                logit[c] = log(p[c] if p[c] > 1e-12 else 1e-12)  # NaN says nothing
                mean += logit[c] / k
            for c in range(k):
                logit[c] = min(max(logit[c] - mean, -SHARPEST), SHARPEST)
                p[c] = self.temperature[e].a * logit[c]
            softmax(k, p, p)

    cdef void teach(self, View* v, int y, double w) noexcept nogil:
        """Let the experts that are not idle learn the instance; the number of features may disable some."""
        cdef int e
        self.rewrite(v)
        for e in range(self.k):
            if (self.max_columns[e] and self.width() > self.max_columns[e]) or self.too_large(e, self.classes):
                self.disabled[e] = 1
            if e == self.categories_at or not self.idle(e, v.step):
                self.calls.learn(self.inner[e], self.seen_by(e, v), y, w)

    cdef void share_answers(self, int64_t step) noexcept nogil:
        """Tell experts that renew themselves what they have just answered for the instance that comes next."""
        cdef int e
        for e in range(self.k):
            if self.renews[e] and not self.idle(e, step):
                (<answer_call> set_answer)(self.inner[e], <int> self.answered[e])

    cdef bint renewed(self, int e, int64_t step) noexcept nogil:
        """Whether the expert was replaced by a copy of it in this round."""
        return self.renews[e] and (<changed_call> changed_at)(self.inner[e]) == step

    # ---------------------------------------------------------------- looking inside

    def disabled_experts(self):
        """Experts that the number of features or labels has put out of the running for good."""
        return [name for e, name in enumerate(self.names) if self.disabled[e]]

    def paused_experts(self):
        """Experts that are asked and taught only now and then."""
        return [name for e, name in enumerate(self.names) if self.paused[e] and not self.disabled[e]]

    def calls_python(self):
        return any(model.calls_python() for model in self.models)

    def pending_error(self):
        found = [error for error in [model.pending_error() for model in self.models] if error is not None]
        return found[0] if found else None

    def expert_states(self):
        """By expert: what it sees, the columns beyond which it stands aside (or None), its status and the reason."""
        cdef int e
        found = {}
        for e, name in enumerate(self.names):
            status, reason = "active", ""
            if self.stands_aside(e):
                status, reason = "aside", self.reason_of(e)
            elif self.paused[e]:
                status, reason = "paused", "hardly moves the answer: asked and taught in one round of eight"
            found[name] = {"sees": SEES[self.sees[e]], "limit": self.max_columns[e] or None,
                           "status": status, "reason": reason, "notes": tuple(self.models[e].notes())}
        return found

    def reason_of(self, int e):
        """Why an expert stands aside."""
        if not self.disabled[e]:
            return "no column has many levels"
        if self.max_columns[e] and self.width() > self.max_columns[e]:
            return f"there are more than {self.max_columns[e]:,} columns"
        if self.classes <= MANY_CLASSES:
            return f"its matrices, one per label, would hold more than {MOST_CELLS:,} numbers"
        return f"there are more than {MANY_CLASSES:,} labels"

    def wide_columns(self):
        """Names of the string columns with so many levels that experts see a part of them."""
        return self.categories.wide() if self.categories_at >= 0 else []

    def notes(self):
        found = []
        for name, state in self.expert_states().items():
            if state["status"] != "aside":
                found.extend(f"{name}: {note}" for note in state["notes"])
            elif name in self.disabled_experts():
                found.append(f"{name}: stands aside, {state['reason']}")
        if self.paused_experts():
            found.append("asked only now and then, for lack of use: " + ", ".join(self.paused_experts()))
        return found

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef int e
        cdef Py_ssize_t i
        arrays = {**Model.dump(self, size),
                  "usual_logits": np.array([self.usual[i] for i in range(self.k * self.classes)], dtype=np.float64)}
        for e in range(self.k):
            if not self.disabled[e]:
                arrays.update({f"{e}.{key}": array for key, array in self.models[e].dump(size).items()})
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int e
        cdef Py_ssize_t i
        Model.fill(self, arrays, capacity)
        for i, value in enumerate(checked_array(arrays, "usual_logits", "f", (self.k * self.classes,)).tolist()):
            self.usual[i] = value
        for e in range(self.k):
            if not self.disabled[e]:
                prefix = f"{e}."
                self.models[e].fill(
                    {key[len(prefix):]: a for key, a in arrays.items() if key.startswith(prefix)}, capacity)

    def nbytes(self):
        return self.arrays.nbytes() + sum(model.nbytes() for model in self.models)
