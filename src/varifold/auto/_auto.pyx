"""The default learner's mathematics: experts of every kind, calibrated, stacked and mixed by their log loss.

Each expert's probabilities are sharpened or softened by a temperature learned online. The answer is the exponentially
weighted mixture of the calibrated experts and of a stack over all of them, with a little of the weight handed round
each time: its summed log loss exceeds that of the best of them by at most ln(k + 4) / eta plus the price of sharing, at
any time. Until the mixture has shown itself better than the class frequencies, an answer other than the most frequent
class has to be surer than that class is frequent; each answer by which it lies behind asks for half as much again. A
label's first instance teaches the experts, not what combines them: nobody could have known.
"""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold.auto._history cimport HISTORY, chronicle_fare, chronicle_free, chronicle_make, chronicle_page
from varifold._numeric.hedge cimport (
    FIXED, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_size, experts_weights,
)
from varifold.auto._views cimport (
    as_columns, forget_last, keep_last, lenses_free, lenses_room, seen_last, without_fresh,
)
from varifold._engine.model cimport Model, model_calls
from varifold._engine.space cimport Space
from varifold.auto._stacking cimport (
    heat_learn, soften, stack_answer, stack_free, stack_learn, stack_make, stack_resize,
)
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

cdef double SHARPEST = 8.0     # largest logit an expert may bring
cdef double DOZES = 0.05       # a costly expert whose log loss is lately so much above the mixture's is put to sleep,
cdef double UNUSED = 0.1       # if it moves the stack's logits no more than this,
cdef int64_t NAP = 8           # and is asked and taught once in so many rounds
cdef int64_t FIRST_NAP = 500   # at the earliest after so many
cdef double AHEAD = 2.0        # answers by which the mixture has to lead the most frequent class to be free of the guard,
cdef double SURER = 2.0        # or nats by which its log loss has to be below that of the class frequencies
cdef double DEEPEST = 10.0     # neither lead falls lower: what is forgiven sooner or later


