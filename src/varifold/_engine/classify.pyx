"""The engine of classifiers: dicts, JSON and blocks leave the same state to the last bit. Blocks are walked here."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from varifold._engine.block cimport Block
from varifold._engine.decision cimport MOST_PROBABLE
from varifold._engine.guard cimport claim, release
from varifold._engine.instance_doors cimport InstanceDoors
from varifold._numeric.activation cimport argmax

from varifold.errors import DataError

cdef enum:
    SIGNALS = 1024   # rows of a block between two looks for Ctrl-C


def checked_schedule(Block block, schedule, bint learn):
    """The steps to take as an int64 array; refuses rows that are not there and labels that are missing."""
    n = len(block)
    if learn and block.targets is not None:
        raise DataError("the block holds numbers to predict, for a regressor; a classifier learns labels")
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


cdef class Engine(InstanceDoors):
    """One learner's state. For one thread at a time: a second call is refused while one runs."""

    cdef int ready_row(self, int c, Py_ssize_t unknown) except -1 nogil:
        """Take the memory for learning the gathered row as class c (-1: a new label) before anything changes."""
        if c < 0:
            with gil:
                self.reserve_labels(len(self.labels) + 1)
                self.model.reserve_class()
        if self.model.prepares and unknown == 0:
            self.model.prepare(self.slots + 1, self.n, 0, c)
        return 0

    cdef void write_sets(self, unsigned char* out, Py_ssize_t labels) noexcept nogil:
        """Which labels the sets of the presented instance hold, coverages x labels."""
        cdef int c, j
        if not self.foreseen:
            return
        for j in range(self.conformal.k):
            for c in range(self.model.classes):
                out[j * labels + c] = 1.0 - self.probs[c] <= self.conformal.high[j]

    def run(self, Block block not None, schedule=None, bint learn=True, bint predict=True, bint probabilities=True,
            bint sets=False):
        """Walk a block without returning to Python between instances.

        Without a schedule every row is predicted (when asked) and then learned (when asked). A schedule is an int64
        array of steps: i + 1 predicts row i, -(i + 1) learns row i. Returns predicted class indices (-1: none) and
        probabilities (rows x labels known at the end), each None when not asked for. With `sets` there is a third:
        which labels the sets hold, rows x coverages x labels.
        """
        cdef int64_t before = self.step
        claim(self)
        try:
            return self.walk(block, checked_schedule(block, schedule, learn), schedule is not None, learn, predict,
                             probabilities, sets)
        except MemoryError as error:
            raise self.no_memory_after(self.step - before) from error
        finally:
            release(self)

    cdef tuple walk(self, Block block, schedule, bint planned, bint learn, bint predict, bint probabilities,
                    bint sets):
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
        cdef bint by_cost = self.decision.kind != MOST_PROBABLE
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
        held = np.zeros((n if sets else 0, self.conformal.k if sets else 0, max(1, k)), dtype=np.uint8)
        cdef unsigned char[:, :, ::1] out_sets = held
        cdef bint foresees = self.conformal is not None and (learn or sets)
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
                    self.model.learn_scored(&self.view, c, 1.0, self.out,
                                            self.probs if probabilities or by_cost or foresees else NULL)
                    if foresees:
                        self.foresee(c)
                        if sets:
                            self.write_sets(&out_sets[row, 0, 0], out_sets.shape[2])
                    out_label[row] = (self.decision.choose(self.model.classes, self.probs, self.counts) if by_cost
                                      else argmax(self.model.classes, self.out))
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
                    out_label[row] = self.decide() if probabilities or foresees else self.answer()
                    if probabilities:
                        memcpy(&out_prob[row, 0], self.probs, self.model.classes * sizeof(double))
                    if foresees:
                        self.foresee(c)
                        if sets:
                            self.write_sets(&out_sets[row, 0, 0], out_sets.shape[2])
                elif learns and foresees:
                    self.foresee_gathered(c)
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
        found = (predicted if predict else None,
                 probs[:, :max(1, len(self.labels))] if predict and probabilities else None)
        return (*found, held[:, :, :len(self.labels)].astype(bool)) if sets else found

    def labels_of(self, const int32_t[::1] codes):
        """The labels of class indices, None for -1."""
        cdef list labels = [*self.labels, None]
        cdef Py_ssize_t i, k = len(self.labels)
        for i in range(codes.shape[0]):
            if codes[i] >= k:
                raise IndexError(f"no label has the index {codes[i]}; there are {k}")
        return [labels[codes[i] if codes[i] >= 0 else k] for i in range(codes.shape[0])]
