"""The default learner's mathematics: experts of every kind, calibrated, stacked and mixed by their log loss.

Each expert's probabilities are sharpened or softened by a temperature learned online. The answer is the Bayesian
mixture of the calibrated experts and of a stack over all of them, with a little of the weight handed round each time:
its summed log loss exceeds that of the best of them by at most ln(k + 1) plus the price of sharing, at any time.
"""

import numpy as np

from libc.math cimport fabs, log
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdio cimport fprintf, stderr
from libc.stdlib cimport abort, calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold._core.experts cimport (
    FIXED, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_size, experts_weights,
)
from varifold._core.model cimport Model, model_calls
from varifold._core.space cimport Space
from varifold._core.stacking cimport (
    heat_learn, soften, stack_answer, stack_free, stack_learn, stack_make, stack_resize,
)
from varifold._core.view cimport View

cdef double SHARPEST = 8.0     # largest logit an expert may bring
cdef double DOZES = 0.05       # a costly expert whose log loss is lately so much above the mixture's is put to sleep,
cdef double UNUSED = 0.1       # if the stack makes no more use of it than this
cdef int64_t NAP = 8           # and is asked and taught once in so many rounds
cdef int64_t FIRST_NAP = 500   # at the earliest after so many


cdef class FrequencyModel(Model):
    """The class frequencies so far, whatever the instance: what every other expert has to beat."""

    def __dealloc__(self):
        free(self.counts)

    cdef int add_class(self) except -1:
        self.counts = <double*> realloc(self.counts, (self.classes + 1) * sizeof(double))
        if self.counts == NULL:
            raise MemoryError
        self.counts[self.classes] = 0.0
        Model.add_class(self)
        return 0

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = log(self.counts[c] + 0.5)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.counts[y] += w

    def dump(self, Py_ssize_t size):
        cdef int c
        counts = np.array([self.counts[c] for c in range(self.classes)], dtype=np.float64)
        return {**Model.dump(self, size), "counts": counts}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int c
        Model.fill(self, arrays, capacity)
        self.counts = <double*> realloc(self.counts, (self.classes + 1) * sizeof(double))
        if self.counts == NULL:
            raise MemoryError
        for c in range(self.classes):
            self.counts[c] = arrays["counts"][c]