cdef class AutoModel(Model):
    """Experts and what combines them.

    An expert is (name, model, sees columns only, costly, most slots or 0, temperature to start with, its part in the
    stack to start with, variance of the latter). The stack starts with `trust` times the weight of an expert.
    """

    def __cinit__(self, experts, double share=0.01, double eta=0.5, double drift=1e-5, double floor=1e-3,
                  double trust=4.0, double bias_prior=0.05, double heat_prior=0.1, double threshold=0.5,
                  double guard=1.0):
        cdef int e
        cdef double[::1] parts = np.array([part for *_, part, _ in experts], dtype=np.float64)
        cdef double[::1] doubts = np.array([doubt for *_, doubt in experts], dtype=np.float64)
        self.names = [name for name, *_ in experts]
        self.models = [model for _, model, *_ in experts]
        self.k = len(self.models)
        self.sees_empty = True
        self.wants_columns = True
        self.drift = drift
        self.floor = floor
        self.threshold = threshold
        self.guard = guard
        self.calls = model_calls()
        self.inner = <void**> calloc(self.k, sizeof(void*))
        self.on_columns = <int*> calloc(self.k, sizeof(int))
        self.costly = <int*> calloc(self.k, sizeof(int))
        self.asleep = <int*> calloc(self.k, sizeof(int))
        self.lag = <double*> calloc(self.k, sizeof(double))
        self.use = <double*> calloc(self.k, sizeof(double))
        self.heat = <Temperature*> calloc(self.k, sizeof(Temperature))
        self.portion = <double*> calloc(self.k + 1, sizeof(double))
        self.loss = <double*> calloc(self.k + 1, sizeof(double))
        self.most = <Py_ssize_t*> calloc(self.k, sizeof(Py_ssize_t))
        self.aside = <int*> calloc(self.k, sizeof(int))
        if (self.inner == NULL or self.on_columns == NULL or self.costly == NULL or self.asleep == NULL
                or self.lag == NULL or self.use == NULL or self.heat == NULL or self.portion == NULL or self.loss == NULL
                or self.most == NULL or self.aside == NULL or chronicle_make(&self.past, self.k + 1) < 0
                or stack_make(&self.stack, self.k, &parts[0], &doubts[0], bias_prior) < 0
                or experts_make(&self.weights, self.k + 1, FIXED, eta, share) < 0):
            raise MemoryError
        for e, (_, model, on_columns, costly, most, heat, _, _) in enumerate(experts):
            self.weights.held[e] = -log(trust)
            self.inner[e] = <void*> (<Model?> model)
            self.on_columns[e] = on_columns
            self.costly[e] = costly
            self.heat[e].a = heat
            self.most[e] = most
            self.heat[e].variance = heat_prior
            self.heat[e].prior = heat_prior

    def __dealloc__(self):
        free(self.inner)
        free(self.on_columns)
        free(self.costly)
        free(self.asleep)
        free(self.lag)
        free(self.use)
        free(self.usual)
        free(self.heat)
        free(self.portion)
        free(self.loss)
        free(self.most)
        free(self.aside)
        free(self.logit)
        free(self.calibrated)
        free(self.mixed)
        free(self.given)
        free(self.score)
        free(self.met)
        free(self.share)
        lenses_free(&self.lenses)
        chronicle_free(&self.past)
        stack_free(&self.stack)
        experts_free(&self.weights)

    # ---------------------------------------------------------------- the duties of a model

    cdef int attach(self, Space space) except -1:
        for m in self.models:
            (<Model> m).attach(space)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef int e
        cdef void* p = realloc(self.share, (capacity + 1) * sizeof(double))
        if p != NULL:
            self.share = <double*> p
        if p == NULL or lenses_room(&self.lenses, capacity + 1) < 0:
            raise MemoryError
        for e in range(self.k):
            if not self.aside[e]:
                (<Model> self.models[e]).grow(capacity)
        self.capacity = capacity
        forget_last(&self.lenses)
        return 0

    cdef int add_class(self) except -1:
        cdef int e
        for e in range(self.k):
            if not self.aside[e]:
                (<Model> self.models[e]).add_class()
        Model.add_class(self)
        self.room_for_classes(self.classes)
        self.met[self.classes - 1] = 0.0
        memset(self.usual + (self.classes - 1) * self.k, 0, self.k * sizeof(double))
        forget_last(&self.lenses)
        return 0

    cdef int room_for_classes(self, int classes) except -1:
        self.logit = <double*> realloc(self.logit, self.k * classes * sizeof(double))
        self.calibrated = <double*> realloc(self.calibrated, (self.k + 1) * classes * sizeof(double))
        self.mixed = <double*> realloc(self.mixed, classes * sizeof(double))
        self.given = <double*> realloc(self.given, classes * sizeof(double))
        self.score = <double*> realloc(self.score, classes * sizeof(double))
        self.met = <double*> realloc(self.met, classes * sizeof(double))
        self.usual = <double*> realloc(self.usual, classes * self.k * sizeof(double))
        if (self.logit == NULL or self.calibrated == NULL or self.mixed == NULL or self.score == NULL
                or self.met == NULL or self.given == NULL or self.usual == NULL
                or stack_resize(&self.stack, classes) < 0):
            raise MemoryError
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int e
        for e in range(self.k):
            if not self.aside[e]:
                self.calls.forget(self.inner[e], slot)
        forget_last(&self.lenses)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef int e
        cdef double total = 0.0
        experts_weights(&self.weights, self.portion)
        for e in range(self.k):
            if self.aside[e]:
                continue
            total += (self.portion[e] + self.portion[self.k] / self.k) * self.calls.magnitude(self.inner[e], slot)
        return total

    # ---------------------------------------------------------------- asking and teaching

    cdef bint idle(self, int e, int64_t step) noexcept nogil:
        """Whether the expert stands aside, or sleeps through this round."""
        return self.aside[e] or (self.asleep[e] and step % NAP != 0)

    cdef void consult(self, View* v) noexcept nogil:
        """The experts' answers and the mixture's; what was found for the same instance a moment ago stands."""
        if seen_last(&self.lenses, v):
            return
        keep_last(&self.lenses, v)
        self.ask(v)
        self.combine(v.step)
        self.give()

    cdef void ask(self, View* v) noexcept nogil:
        """Logits and calibrated probabilities by expert."""
        cdef int e, c, k = self.classes
        cdef double mean
        cdef double* logit
        cdef double* p
        for e in range(self.k):
            logit = self.logit + e * k
            p = self.calibrated + e * k
            if self.idle(e, v.step):
                for c in range(k):
                    logit[c] = 0.0 if self.aside[e] else self.usual[c * self.k + e]
                continue
            self.calls.scores(self.inner[e], as_columns(&self.lenses, v) if self.on_columns[e] else v, self.score)
            self.calls.proba(self.inner[e], self.score, p)
            mean = 0.0
            for c in range(k):
                logit[c] = log(p[c] if p[c] > 1e-12 else 1e-12)  # what is not a number says nothing
                mean += logit[c] / k
            for c in range(k):
                logit[c] = min(max(logit[c] - mean, -SHARPEST), SHARPEST)
                p[c] = self.heat[e].a * logit[c]
            soften(k, p, p)

    cdef void combine(self, int64_t step) noexcept nogil:
        """The stack's answer and the mixture of all."""
        cdef int e, c, k = self.classes
        cdef double total = 0.0
        stack_answer(&self.stack, self.logit, self.calibrated + self.k * k)
        experts_weights(&self.weights, self.portion)
        memset(self.mixed, 0, k * sizeof(double))
        for e in range(self.k + 1):
            if e < self.k and self.idle(e, step):
                continue
            total += self.portion[e]
            for c in range(k):
                self.mixed[c] += self.portion[e] * self.calibrated[e * k + c]
        for c in range(k):
            self.mixed[c] = (1.0 - self.floor) * self.mixed[c] / total + self.floor / k

    cdef int common(self) noexcept nogil:
        """The most frequent class."""
        return largest(self.classes, self.met)

    cdef double frequency(self, int c) noexcept nogil:
        """Share of the label so far, half an instance added to each."""
        cdef int i
        cdef double total = 0.5 * self.classes
        for i in range(self.classes):
            total += self.met[i]
        return (self.met[c] + 0.5) / total

    cdef void give(self) noexcept nogil:
        """The mixture; while it is not proven better, the most frequent class unless it is sure of another."""
        cdef int best = largest(self.classes, self.mixed), common = self.common()
        cdef double both = self.mixed[best] + self.mixed[common]
        cdef double asked = 1.0 + 0.5 * max(self.behind, 0.0)
        memcpy(self.given, self.mixed, self.classes * sizeof(double))
        if best == common or self.right_lead >= asked * AHEAD or self.loss_lead >= asked * SURER:
            return
        asked *= self.guard * (self.frequency(common) - self.frequency(best))
        if self.mixed[best] - self.mixed[common] < asked:
            self.given[common] = 0.51 * both
            self.given[best] = 0.49 * both

    cdef void watch(self, int y, double w) noexcept nogil:
        """By how much the mixture leads the most frequent class, in answers and in log loss, and the answers given."""
        cdef int best = largest(self.classes, self.mixed), common = self.common()
        self.behind += w * ((y == common) - (y == largest(self.classes, self.given)))
        self.right_lead = max(self.right_lead + w * ((y == best) - (y == common)), -DEEPEST)
        self.loss_lead = max(self.loss_lead + w * log(self.mixed[y] / self.frequency(y)), -DEEPEST)

    cdef double handicap(self, int c) noexcept nogil:
        """What a label's log-probability is held against: of two labels the rarer answers from the threshold on."""
        if self.classes != 2:
            return 0.0
        return log(self.threshold if (c == 1) == (self.met[1] <= self.met[0]) else 1.0 - self.threshold)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.consult(v)
        for c in range(self.classes):
            out[c] = log(self.given[c]) - self.handicap(c)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = scores[c] + self.handicap(c)
        soften(self.classes, out, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int e, k = self.classes
        if k > 1 and self.met[y] > 0.0:
            self.consult(without_fresh(&self.lenses, v))
            self.remember(v.step, y)
            for e in range(self.k + 1):
                if e < self.k and self.idle(e, v.step):
                    self.loss[e] = max(self.lag[e], 0.0) - log(self.mixed[y])
                else:
                    self.loss[e] = -log((1.0 - self.floor) * self.calibrated[e * k + y] + self.floor / k)
                    if e < self.k:
                        self.lag[e] += (self.loss[e] + log(self.mixed[y]) - self.lag[e]) / 50.0
            stack_learn(&self.stack, self.logit, self.calibrated + self.k * k, y, w, self.drift)
            for e in range(self.k):
                if not self.idle(e, v.step):
                    self.weigh(e)
                    heat_learn(&self.heat[e], k, self.logit + e * k, self.calibrated + e * k, y, w, self.drift)
            experts_learn(&self.weights, self.loss, w)
            self.watch(y, w)
        self.met[y] += w
        forget_last(&self.lenses)
        for e in range(self.k):
            if self.most[e] and self.space.size > self.most[e]:
                self.aside[e] = 1
            if not self.idle(e, v.step):
                self.calls.learn(self.inner[e], as_columns(&self.lenses, v) if self.on_columns[e] else v, y, w)
        if k > 1 and v.step >= FIRST_NAP:
            for e in range(self.k):
                self.asleep[e] = self.costly[e] and self.lag[e] > DOZES and self.use[e] < UNUSED

    cdef void weigh(self, int e) noexcept nogil:
        """What the stack makes of an expert lately: how far its weighted logits move from their usual values."""
        cdef int c, k = self.classes
        cdef double moved, reach = 0.0
        for c in range(k):
            moved = self.logit[e * k + c] - self.usual[c * self.k + e]
            reach += moved * moved
            self.usual[c * self.k + e] += moved / 50.0
        self.use[e] += (fabs(self.stack.mean[e]) * sqrt(reach / k) - self.use[e]) / 50.0

    cdef void remember(self, int64_t step, int y) noexcept nogil:
        """How the answer fared, and now and then the weights it was made with."""
        cdef double* page
        chronicle_fare(&self.past, step, largest(self.classes, self.given) != y, -log(self.given[y]))
        page = chronicle_page(&self.past, step)
        if page != NULL:
            memcpy(page, self.portion, (self.k + 1) * sizeof(double))

    # ---------------------------------------------------------------- explaining and keeping

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Experts' contributions, each at its part in the answer; what is not additive goes to the intercept."""
        cdef int e
        cdef Py_ssize_t i
        cdef double part, total = 0.0
        memset(out, 0, v.n * sizeof(double))
        self.consult(v)
        for e in range(self.k):
            if self.on_columns[e] or self.idle(e, v.step):
                continue
            part = self.portion[e] * self.heat[e].a + self.portion[self.k] * self.stack.mean[e]
            self.calls.contributions(self.inner[e], v, label, self.share)
            for i in range(v.n):
                out[i] += part * self.share[i]
        for i in range(1, v.n):
            total += out[i]
        out[0] = log(self.given[label]) - self.handicap(label) - total

    def expert_weights(self):
        """Weight by expert now, the stack last."""
        cdef double[::1] out = np.zeros(self.k + 1)
        experts_weights(&self.weights, &out[0])
        return dict(zip([*self.names, "stack"], np.asarray(out).tolist()))

    def weight_history(self):
        """(steps, weights): what the experts weighed over the stream."""
        cdef Py_ssize_t i
        cdef int e
        steps = np.array([self.past.step[i] for i in range(self.past.count)], dtype=np.int64)
        rows = np.array([[self.past.weights[i * (self.k + 1) + e] for e in range(self.k + 1)]
                         for i in range(self.past.count)]).reshape(len(steps), self.k + 1)
        return steps, rows

    def temperatures(self):
        """The factor on each expert's logits."""
        return {name: self.heat[e].a for e, name in enumerate(self.names)}

    def stack_weights(self):
        """The stack's weight of each expert."""
        return {name: self.stack.mean[e] for e, name in enumerate(self.names)}

    def set_aside(self):
        """Experts that the number of features has put out of the running for good."""
        return [name for e, name in enumerate(self.names) if self.aside[e]]

    def sleeping(self):
        """Experts that are asked and taught only now and then."""
        return [name for e, name in enumerate(self.names) if self.asleep[e] and not self.aside[e]]

    def recent(self):
        """Error and log loss, averaged over about 50 and about 1,000 rounds."""
        return {"error": self.past.watch[0], "error_long": self.past.watch[1],
                "log_loss": self.past.watch[2], "log_loss_long": self.past.watch[3]}

    def dump(self, Py_ssize_t size):
        cdef int e
        cdef Py_ssize_t i, d = self.k + self.stack.classes
        cdef double[::1] kept = np.zeros(experts_size(&self.weights))
        experts_dump(&self.weights, &kept[0])
        steps, rows = self.weight_history()
        arrays = {
            **Model.dump(self, size),
            "weights": np.asarray(kept),
            "heat": np.array([[self.heat[e].a, self.heat[e].variance] for e in range(self.k)]),
            "lag": np.array([self.lag[e] for e in range(self.k)]),
            "use": np.array([self.use[e] for e in range(self.k)]),
            "usual": np.array([self.usual[i] for i in range(self.k * self.classes)]),
            "asleep": np.array([self.asleep[e] for e in range(self.k)], dtype=np.int64),
            "aside": np.array([self.aside[e] for e in range(self.k)], dtype=np.int64),
            "leads": np.array([self.right_lead, self.loss_lead, self.behind]),
            "stack.mean": np.array([self.stack.mean[i] for i in range(d)]),
            "stack.cov": np.array([self.stack.cov[i] for i in range(d * d)]),
            "history.step": steps,
            "history.weights": rows,
            "history.every": np.array([self.past.every], dtype=np.int64),
            "watch": np.array([self.past.watch[i] for i in range(4)]),
            "met": np.array([self.met[i] for i in range(self.classes)], dtype=np.float64),
        }
        for e in range(self.k):
            if self.aside[e]:
                continue
            for key, array in self.models[e].dump(size).items():
                arrays[f"{e}.{key}"] = array
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int e
        cdef Py_ssize_t i
        cdef double[::1] kept = checked_array(arrays, "weights", "f", (None,))
        Model.fill(self, arrays, capacity)
        if kept.shape[0] != experts_size(&self.weights):
            raise ValueError("the arrays belong to other experts")
        d = self.k + self.classes
        for name, shape in (("met", (self.classes,)), ("heat", (self.k, 2)), ("lag", (self.k,)), ("use", (self.k,)),
                            ("usual", (self.k * self.classes,)), ("stack.mean", (d,)),
                            ("stack.cov", (d * d,)), ("watch", (4,))):
            checked_array(arrays, name, "f", shape)
        checked_array(arrays, "asleep", "i", (self.k,), 0, 1)
        checked_array(arrays, "aside", "i", (self.k,), 0, 1)
        checked_array(arrays, "leads", "f", (3,))
        checked_array(arrays, "history.every", "i", (1,), 1, 1 << 53)
        held = len(checked_array(arrays, "history.step", "i", (None,), 0))
        checked_array(arrays, "history.weights", "f", (held, self.k + 1))
        if held > HISTORY:
            raise ValueError(f"{held} rows of history")
        experts_fill(&self.weights, &kept[0])
        if self.classes:
            self.room_for_classes(self.classes)
        for i in range(self.classes):
            self.met[i] = arrays["met"][i]
        for i in range(self.k * self.classes):
            self.usual[i] = arrays["usual"][i]
        for e in range(self.k):
            self.heat[e].a, self.heat[e].variance = arrays["heat"][e].tolist()
            self.asleep[e] = arrays["asleep"][e]
            self.lag[e] = arrays["lag"][e]
            self.use[e] = arrays["use"][e]
            self.aside[e] = arrays["aside"][e]
            if self.aside[e]:
                continue
            prefix = f"{e}."
            self.models[e].fill(
                {key[len(prefix):]: a for key, a in arrays.items() if key.startswith(prefix)}, capacity)
        for i in range(self.k + self.classes):
            self.stack.mean[i] = arrays["stack.mean"][i]
        for i in range((self.k + self.classes) ** 2):
            self.stack.cov[i] = arrays["stack.cov"][i]
        self.past.every = arrays["history.every"][0]
        self.past.count = len(arrays["history.step"])
        for i in range(self.past.count):
            self.past.step[i] = arrays["history.step"][i]
            for e in range(self.k + 1):
                self.past.weights[i * (self.k + 1) + e] = arrays["history.weights"][i, e]
        for i in range(4):
            self.past.watch[i] = arrays["watch"][i]
        self.right_lead, self.loss_lead, self.behind = arrays["leads"].tolist()
        AutoModel.grow(self, capacity)

    def calls_python(self):
        return any(model.calls_python() for model in self.models)

    def pending_error(self):
        found = [error for error in [model.pending_error() for model in self.models] if error is not None]
        return found[0] if found else None

    def notes(self):
        found = []
        cdef int e
        for e in range(self.k):
            if self.aside[e]:
                found.append(f"{self.names[e]}: stands aside, there are more than {self.most[e]:,} features")
            else:
                found.extend(f"{self.names[e]}: {note}" for note in self.models[e].notes())
        if self.sleeping():
            found.append("asked only now and then, for lack of use: " + ", ".join(self.sleeping()))
        return found

    def nbytes(self):
        return sum(model.nbytes() for model in self.models)


cdef inline int largest(int n, const double* of) noexcept nogil:
    cdef int c, best = 0
    for c in range(1, n):
        if of[c] > of[best]:
            best = c
    return best
