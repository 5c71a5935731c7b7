"""The engine of classifiers: labels, answers and learning over the intake, one door for dicts and one for blocks."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport isfinite, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._engine.admission cimport Admission
from varifold._engine.block cimport LARGEST_WEIGHT, Block
from varifold._engine.guard cimport claim, release
from varifold._engine.names cimport NUMERIC
from varifold._engine.order cimport sort_unique
from varifold._engine.scaler cimport NONE
from varifold._engine.space cimport Seen, seen_again, seen_touch
from varifold._numeric.activation cimport argmax
from varifold._numeric.memory cimport resize

from varifold._engine.vocabulary import plain_label
from varifold._engine.state import checked_array
from varifold.errors import DataError, OutOfMemoryError

cdef enum:
    SIGNALS = 1024   # rows of a block between two looks for Ctrl-C


def checked_schedule(Block block, schedule, bint learn):
    """The steps to take as an int64 array; refuses rows that are not there and labels that are missing."""
    n = len(block)
    if schedule is None:
        if learn and n and (block.codes < 0).any():
            raise DataError(f"instance {int(np.argmax(block.codes < 0))} has no label; give y, or call predict_many")
        return np.zeros(0, dtype=np.int64)
    schedule = np.ascontiguousarray(schedule, dtype=np.int64)
    if len(schedule) and (schedule.max() > n or schedule.min() < -n or (schedule == 0).any()):
        raise DataError("a schedule names rows that are not in the block")
    if (block.codes[-schedule[schedule < 0] - 1] < 0).any():
        raise DataError("a schedule learns an instance that has no label")
    return schedule


cdef class Engine(Admission):
    """One learner's state. For one thread at a time: a second call is refused while one runs."""

    def __cinit__(self):
        self.labels = []
        self.label_index = {}
        self.calls_python = self.model.calls_python()
        self.reserve_labels(2)

    def __dealloc__(self):
        free(self.counts)
        free(self.out)
        free(self.probs)

    # ---------------------------------------------------------------- labels

    cdef int reserve_labels(self, Py_ssize_t labels) except -1:
        """Room for this many labels."""
        cdef Py_ssize_t room = 2 * labels
        if labels <= self.label_room:
            return 0
        if (resize(<void**> &self.out, room * sizeof(double)) < 0
                or resize(<void**> &self.probs, room * sizeof(double)) < 0
                or resize(<void**> &self.counts, room * sizeof(double)) < 0):
            raise MemoryError
        self.label_room = room
        return 0

    cdef int add_label(self, object y) except -1:
        """Class index of a new label; the room for it was made before."""
        cdef Py_ssize_t k = len(self.labels)
        self.label_index[y] = k
        self.labels.append(y)
        self.counts[k] = 0.0
        self.model.add_class()
        return <int> k

    # ---------------------------------------------------------------- one instance

    cdef void learn_view(self, int y, double w) noexcept nogil:
        """Learn the presented instance as class y."""
        if self.n > 0 or self.model.sees_empty:
            self.model.learn(&self.view, y, w)
        self.count(y, w)

    cdef void count(self, int y, double w) noexcept nogil:
        """Count the instance that was just learned: when its features were seen, its label, the step."""
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
        if self.n_indicator_columns:
            self.n_indicator_columns = sort_unique(self.n_indicator_columns, self.indicator_columns)
            for i in range(self.n_indicator_columns):
                if not self.space.kind[self.indicator_columns[i]] & NUMERIC:
                    seen_touch(&seen[self.indicator_columns[i]], now)
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
        return argmax(k, self.out) if k > 1 else 0

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

    cdef int raise_pending(self) except -1 with gil:
        """Raise what Python code raised that the model called."""
        error = self.model.pending_error()
        if error is not None:
            raise error
        return 0

    cdef int learn(self, object x, object y, double w) except -1:
        """Learn one dict: check all, take the memory, then change the state."""
        cdef list pending
        cdef int c = -1
        cdef object known = None
        try:
            known = self.label_index.get(y)
        except TypeError:
            pass
        if known is None:
            y = plain_label(y, self.step + 1)
            known = self.label_index.get(y)
        if known is not None:
            c = known
        if not (isfinite(w) and w >= 0.0):
            raise DataError(f"the weight is {w!r} at step {self.step + 1:,}; weights are finite and >= 0")
        pending = self.gather(x)
        if w == 0.0:
            return 0
        if pending is not None or self.model.prepares:
            self.make_ready(pending, c)
        if c < 0:
            self.reserve_labels(len(self.labels) + 1)
            self.model.reserve_class()
        if pending is not None:
            self.admit(pending)
        if c < 0:
            c = self.add_label(y)
        w = min(w, LARGEST_WEIGHT)
        self.present(w, True, pending is not None or self.step == 0)
        self.learn_view(c, w)
        if self.model.n_evicted:
            self.apply_evictions()
        if self.calls_python:
            self.raise_pending()
        return 0

    def learn_one(self, x, y, w=1.0):
        """Learn one dict; when anything is wrong with it, or memory runs out, the state stays as it was."""
        cdef double weight
        try:
            weight = w
        except TypeError:
            raise DataError(f"the weight is {w!r} of type {type(w).__name__} at step {self.step + 1:,}; "
                            "weights are finite numbers >= 0") from None
        claim(self)
        try:
            self.learn(x, y, weight)
        except MemoryError as error:
            raise OutOfMemoryError(
                f"no memory was left at step {self.step + 1:,}: the instance was not learned and the learner is as it "
                "was before; max_features bounds what a learner holds"
            ) from error
        finally:
            release(self)

    cdef int ask(self, object x, bint probabilities) except -2:
        """Gather, present and answer one dict; -1 before any label."""
        cdef int c
        self.gather(x)
        if self.model.classes == 0:
            return -1
        self.present(1.0, False, False)
        c = self.decide() if probabilities else self.answer()
        if self.calls_python:
            self.raise_pending()
        return c

    def predict_one(self, x):
        """The label, or None before any was learned."""
        cdef int c
        claim(self)
        try:
            c = self.ask(x, False)
            return self.labels[c] if c >= 0 else None
        finally:
            release(self)

    def predict_proba_one(self, x):
        """Probabilities by label."""
        cdef int c
        claim(self)
        try:
            if self.ask(x, True) < 0:
                return {}
            return {self.labels[c]: self.probs[c] for c in range(self.model.classes)}
        finally:
            release(self)

    def margins_one(self, x):
        """Scores by label."""
        cdef int c
        claim(self)
        try:
            if self.ask(x, False) < 0:
                return {}
            return {self.labels[c]: self.out[c] for c in range(self.model.classes)}
        finally:
            release(self)

    def explain_one(self, x, int c=-1):
        """(label, contributions by name, what is left); c = -1 explains the answer."""
        claim(self)
        try:
            return self.explain(x, c)
        finally:
            release(self)

    cdef tuple explain(self, object x, int c):
        cdef Py_ssize_t i
        cdef int best = self.ask(x, False)
        cdef double[::1] share
        if best < 0:
            return None, {}, 0.0
        if c >= self.model.classes:
            raise IndexError(f"no label has the index {c}; there are {self.model.classes}")
        c = best if c < 0 else c
        parts = {}
        rest = 0.0
        if self.n == 0 and not self.model.sees_empty:
            return self.labels[c], parts, self.out[c]
        share = np.zeros(max(1, self.view.n))
        self.model.contributions(&self.view, c, &share[0])
        for i in range(self.view.n):
            if self.view.slot[i] == 0:
                rest = share[i]
            else:
                parts[<object> self.space.key[self.view.slot[i]]] = share[i]
        for key, part in self.model.absent_contributions(&self.view, c).items():
            parts[key if type(key) is str else self.space.name_of(key)] = part
        if self.calls_python:
            self.raise_pending()
        return self.labels[c], parts, rest

    def complete_one(self, x):
        """(values, low, high) by slot that the model imputes for an instance, NaN where it cannot say."""
        cdef double[:, ::1] out
        claim(self)
        try:
            out = np.full((3, self.space.size), np.nan)
            self.gather(x)
            self.present(1.0, False, False)
            self.model.impute(&self.view, &out[0, 0], &out[1, 0], &out[2, 0])
            return np.asarray(out)
        finally:
            release(self)

    # ---------------------------------------------------------------- blocks

    cdef int ready_row(self, int c, Py_ssize_t unknown) except -1 nogil:
        """Take the memory for learning the gathered row as class c (-1: a new label) before anything changes."""
        if c < 0:
            with gil:
                self.reserve_labels(len(self.labels) + 1)
                self.model.reserve_class()
        if self.model.prepares and unknown == 0:
            self.model.prepare(self.slots + 1, self.n, 0, c)
        return 0

    def run(self, Block block not None, schedule=None, bint learn=True, bint predict=True, bint probabilities=True):
        """Walk a block without returning to Python between instances.

        Without a schedule every row is predicted (when asked) and then learned (when asked). A schedule is an int64
        array of steps: i + 1 predicts row i, -(i + 1) learns row i. Returns predicted class indices (-1: none) and
        probabilities (rows x labels known at the end), each None when not asked for.
        """
        cdef int64_t before = self.step
        claim(self)
        try:
            return self.walk(block, checked_schedule(block, schedule, learn), schedule is not None, learn, predict,
                             probabilities)
        except MemoryError as error:
            raise OutOfMemoryError(
                f"no memory was left: {self.step - before:,} instances of the block were learned and the learner is as "
                "after the last of them; max_features bounds what a learner holds", self.step - before
            ) from error
        finally:
            release(self)

    cdef tuple walk(self, Block block, schedule, bint planned, bint learn, bint predict, bint probabilities):
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices if len(block.indices) else np.zeros(1, dtype=np.int32)
        cdef const double[::1] val = block.values if len(block.values) else np.zeros(1)
        cdef const int32_t[::1] codes = block.codes
        cdef const double[::1] weights = block.weights
        cdef const int64_t[::1] steps = schedule
        cdef Py_ssize_t n = len(block), row, i, total, unknown, m
        cdef int c, k
        cdef double w
        cdef bint weighted = block.weights is not None
        cdef bint fused = predict and learn and not planned
        cdef bint learns, shared
        cdef const int32_t* row_idx
        cdef const double* row_val
        cdef int64_t code
        self.bind(block.vocabulary)
        self.reserve(int(np.diff(block.indptr).max()) if n else 0)
        cdef int32_t[::1] classes = np.array([self.label_index.get(y, -1) for y in block.labels.values] or [-1],
                                             dtype=np.int32)
        predicted = np.full(n if predict else 0, -1, dtype=np.int32)
        k = len(self.labels) + (<int> np.count_nonzero(np.asarray(classes) < 0) if learn else 0)
        probs = np.zeros((n if predict and probabilities else 0, max(1, k)))
        cdef int32_t[::1] out_label = predicted
        cdef double[:, ::1] out_prob = probs
        total = steps.shape[0] if planned else n
        with nogil:
            for i in range(total):
                if i % SIGNALS == SIGNALS - 1:
                    with gil:
                        PyErr_CheckSignals()
                code = steps[i] if planned else i + 1
                row = (code if code > 0 else -code) - 1
                row_idx = &idx[0] + ptr[row]
                row_val = &val[0] + ptr[row]
                m = ptr[row + 1] - ptr[row]
                w = weights[row] if weighted else 1.0
                unknown = self.gather_row(row_idx, row_val, m)
                learns = learn and w > 0.0 and (code < 0 or not planned)
                c = classes[codes[row]] if learns else -1
                if learns and (c < 0 or self.model.prepares):
                    self.ready_row(c, unknown)
                shared = False
                if fused and c >= 0 and unknown == 0 and w == 1.0 and self.n > 0 and self.model.classes > 1:
                    # known names, a known label: the model scores and learns in one pass
                    self.present(1.0, True, self.step == 0)
                    self.model.learn_scored(&self.view, c, 1.0, self.out, self.probs if probabilities else NULL)
                    out_label[row] = argmax(self.model.classes, self.out)
                    if probabilities:
                        memcpy(&out_prob[row, 0], self.probs, self.model.classes * sizeof(double))
                    self.count(c, 1.0)
                    if self.model.n_evicted:
                        self.apply_evictions()
                    if self.calls_python:
                        self.raise_pending()
                    continue
                if predict and code > 0:
                    shared = fused and unknown == 0 and w == 1.0
                    self.present(1.0, shared, self.step == 0)
                    if probabilities:
                        out_label[row] = self.decide()
                        memcpy(&out_prob[row, 0], self.probs, self.model.classes * sizeof(double))
                    else:
                        out_label[row] = self.answer()
                if learns:
                    if unknown:
                        self.admit_row(row_idx, row_val, m, c)
                    if c < 0:
                        with gil:
                            c = self.add_label(block.labels.values[codes[row]])
                        classes[codes[row]] = c
                    if not shared:
                        self.present(w, True, unknown > 0 or self.step == 0)
                    self.learn_view(c, w)
                    if self.model.n_evicted:
                        self.apply_evictions()
                if self.calls_python:
                    self.raise_pending()
        return (predicted if predict else None,
                probs[:, :max(1, len(self.labels))] if predict and probabilities else None)

    def labels_of(self, const int32_t[::1] codes):
        """The labels of class indices, None for -1."""
        cdef list labels = [*self.labels, None]
        cdef Py_ssize_t i, k = len(self.labels)
        for i in range(codes.shape[0]):
            if codes[i] >= k:
                raise IndexError(f"no label has the index {codes[i]}; there are {k}")
        return [labels[codes[i] if codes[i] >= 0 else k] for i in range(codes.shape[0])]

    def complete(self, Block block not None):
        """The values of complete_one() for every row of a block, rows by slots."""
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices if len(block.indices) else np.zeros(1, dtype=np.int32)
        cdef const double[::1] val = block.values if len(block.values) else np.zeros(1)
        cdef Py_ssize_t row, n = len(block)
        claim(self)
        try:
            values = np.full((n, self.space.size), np.nan)
            self.bind(block.vocabulary)
            self.reserve(int(np.diff(block.indptr).max()) if n else 0)
            self.impute_rows(n, &ptr[0], &idx[0], &val[0], values)
            return values
        finally:
            release(self)

    cdef int impute_rows(self, Py_ssize_t n, const int64_t* ptr, const int32_t* idx, const double* val,
                         values) except -1:
        cdef double[:, ::1] out = values
        cdef double[:, ::1] ends = np.zeros((2, self.space.size))
        cdef Py_ssize_t row
        with nogil:
            for row in range(n):
                self.gather_row(idx + ptr[row], val + ptr[row], ptr[row + 1] - ptr[row])
                self.present(1.0, False, False)
                self.model.impute(&self.view, &out[row, 0], &ends[0, 0], &ends[1, 0])
        return 0

    # ---------------------------------------------------------------- looking inside

    def class_counts(self):
        """Weight learned by label."""
        return {y: self.counts[i] for i, y in enumerate(self.labels)}

    cdef int check_slot(self, Py_ssize_t slot) except -1:
        if not 0 <= slot < self.space.size:
            raise IndexError(f"no feature has the slot {slot}; there are {self.space.size}")
        return 0

    def magnitude(self, Py_ssize_t slot):
        """The size of what the model holds for a slot."""
        self.check_slot(slot)
        return self.model.magnitude(<int32_t> slot)

    def role(self, Py_ssize_t slot):
        """The part that a slot's feature plays in the method."""
        self.check_slot(slot)
        return self.model.role(slot)

    # ---------------------------------------------------------------- files

    def dump(self):
        """(names by slot, labels, arrays): all of the state."""
        claim(self)
        try:
            return self.parts()
        finally:
            release(self)

    cdef tuple parts(self):
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
        claim(self)
        try:
            self.take(names, labels, arrays)
        finally:
            release(self)

    cdef int take(self, names, labels, dict arrays) except -1:
        cdef Py_ssize_t i
        if len(arrays["counts"]) != len(labels) or len(set(labels)) != len(labels):
            raise ValueError(f"{len(labels)} labels for {len(arrays['counts'])} counts")
        if self.scaler.kind != NONE and len(arrays["scaler"]) != len(names):
            raise ValueError(f"{len(arrays['scaler'])} rows of statistics for {len(names)} names")
        checked_array(arrays, "counts", "f", (len(labels),), 0)
        checked_array(arrays, "step", "i", (1,), 0, (1 << 43) - 1)
        checked_array(arrays, "space.evictions", "i", (1,), 0)
        checked_array(arrays, "space.seen", "i", (len(names), 3), 0, (1 << 43) - 1)
        checked_array(arrays, "scaler", "f", (None, 3))
        for key, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{key} holds NaN or infinity")
            if key.endswith(".classes"):
                checked_array(arrays, key, "i", (1,), 0, len(labels))
        self.space.fill(names, arrays["space.kind"], arrays["space.column"], arrays["space.free"])
        self.space.restore_seen(arrays["space.seen"])
        self.space.evictions = int(arrays["space.evictions"][0])
        self.scaler.fill(arrays["scaler"], self.space.capacity)
        self.step = int(arrays["step"][0])
        k = len(labels)
        self.reserve_labels(k)
        for i in range(k):
            self.counts[i] = arrays["counts"][i]
        self.fit_places()
        self.labels = list(labels)
        self.label_index = {y: i for i, y in enumerate(self.labels)}
        self.model.fill({key[6:]: a for key, a in arrays.items() if key.startswith("model.")}, self.space.capacity)
        if self.model.classes != k:
            raise ValueError(f"{k} labels for {self.model.classes} classes of the model")
        return 0

    def nbytes(self):
        """Bytes of state by part."""
        return {**self.space.nbytes(), "scaler": self.scaler.nbytes(), "model": self.model.nbytes()}