cdef class AutoModel(Model):
    """Experts (name, model, sees columns only, costly, temperature to start with) and what combines them."""

    def __cinit__(self, experts, double share=0.01, double drift=1e-5, double floor=1e-3,
                  double stack_weight=1.0, double stack_prior=0.5, double bias_prior=0.05, double heat_prior=0.5,
                  double threshold=0.5):
        cdef int e
        self.names = [name for name, *_ in experts]
        self.models = [model for _, model, *_ in experts]
        self.k = len(self.models)
        self.sees_empty = True
        self.wants_columns = True
        self.drift = drift
        self.floor = floor
        self.threshold = threshold
        self.calls = model_calls()
        self.inner = <void**> calloc(self.k, sizeof(void*))
        self.on_columns = <int*> calloc(self.k, sizeof(int))
        self.costly = <int*> calloc(self.k, sizeof(int))
        self.asleep = <int*> calloc(self.k, sizeof(int))
        self.lag = <double*> calloc(self.k, sizeof(double))
        self.heat = <Temperature*> calloc(self.k, sizeof(Temperature))
        self.portion = <double*> calloc(self.k + 1, sizeof(double))
        self.loss = <double*> calloc(self.k + 1, sizeof(double))
        self.history = <double*> calloc(HISTORY * (self.k + 1), sizeof(double))
        self.history_step = <int64_t*> calloc(HISTORY, sizeof(int64_t))
        self.history_every = 1
        if (self.inner == NULL or self.on_columns == NULL or self.costly == NULL or self.asleep == NULL
                or self.lag == NULL or self.heat == NULL or self.portion == NULL or self.loss == NULL or self.history == NULL
                or self.history_step == NULL
                or stack_make(&self.stack, self.k, stack_weight / self.k, stack_prior, bias_prior) < 0
                or experts_make(&self.weights, self.k + 1, FIXED, 1.0, share) < 0):
            raise MemoryError
        for e in range(self.k):
            self.inner[e] = <void*> (<Model> self.models[e])
            self.on_columns[e] = experts[e][2]
            self.costly[e] = experts[e][3]
            self.heat[e].a = experts[e][4]
            self.heat[e].variance = heat_prior
            self.heat[e].prior = heat_prior

    def __dealloc__(self):
        free(self.inner)
        free(self.on_columns)
        free(self.costly)
        free(self.asleep)
        free(self.lag)
        free(self.heat)
        free(self.portion)
        free(self.loss)
        free(self.history)
        free(self.history_step)
        free(self.logit)
        free(self.calibrated)
        free(self.mixed)
        free(self.score)
        free(self.met)
        free(self.share)
        free(self.slot_scratch)
        free(self.x_scratch)
        free(self.raw_scratch)
        free(self.fresh_scratch)
        free(self.ones)
        stack_free(&self.stack)
        experts_free(&self.weights)

    # ---------------------------------------------------------------- the duties of a model

    cdef int attach(self, Space space) except -1:
        for m in self.models:
            (<Model> m).attach(space)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        for m in self.models:
            (<Model> m).grow(capacity)
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        for m in self.models:
            (<Model> m).add_class()
        Model.add_class(self)
        self.room_for_classes(self.classes)
        self.met[self.classes - 1] = 0.0
        return 0

    cdef int room_for_classes(self, int classes) except -1:
        self.logit = <double*> realloc(self.logit, self.k * classes * sizeof(double))
        self.calibrated = <double*> realloc(self.calibrated, (self.k + 1) * classes * sizeof(double))
        self.mixed = <double*> realloc(self.mixed, classes * sizeof(double))
        self.score = <double*> realloc(self.score, classes * sizeof(double))
        self.met = <double*> realloc(self.met, classes * sizeof(double))
        if (self.logit == NULL or self.calibrated == NULL or self.mixed == NULL or self.score == NULL
                or self.met == NULL
                or stack_resize(&self.stack, classes) < 0):
            raise MemoryError
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int e
        for e in range(self.k):
            self.calls.forget(self.inner[e], slot)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef int e
        cdef double total = 0.0
        experts_weights(&self.weights, self.portion)
        for e in range(self.k):
            total += (self.portion[e] + self.portion[self.k] / self.k) * self.calls.magnitude(self.inner[e], slot)
        return total

    # ---------------------------------------------------------------- views

    cdef void reserve(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i
        if n + 2 <= self.scratch_room:
            return
        self.scratch_room = 2 * n + 16
        self.slot_scratch = <int32_t*> realloc(self.slot_scratch, self.scratch_room * sizeof(int32_t))
        self.x_scratch = <double*> realloc(self.x_scratch, self.scratch_room * sizeof(double))
        self.raw_scratch = <double*> realloc(self.raw_scratch, self.scratch_room * sizeof(double))
        self.ones = <double*> realloc(self.ones, self.scratch_room * sizeof(double))
        self.fresh_scratch = <uint8_t*> realloc(self.fresh_scratch, 2 * self.scratch_room)
        if (self.slot_scratch == NULL or self.x_scratch == NULL or self.raw_scratch == NULL or self.ones == NULL
                or self.fresh_scratch == NULL):
            fprintf(stderr, "varifold: out of memory while learning\n")
            abort()
        for i in range(self.scratch_room):
            self.ones[i] = 1.0
        memset(self.fresh_scratch, 0, 2 * self.scratch_room)

    cdef View* as_columns(self, View* v) noexcept nogil:
        """Which columns are present, as an instance of ones with the intercept first."""
        cdef View* p = &self.columns
        self.reserve(v.n + v.columns)
        self.slot_scratch[0] = 0
        memcpy(self.slot_scratch + 1, v.column, v.columns * sizeof(int32_t))
        p.n = v.columns + 1
        p.slot = self.slot_scratch
        p.x = self.ones
        p.raw = self.ones
        p.fresh = self.fresh_scratch
        p.columns = v.columns
        p.column = v.column
        p.step = v.step
        p.known = v.known
        return p

    cdef View* without_fresh(self, View* v) noexcept nogil:
        """The instance as it was predicted: slots that this round brings are left out."""
        cdef Py_ssize_t i, n = 0
        cdef View* p = &self.known
        for i in range(v.n):
            if v.fresh[i] and v.slot[i] != 0:
                break
        else:
            return v
        self.reserve(v.n + v.columns)
        p[0] = v[0]
        p.slot = self.slot_scratch
        p.x = self.x_scratch
        p.raw = self.raw_scratch
        p.fresh = self.fresh_scratch + self.scratch_room
        for i in range(v.n):
            if v.fresh[i] and v.slot[i] != 0:
                continue
            p.slot[n] = v.slot[i]
            p.x[n] = v.x[i]
            p.raw[n] = v.raw[i]
            n += 1
        p.n = n
        return p

    # ---------------------------------------------------------------- asking and teaching

    cdef bint idle(self, int e, int64_t step) noexcept nogil:
        """Whether the expert sleeps through this round."""
        return self.asleep[e] and step % NAP != 0

    cdef void consult(self, View* v) noexcept nogil:
        """Logits, calibrated probabilities and their mixture for an instance."""
        cdef int e, c, k = self.classes
        cdef double mean, total
        cdef double* logit
        cdef double* p
        for e in range(self.k):
            logit = self.logit + e * k
            p = self.calibrated + e * k
            if self.idle(e, v.step):
                memset(logit, 0, k * sizeof(double))
                continue
            if not self.on_columns[e]:
                self.calls.scores(self.inner[e], v, self.score)
                self.calls.proba(self.inner[e], self.score, p)
        for e in range(self.k):
            if self.on_columns[e] and not self.idle(e, v.step):
                p = self.calibrated + e * k
                self.calls.scores(self.inner[e], self.as_columns(v), self.score)
                self.calls.proba(self.inner[e], self.score, p)
        for e in range(self.k):
            if self.idle(e, v.step):
                continue
            logit = self.logit + e * k
            p = self.calibrated + e * k
            mean = 0.0
            for c in range(k):
                logit[c] = log(max(p[c], 1e-12))
                mean += logit[c] / k
            for c in range(k):
                logit[c] = min(max(logit[c] - mean, -SHARPEST), SHARPEST)
                p[c] = self.heat[e].a * logit[c]
            soften(k, p, p)
        stack_answer(&self.stack, self.logit, self.calibrated + self.k * k)
        experts_weights(&self.weights, self.portion)
        total = 0.0
        memset(self.mixed, 0, k * sizeof(double))
        for e in range(self.k + 1):
            if e < self.k and self.idle(e, v.step):
                continue
            total += self.portion[e]
            for c in range(k):
                self.mixed[c] += self.portion[e] * self.calibrated[e * k + c]
        for c in range(k):
            self.mixed[c] = (1.0 - self.floor) * self.mixed[c] / total + self.floor / k

    cdef double handicap(self, int c) noexcept nogil:
        """What a label's log-probability is held against: of two labels the rarer answers from the threshold on."""
        if self.classes != 2:
            return 0.0
        return log(self.threshold if (c == 1) == (self.met[1] <= self.met[0]) else 1.0 - self.threshold)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.consult(v)
        for c in range(self.classes):
            out[c] = log(self.mixed[c]) - self.handicap(c)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = scores[c] + self.handicap(c)
        soften(self.classes, out, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int e, k = self.classes
        if k > 1:
            self.consult(self.without_fresh(v))
            for e in range(self.k + 1):
                if e < self.k and self.idle(e, v.step):
                    self.loss[e] = -log(self.mixed[y])
                else:
                    self.loss[e] = -log((1.0 - self.floor) * self.calibrated[e * k + y] + self.floor / k)
                    if e < self.k:
                        self.lag[e] += (self.loss[e] + log(self.mixed[y]) - self.lag[e]) / 50.0
            stack_learn(&self.stack, self.logit, self.calibrated + self.k * k, y, w, self.drift)
            for e in range(self.k):
                if not self.idle(e, v.step):
                    heat_learn(&self.heat[e], k, self.logit + e * k, self.calibrated + e * k, y, w, self.drift)
            experts_learn(&self.weights, self.loss, w)
            self.remember(v.step, y)
        self.met[y] += w
        for e in range(self.k):
            if not self.idle(e, v.step):
                self.calls.learn(self.inner[e], self.as_columns(v) if self.on_columns[e] else v, y, w)
        if k > 1 and v.step >= FIRST_NAP:
            for e in range(self.k):
                self.asleep[e] = self.costly[e] and self.lag[e] > DOZES and fabs(self.stack.mean[e]) < UNUSED

    cdef void remember(self, int64_t step, int y) noexcept nogil:
        """Keep up to HISTORY weight vectors, evenly spread over the stream so far, and the running losses."""
        cdef int e, c, best = 0
        cdef int64_t i
        cdef double wrong, loss = -log(self.mixed[y])
        for c in range(1, self.classes):
            if self.mixed[c] > self.mixed[best]:
                best = c
        wrong = best != y
        if step < 20:
            self.watch[0] = self.watch[1] = (self.watch[1] * step + wrong) / (step + 1)
            self.watch[2] = self.watch[3] = (self.watch[3] * step + loss) / (step + 1)
        else:
            self.watch[0] += (wrong - self.watch[0]) / 50.0
            self.watch[1] += (wrong - self.watch[1]) / min(<double> step, 1000.0)
            self.watch[2] += (loss - self.watch[2]) / 50.0
            self.watch[3] += (loss - self.watch[3]) / min(<double> step, 1000.0)
        if step % self.history_every:
            return
        if self.history_count == HISTORY:
            for i in range(HISTORY // 2):
                self.history_step[i] = self.history_step[2 * i]
                memcpy(self.history + i * (self.k + 1), self.history + 2 * i * (self.k + 1),
                       (self.k + 1) * sizeof(double))
            self.history_count = HISTORY // 2
            self.history_every *= 2
            if step % self.history_every:
                return
        self.history_step[self.history_count] = step + 1
        experts_weights(&self.weights, self.history + self.history_count * (self.k + 1))
        self.history_count += 1

    # ---------------------------------------------------------------- explaining and keeping

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Experts' contributions, each at its part in the answer; what is not additive goes to the intercept."""
        cdef int e
        cdef Py_ssize_t i
        cdef double part, total = 0.0
        memset(out, 0, v.n * sizeof(double))
        self.consult(v)
        if v.n > self.share_room:
            self.share_room = 2 * v.n
            self.share = <double*> realloc(self.share, self.share_room * sizeof(double))
            if self.share == NULL:
                abort()
        for e in range(self.k):
            if self.on_columns[e] or self.idle(e, v.step):
                continue
            part = self.portion[e] * self.heat[e].a + self.portion[self.k] * self.stack.mean[e]
            self.calls.contributions(self.inner[e], v, label, self.share)
            for i in range(v.n):
                out[i] += part * self.share[i]
        for i in range(1, v.n):
            total += out[i]
        out[0] = log(self.mixed[label]) - self.handicap(label) - total

    def expert_weights(self):
        """Weight by expert now, the stack last."""
        cdef double[::1] out = np.zeros(self.k + 1)
        experts_weights(&self.weights, &out[0])
        return dict(zip([*self.names, "stack"], np.asarray(out).tolist()))

    def weight_history(self):
        """(steps, weights): what the experts weighed over the stream."""
        cdef Py_ssize_t i
        cdef int e
        steps = np.array([self.history_step[i] for i in range(self.history_count)], dtype=np.int64)
        rows = np.array([[self.history[i * (self.k + 1) + e] for e in range(self.k + 1)]
                         for i in range(self.history_count)]).reshape(len(steps), self.k + 1)
        return steps, rows

    def temperatures(self):
        """The factor on each expert's logits."""
        return {name: self.heat[e].a for e, name in enumerate(self.names)}

    def stack_weights(self):
        """The stack's weight of each expert."""
        return {name: self.stack.mean[e] for e, name in enumerate(self.names)}

    def sleeping(self):
        """Experts that are asked and taught only now and then."""
        return [name for e, name in enumerate(self.names) if self.asleep[e]]

    def recent(self):
        """Error and log loss, averaged over about 50 and about 1,000 rounds."""
        return {"error": self.watch[0], "error_long": self.watch[1],
                "log_loss": self.watch[2], "log_loss_long": self.watch[3]}

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
            "asleep": np.array([self.asleep[e] for e in range(self.k)], dtype=np.int64),
            "stack.mean": np.array([self.stack.mean[i] for i in range(d)]),
            "stack.cov": np.array([self.stack.cov[i] for i in range(d * d)]),
            "history.step": steps,
            "history.weights": rows,
            "history.every": np.array([self.history_every], dtype=np.int64),
            "watch": np.array([self.watch[i] for i in range(4)]),
            "met": np.array([self.met[i] for i in range(self.classes)], dtype=np.float64),
        }
        for e in range(self.k):
            for key, array in self.models[e].dump(size).items():
                arrays[f"{e}.{key}"] = array
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int e
        cdef Py_ssize_t i
        cdef double[::1] kept = np.ascontiguousarray(arrays["weights"], dtype=np.float64)
        Model.fill(self, arrays, capacity)
        if kept.shape[0] != experts_size(&self.weights):
            raise ValueError("the arrays belong to other experts")
        experts_fill(&self.weights, &kept[0])
        if self.classes:
            self.room_for_classes(self.classes)
        for i in range(self.classes):
            self.met[i] = arrays["met"][i]
        for e in range(self.k):
            self.heat[e].a, self.heat[e].variance = arrays["heat"][e].tolist()
            self.asleep[e] = arrays["asleep"][e]
            self.lag[e] = arrays["lag"][e]
            prefix = f"{e}."
            self.models[e].fill(
                {key[len(prefix):]: a for key, a in arrays.items() if key.startswith(prefix)}, capacity)
        for i in range(self.k + self.classes):
            self.stack.mean[i] = arrays["stack.mean"][i]
        for i in range((self.k + self.classes) ** 2):
            self.stack.cov[i] = arrays["stack.cov"][i]
        self.history_every = arrays["history.every"][0]
        self.history_count = len(arrays["history.step"])
        for i in range(self.history_count):
            self.history_step[i] = arrays["history.step"][i]
            for e in range(self.k + 1):
                self.history[i * (self.k + 1) + e] = arrays["history.weights"][i, e]
        for i in range(4):
            self.watch[i] = arrays["watch"][i]
        self.capacity = capacity

    def notes(self):
        found = []
        for name, model in zip(self.names, self.models):
            found.extend(f"{name}: {note}" for note in model.notes())
        if self.sleeping():
            found.append("asked only now and then, for lack of use: " + ", ".join(self.sleeping()))
        return found

    def nbytes(self):
        return sum(model.nbytes() for model in self.models)
