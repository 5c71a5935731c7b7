"""The engine: labels, answers and learning over the intake, with one door for dicts and one for blocks."""

import numpy as np

from libc.math cimport isfinite, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from varifold._engine.block cimport Block
from varifold._engine.intake cimport Intake
from varifold._engine.model cimport BinaryRule
from varifold._engine.names cimport NUMERIC
from varifold._engine.order cimport sort_unique
from varifold._engine.scaler cimport NONE
from varifold._engine.space cimport Seen, seen_again, seen_touch

from varifold._engine.block import plain_label
from varifold._engine.model import expect
from varifold.errors import DataError


cdef class Engine(Intake):
    """One learner's state. For one thread at a time."""

    def __cinit__(self):
        self.labels = []
        self.label_index = {}
        self.listens = self.model.calls_out()

    def __dealloc__(self):
        free(self.counts)
        free(self.out)
        free(self.probs)

    # ---------------------------------------------------------------- labels

    cdef int add_label(self, object y) except -1:
        """Class index of a plain label, new or known."""
        cdef object known = self.label_index.get(y)
        cdef Py_ssize_t k
        if known is not None:
            return known
        k = len(self.labels)
        if k + 1 > self.out_room:
            room = 2 * k + 4
            self.out = <double*> realloc(self.out, room * sizeof(double))
            self.probs = <double*> realloc(self.probs, room * sizeof(double))
            self.counts = <double*> realloc(self.counts, room * sizeof(double))
            if self.out == NULL or self.probs == NULL or self.counts == NULL:
                raise MemoryError
            self.out_room = room
        self.counts[k] = 0.0
        self.model.add_class()
        self.labels.append(y)
        self.label_index[y] = k
        return <int> k

    # ---------------------------------------------------------------- one instance

    cdef void learn_view(self, int y, double w) noexcept nogil:
        """Learn the presented instance as label y."""
        if self.n > 0 or self.model.sees_empty:
            self.model.learn(&self.view, y, w)
        self.note(y, w)

    cdef void note(self, int y, double w) noexcept nogil:
        """Count the instance that was just learned."""
        cdef Py_ssize_t i
        cdef Seen* seen = self.space.seen
        cdef int32_t* slots = self.slots
        cdef int64_t now = self.step + 1
        if self.n > 0 or self.model.sees_empty:
            seen_touch(&seen[0], now)
        if self.admitted:
            for i in range(1, self.n + 1):
                seen_touch(&seen[slots[i]], now)
        else:
            for i in range(1, self.n + 1):
                seen_again(&seen[slots[i]], now)
        if self.n_heads:
            self.n_heads = sort_unique(self.n_heads, self.heads)
            for i in range(self.n_heads):
                if not self.space.kind[self.heads[i]] & NUMERIC:
                    seen_touch(&seen[self.heads[i]], now)
        self.counts[y] += w
        self.step = now

    cdef int answer(self) noexcept nogil:
        """Scores of the presented instance into `out`; returns the class index, -1 before any label."""
        cdef int c, k = self.model.classes
        if k == 0:
            return -1
        if self.n == 0 and not self.model.sees_empty:
            for c in range(k):
                self.out[c] = log(self.counts[c] + 1e-300)
        else:
            self.model.scores(&self.view, self.out)
        return self.best() if k > 1 else 0

    cdef int best(self) noexcept nogil:
        """The class of the highest score in `out`, the first among equals."""
        cdef int c, best = 0
        for c in range(1, self.model.classes):
            if self.out[c] > self.out[best]:
                best = c
        return best

    cdef int decide(self) noexcept nogil:
        """As answer(), with probabilities into `probs`."""
        cdef int c, best = self.answer(), k = self.model.classes
        cdef double total = 0.0
        if k == 0:
            return best
        if self.n == 0 and not self.model.sees_empty:
            for c in range(k):
                total += self.counts[c]
            for c in range(k):
                self.probs[c] = self.counts[c] / total if total > 0.0 else 1.0 / k
        elif k == 1:
            self.probs[0] = 1.0
        else:
            self.model.proba(self.out, self.probs)
        return best

    def learn_one(self, x, y, double w=1.0):
        """Learn one dict."""
        cdef list pending
        cdef int c
        cdef object known = None
        try:
            known = self.label_index.get(y)
        except TypeError:
            pass
        if known is None:
            y = plain_label(y, self.step + 1)
        if not (isfinite(w) and w >= 0.0):
            raise DataError(f"the weight is {w!r} at step {self.step + 1:,}; weights are finite and >= 0")
        pending = self.gather(x)
        if w == 0.0:
            return
        if pending is not None:
            self.admit(pending)
        c = self.add_label(y) if known is None else known
        self.present(w, True, pending is not None or self.step == 0)
        self.learn_view(c, w)
        if self.model.n_gone or self.space.starved:
            self.settle()
        self.hear()

    cdef int hear(self) except -1:
        """Raise what a model that calls out to Python met there."""
        if self.listens:
            error = self.model.trouble()
            if error is not None:
                raise error
        return 0

    def predict_one(self, x):
        """The label, or None before any was learned."""
        cdef int c
        self.gather(x)
        if self.model.classes == 0:
            return None
        self.present(1.0, False, False)
        c = self.answer()
        self.hear()
        return self.labels[c]

    def predict_proba_one(self, x):
        """Probabilities by label."""
        cdef int c
        self.gather(x)
        if self.model.classes == 0:
            return {}
        self.present(1.0, False, False)
        self.decide()
        self.hear()
        return {self.labels[c]: self.probs[c] for c in range(self.model.classes)}

    def margins_one(self, x):
        """Scores by label."""
        cdef int c
        self.gather(x)
        if self.model.classes == 0:
            return {}
        self.present(1.0, False, False)
        self.answer()
        self.hear()
        return {self.labels[c]: self.out[c] for c in range(self.model.classes)}

    def explain_one(self, x, int c=-1):
        """(label, contributions by name, what is left); c = -1 explains the answer."""
        cdef Py_ssize_t i, first
        self.gather(x)
        if self.model.classes == 0:
            return None, {}, 0.0
        self.present(1.0, False, False)
        best = self.answer()
        c = best if c < 0 else c
        first = 1 if self.intercept else 0
        parts = {}
        rest = 0.0
        if self.n == 0 and not self.model.sees_empty:
            return self.labels[c], parts, self.out[c]
        cdef double[::1] share = np.zeros(max(1, self.view.n))
        self.model.contributions(&self.view, c, &share[0])
        for i in range(self.view.n):
            if self.view.slot[i] == 0:
                rest = share[i]
            else:
                parts[<object> self.space.key[self.view.slot[i]]] = share[i]
        for key, part in self.model.beyond(&self.view, c).items():
            parts[key if type(key) is str else self.space.name_of(key)] = part
        self.hear()
        return self.labels[c], parts, rest

    def complete_one(self, x):
        """(values, low, high) by slot that the model completes an instance to, NaN where it cannot tell."""
        cdef double[:, ::1] out = np.full((3, self.space.size), np.nan)
        self.gather(x)
        self.present(1.0, False, False)
        self.model.complete(&self.view, &out[0, 0], &out[1, 0], &out[2, 0])
        return np.asarray(out)

    # ---------------------------------------------------------------- blocks

    def run(self, Block block, schedule=None, bint learn=True, bint predict=True, bint probabilities=True):
        """Walk a block without returning to Python between instances.

        Without a schedule every row is predicted (when asked) and then learned (when asked). A schedule is an int64
        array of steps: i + 1 predicts row i, -(i + 1) learns row i. Returns predicted class indices (-1: none) and
        probabilities (rows x labels known at the end), each None when not asked for.
        """
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices
        cdef const double[::1] val = block.values
        cdef const int32_t[::1] codes = block.codes
        cdef const double[::1] weights = None
        cdef const int64_t[::1] steps
        cdef Py_ssize_t n = len(block), row, i, total, widest
        cdef int c, k, best, k_all
        cdef double w
        cdef bint weighted = block.weights is not None
        cdef bint shared
        cdef Py_ssize_t unknown, m
        cdef const int32_t* row_idx
        cdef const double* row_val
        cdef int64_t code
        cdef bint planned = schedule is not None
        cdef bint fused = predict and learn and not planned
        if learn and not planned and n and (block.codes < 0).any():
            raise DataError(f"instance {int(np.argmax(block.codes < 0))} has no label; give y, or call predict_many")
        if planned:
            schedule = np.ascontiguousarray(schedule, dtype=np.int64)
            if len(schedule) and (np.abs(schedule).max() > n or (schedule == 0).any()):
                raise DataError("a schedule names rows that are not in the block")
            if (block.codes[-schedule[schedule < 0] - 1] < 0).any():
                raise DataError("a schedule learns an instance that has no label")
        else:
            schedule = np.zeros(0, dtype=np.int64)
        steps = schedule
        self.bind(block.vocabulary)
        widest = int(np.diff(block.indptr).max()) if n else 0
        self.reserve(widest)
        if weighted:
            weights = block.weights
        cdef int32_t[::1] classes = np.full(max(1, len(block.labels)), -1, dtype=np.int32)
        for i in range(len(block.labels)):
            classes[i] = self.label_index.get(block.labels.values[i], -1)
        k_all = len(self.labels) + <int> sum(1 for i in range(len(block.labels)) if classes[i] < 0) if learn else \
            len(self.labels)
        predicted = np.full(n if predict else 0, -1, dtype=np.int32)
        probs = np.zeros((n if predict and probabilities else 0, max(1, k_all)))
        cdef int32_t[::1] out_label = predicted
        cdef double[:, ::1] out_prob = probs
        total = steps.shape[0] if planned else n
        if idx.shape[0] == 0:
            # nothing stored: keep the pointers below valid
            idx = np.zeros(1, dtype=np.int32)
            val = np.zeros(1)
        with nogil:
            for i in range(total):
                code = steps[i] if planned else i + 1
                row = (code if code > 0 else -code) - 1
                row_idx = &idx[0] + ptr[row]
                row_val = &val[0] + ptr[row]
                m = ptr[row + 1] - ptr[row]
                w = weights[row] if weighted else 1.0
                unknown = self.gather_row(row_idx, row_val, m)
                shared = False
                c = classes[codes[row]] if fused else -1
                if c >= 0 and unknown == 0 and w == 1.0 and self.n > 0 and self.model.classes > 1:
                    # known names, a known label: the model scores and learns in one go
                    self.present(1.0, True, self.step == 0)
                    self.model.learn_scored(&self.view, c, 1.0, self.out, self.probs if probabilities else NULL)
                    out_label[row] = self.best()
                    if probabilities:
                        for k in range(self.model.classes):
                            out_prob[row, k] = self.probs[k]
                    self.note(c, 1.0)
                    if self.model.n_gone or self.space.starved:
                        self.settle()
                    continue
                if predict and code > 0:
                    shared = learn and not planned and unknown == 0 and w == 1.0
                    self.present(1.0, shared, self.step == 0)
                    if probabilities:
                        best = self.decide()
                        for c in range(self.model.classes):
                            out_prob[row, c] = self.probs[c]
                    else:
                        best = self.answer()
                    out_label[row] = best
                    if planned:
                        continue
                if not learn or w == 0.0:
                    continue
                if unknown:
                    self.admit_row(row_idx, row_val, m)
                c = classes[codes[row]]
                if c < 0:
                    with gil:
                        c = self.add_label(block.labels.values[codes[row]])
                    classes[codes[row]] = c
                if not shared:
                    self.present(w, True, unknown > 0 or self.step == 0)
                self.learn_view(c, w)
                if self.model.n_gone or self.space.starved:
                    self.settle()
        self.hear()
        return (predicted if predict else None,
                probs[:, :max(1, len(self.labels))] if predict and probabilities else None)

    def labels_of(self, const int32_t[::1] codes):
        """The labels of class indices, None for -1."""
        cdef list labels = [*self.labels, None]
        cdef Py_ssize_t i, k = len(self.labels)
        return [labels[codes[i] if codes[i] >= 0 else k] for i in range(codes.shape[0])]

    def complete(self, Block block):
        """The values of complete_one() for every row of a block, rows by slots."""
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices
        cdef const double[::1] val = block.values
        cdef Py_ssize_t row, n = len(block)
        values = np.full((n, self.space.size), np.nan)
        cdef double[:, ::1] out = values
        cdef double[:, ::1] ends = np.zeros((2, self.space.size))
        self.bind(block.vocabulary)
        self.reserve(int(np.diff(block.indptr).max()) if n else 0)
        if idx.shape[0] == 0:
            idx = np.zeros(1, dtype=np.int32)
            val = np.zeros(1)
        with nogil:
            for row in range(n):
                self.gather_row(&idx[0] + ptr[row], &val[0] + ptr[row], ptr[row + 1] - ptr[row])
                self.present(1.0, False, False)
                self.model.complete(&self.view, &out[row, 0], &ends[0, 0], &ends[1, 0])
        return values

    # ---------------------------------------------------------------- looking and keeping

    def class_counts(self):
        """Weight learned by label."""
        return {y: self.counts[i] for i, y in enumerate(self.labels)}

    def magnitude(self, int32_t slot):
        """The size of what the model holds for a slot."""
        return self.model.magnitude(slot)

    def dump(self):
        """(names by slot, labels, arrays): all of the state."""
        names, kinds, columns, free_ids = self.space.dump()
        arrays = {
            "space.kind": kinds, "space.column": columns, "space.free": free_ids, "space.seen": self.space.seen_table(),
            "space.evictions": np.array([self.space.evictions], dtype=np.int64),
            "scaler": self.scaler.dump(self.space.size),
            "step": np.array([self.step], dtype=np.int64),
            "counts": np.array([self.counts[i] for i in range(len(self.labels))], dtype=np.float64),
        }
        for key, array in self.model.dump(self.space.size).items():
            arrays["model." + key] = array
        return names, list(self.labels), arrays

    def fill(self, names, labels, dict arrays):
        """Take what dump() gave into an engine that was just made with the same parameters."""
        cdef Py_ssize_t i
        if len(arrays["counts"]) != len(labels) or len(set(labels)) != len(labels):
            raise ValueError(f"{len(labels)} labels for {len(arrays['counts'])} counts")
        if self.scaler.kind != NONE and len(arrays["scaler"]) != len(names):
            raise ValueError(f"{len(arrays['scaler'])} rows of statistics for {len(names)} names")
        if isinstance(self.model, BinaryRule) and len(arrays["model.state"]) != len(names):
            raise ValueError(f"{len(arrays['model.state'])} rows of weights for {len(names)} names")
        expect(arrays, "counts", "f", (len(labels),), 0)
        expect(arrays, "step", "i", (1,), 0, (1 << 43) - 1)
        expect(arrays, "space.evictions", "i", (1,), 0)
        expect(arrays, "space.seen", "i", (len(names), 3), 0, (1 << 43) - 1)
        expect(arrays, "scaler", "f", (None, 3))
        for key, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{key} holds NaN or infinity")
            if key.endswith(".classes"):
                expect(arrays, key, "i", (1,), 0, len(labels))
        self.space.fill(names, arrays["space.kind"], arrays["space.column"], arrays["space.free"])
        self.space.restore_seen(arrays["space.seen"])
        self.space.evictions = int(arrays["space.evictions"][0])
        self.scaler.fill(arrays["scaler"], self.space.capacity)
        self.step = int(arrays["step"][0])
        k = len(labels)
        self.out_room = 2 * k + 4
        self.out = <double*> realloc(self.out, self.out_room * sizeof(double))
        self.probs = <double*> realloc(self.probs, self.out_room * sizeof(double))
        self.counts = <double*> realloc(self.counts, self.out_room * sizeof(double))
        if self.out == NULL or self.probs == NULL or self.counts == NULL:
            raise MemoryError
        for i in range(k):
            self.counts[i] = arrays["counts"][i]
        self.fit_places()
        self.labels = list(labels)
        self.label_index = {y: i for i, y in enumerate(self.labels)}
        self.model.fill({key[6:]: a for key, a in arrays.items() if key.startswith("model.")}, self.space.capacity)
        if self.model.classes != k:
            raise ValueError(f"{k} labels for {self.model.classes} classes of the model")

    def nbytes(self):
        """Bytes of state by part."""
        return {**self.space.nbytes(), "scaler": self.scaler.nbytes(), "model": self.model.nbytes()}
