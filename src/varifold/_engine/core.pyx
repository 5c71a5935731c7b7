"""What the engines of every task share: imputation, looking inside, and the parts of a file that are not the task's."""

import numpy as np

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t

from varifold._engine.block cimport Block
from varifold._engine.conformal cimport Conformal
from varifold._engine.guard cimport claim, release
from varifold._engine.names cimport NUMERIC
from varifold._engine.order cimport sort_unique
from varifold._engine.scaler cimport NONE
from varifold._engine.space cimport Seen, seen_again, seen_touch

from varifold._engine.state import checked_array
from varifold.errors import DataError, OutOfMemoryError

cdef int64_t LATEST = (1 << 43) - 1   # the last step that the table of seen features can hold


cdef class Core(Admission):
    """Space, scaler, model and step, for an engine that adds what is learned: labels, numbers, or nothing."""

    def __cinit__(self):
        self.calls_python = self.model.calls_python()

    # ---------------------------------------------------------------- what every engine refuses alike

    cdef double weight_of(self, object w) except? -1.0:
        """A sample weight as a number."""
        try:
            return w
        except TypeError:
            raise DataError(f"the weight is {w!r} of type {type(w).__name__} at step {self.step + 1:,}; "
                            "weights are finite numbers >= 0") from None

    cdef int check_weight(self, double w) except -1:
        if not (isfinite(w) and w >= 0.0):
            raise DataError(f"the weight is {w!r} at step {self.step + 1:,}; weights are finite and >= 0")
        return 0

    cdef object no_memory(self):
        """The error when memory ran out before an instance was learned."""
        return OutOfMemoryError(
            f"no memory was left at step {self.step + 1:,}: the instance was not learned and the learner is as it "
            "was before; max_features bounds what a learner holds"
        )

    cdef object no_memory_after(self, int64_t learned):
        """The error when memory ran out within a block, so many of its instances being learned."""
        return OutOfMemoryError(
            f"no memory was left: {learned:,} instances of the block were learned and the learner is as "
            "after the last of them; max_features bounds what a learner holds", learned
        )

    def quantify(self, Conformal conformal not None):
        """Measure errors from now on, for intervals or sets; to be called before anything is learned."""
        if self.step:
            raise ValueError(f"{self.step} instances were learned before")
        self.conformal = conformal

    # ---------------------------------------------------------------- after learning

    cdef void mark_seen(self) noexcept nogil:
        """The presented instance was just learned: note when its features were seen, and count the step."""
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
        self.step = now

    cdef int raise_pending(self) except -1 with gil:
        """Raise what Python code raised that the model called."""
        error = self.model.pending_error()
        if error is not None:
            raise error
        return 0

    # ---------------------------------------------------------------- imputing

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

    cdef int check_slot(self, Py_ssize_t slot) except -1:
        if not 0 <= slot < self.space.size:
            raise IndexError(f"no feature has the slot {slot}; there are {self.space.size}")
        return 0

    def magnitude(self, Py_ssize_t slot):
        """The size of what the model holds for a slot."""
        self.check_slot(slot)
        found = self.model.magnitude(<int32_t> slot)
        self.raise_pending()
        return found

    def role(self, Py_ssize_t slot):
        """The part that a slot's feature plays in the method."""
        self.check_slot(slot)
        return self.model.role(slot)

    def nbytes(self):
        """Bytes of state by part."""
        held = {**self.space.nbytes(), "scaler": self.scaler.nbytes(), "model": self.model.nbytes()}
        return held if self.conformal is None else {**held, "conformal": self.conformal.nbytes()}

    # ---------------------------------------------------------------- files

    cdef tuple common_parts(self):
        """(names by slot, arrays) of space, scaler, step and model."""
        names, kinds, columns, free_ids = self.space.dump()
        arrays = {
            "space.kind": kinds, "space.column": columns, "space.free": free_ids, "space.seen": self.space.seen_table(),
            "space.evictions": np.array([self.space.evictions], dtype=np.int64),
            "scaler": self.scaler.dump(self.space.size),
            "step": np.array([self.step], dtype=np.int64),
        }
        for key, array in self.model.dump(self.space.size).items():
            arrays["model." + key] = array
        if self.conformal is not None:
            for key, array in self.conformal.dump().items():
                arrays["conformal." + key] = array
        return names, arrays

    cdef int check_common(self, names, dict arrays) except -1:
        """Refuse arrays of space, scaler and step that do not belong together, and numbers that are not finite."""
        if self.scaler.kind != NONE and len(arrays["scaler"]) != len(names):
            raise ValueError(f"{len(arrays['scaler'])} rows of statistics for {len(names)} names")
        checked_array(arrays, "step", "i", (1,), 0, LATEST)
        checked_array(arrays, "space.evictions", "i", (1,), 0)
        checked_array(arrays, "space.seen", "i", (len(names), 3), 0, LATEST)
        checked_array(arrays, "scaler", "f", (None, self.scaler.width))
        self.scaler.check(arrays["scaler"])
        for key, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{key} holds NaN or infinity")
        return 0

    cdef int take_common(self, names, dict arrays) except -1:
        """Take space, scaler and step, checked before; the model comes last, through take_model()."""
        self.space.fill(names, arrays["space.kind"], arrays["space.column"], arrays["space.free"])
        self.space.restore_seen(arrays["space.seen"])
        self.space.evictions = int(arrays["space.evictions"][0])
        self.scaler.fill(arrays["scaler"], self.space.capacity)
        self.step = int(arrays["step"][0])
        if self.conformal is not None:
            self.conformal.fill({key[10:]: a for key, a in arrays.items() if key.startswith("conformal.")})
        return 0

    cdef int take_model(self, dict arrays) except -1:
        self.model.fill({key[6:]: a for key, a in arrays.items() if key.startswith("model.")}, self.space.capacity)
        return 0
