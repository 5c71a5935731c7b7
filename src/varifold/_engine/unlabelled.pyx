"""The engine of what learns instances alone, without labels or numbers to predict: imputers."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t

from varifold._engine.block cimport LARGEST_WEIGHT, Block
from varifold._engine.core cimport Core
from varifold._engine.guard cimport claim, release


cdef enum:
    SIGNALS = 1024   # rows of a block between two looks for Ctrl-C


cdef class UnlabelledEngine(Core):
    """One transformer's state. For one thread at a time: a second call is refused while one runs."""

    cdef void learn_view(self, double w) noexcept nogil:
        """Learn the presented instance."""
        if self.n > 0 or self.model.sees_empty:
            self.model.learn(&self.view, 0, w)
        self.mark_seen()

    # ---------------------------------------------------------------- one instance

    cdef int learn(self, object x, double w) except -1:
        """Learn one dict: check all, take the memory, then change the state."""
        cdef list pending
        self.check_weight(w)
        pending = self.gather(x)
        if w == 0.0:
            return 0
        if pending is not None or self.model.prepares:
            self.make_ready(pending, 0)
        if pending is not None:
            self.admit(pending)
        w = min(w, LARGEST_WEIGHT)
        self.present(w, True, pending is not None or self.step == 0)
        self.learn_view(w)
        if self.model.n_evicted:
            self.apply_evictions()
        return 0

    def learn_one(self, x, w=1.0):
        """Learn one dict; when anything is wrong with it, or memory runs out, the state stays as it was."""
        cdef double weight = self.weight_of(w)
        claim(self)
        try:
            self.learn(x, weight)
        except MemoryError as error:
            raise self.no_memory() from error
        finally:
            release(self)

    # ---------------------------------------------------------------- blocks

    def learn_many(self, Block block not None):
        """Learn the rows of a block in order; their labels, if any, are not looked at."""
        cdef int64_t before = self.step
        claim(self)
        try:
            self.walk(block)
        except MemoryError as error:
            raise self.no_memory_after(self.step - before) from error
        finally:
            release(self)

    cdef int walk(self, Block block) except -1:
        cdef Py_ssize_t n = len(block), row
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices if len(block.indices) else np.zeros(1, dtype=np.int32)
        cdef const double[::1] val = block.values if len(block.values) else np.zeros(1)
        cdef const double[::1] weights = block.weights
        cdef bint weighted = block.weights is not None
        self.bind(block.vocabulary)
        self.reserve(int(np.diff(block.indptr).max()) if n else 0)
        with nogil:
            for row in range(n):
                if row % SIGNALS == SIGNALS - 1:
                    with gil:
                        PyErr_CheckSignals()
                self.learn_row(&idx[0] + ptr[row], &val[0] + ptr[row], ptr[row + 1] - ptr[row],
                               weights[row] if weighted else 1.0)
        return 0

    cdef int learn_row(self, const int32_t* idx, const double* val, Py_ssize_t m, double w) except -1 nogil:
        """Learn one row of a block."""
        cdef Py_ssize_t unknown = self.gather_row(idx, val, m)
        if w == 0.0:
            return 0
        if self.model.prepares and unknown == 0:
            self.model.prepare(self.slots + 1, self.n, 0, 0)
        if unknown:
            self.admit_row(idx, val, m, 0)
        self.present(w, True, unknown > 0 or self.step == 0)
        self.learn_view(w)
        if self.model.n_evicted:
            self.apply_evictions()
        return 0

    # ---------------------------------------------------------------- files

    def dump(self):
        """(names by slot, no labels, arrays): all of the state."""
        claim(self)
        try:
            names, arrays = self.common_parts()
            return names, [], arrays
        finally:
            release(self)

    def fill(self, names, labels, dict arrays):
        """Take what dump() gave into an engine that was just made with the same parameters."""
        claim(self)
        try:
            self.take(names, arrays)
        finally:
            release(self)

    cdef int take(self, names, dict arrays) except -1:
        self.check_common(names, arrays)
        self.take_common(names, arrays)
        self.take_model(arrays)
        return 0
