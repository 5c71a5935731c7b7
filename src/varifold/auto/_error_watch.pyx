"""Detect when predictions become worse: ADWIN on their errors, and a record of each rise."""

import numpy as np

from libc.stdint cimport int64_t

from varifold._numeric.adwin cimport adwin_dump, adwin_fill, adwin_mean, adwin_start, adwin_update

from varifold._engine.state import checked_array

cdef double CONFIDENCE = 0.002     # delta of ADWIN


cdef class ErrorWatch:
    """Detect rises of the error, and keep the latest ones."""

    def __cinit__(self):
        adwin_start(&self.errors, CONFIDENCE, 8, 5, 30)

    cdef void learn(self, int64_t step, bint wrong) noexcept nogil:
        """Count a prediction that was made after `step` instances."""
        cdef double before = adwin_mean(&self.errors)
        cdef int64_t width = self.errors.width + 1
        cdef double total = self.errors.total + wrong
        cdef Rise* rise
        if not adwin_update(&self.errors, wrong) or adwin_mean(&self.errors) <= before:
            return
        # ADWIN has dropped the part of its window before the rise
        rise = &self.rise[self.count % MOST_RISES]
        rise.step = step + 1
        rise.since = step + 2 - self.errors.width
        rise.before = (total - self.errors.total) / (width - self.errors.width)
        rise.error = adwin_mean(&self.errors)
        self.count += 1

    def records(self):
        """Return the latest rises as dicts with the fields of Rise, the oldest first."""
        cdef int64_t i, kept = min(self.count, <int64_t> MOST_RISES)
        return [self.rise[i % MOST_RISES] for i in range(self.count - kept, self.count)]

    def dump(self):
        """Return the detector and the records as arrays of a file."""
        records = self.records()
        return {"rises.count": np.array([self.count], dtype=np.int64),
                "rises.detector": adwin_dump(&self.errors),
                "rises.steps": np.array([[r["step"], r["since"]] for r in records], dtype=np.int64).reshape(-1, 2),
                "rises.errors": np.array([[r["before"], r["error"]] for r in records]).reshape(-1, 2)}

    def fill(self, dict arrays):
        """Restore what dump() returned."""
        cdef int64_t i, kept
        self.count = checked_array(arrays, "rises.count", "i", (1,), 0, 1 << 53)[0]
        kept = min(self.count, <int64_t> MOST_RISES)
        steps = checked_array(arrays, "rises.steps", "i", (kept, 2), 0, 1 << 53).tolist()
        errors = checked_array(arrays, "rises.errors", "f", (kept, 2), 0, 1).tolist()
        adwin_fill(&self.errors, checked_array(arrays, "rises.detector", "f", (None,)))
        for i, ((step, since), (before, error)) in enumerate(zip(steps, errors), self.count - kept):
            self.rise[i % MOST_RISES] = {"step": step, "since": since, "before": before, "error": error}
