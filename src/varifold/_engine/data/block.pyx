"""Blocks: many instances as CSR over a vocabulary that only grows."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from cpython.object cimport PyObject

from varifold._engine.names.table cimport INDICATOR
from varifold._engine.names.reading cimport ABSENT, LARGEST, NUMBER, read_value, value_error
from varifold._engine.names.vocabulary cimport Labels, Vocabulary
from varifold.errors import DataError, TargetError

cdef object UNCHECKED = object()   # in place of indptr: the arrays follow, and were checked


@cython.final
cdef class Block:
    """Instances in CSR form: ``indptr``, vocabulary ``indices``, ``values``, label ``codes``, ``weights``, ``targets``.

    Absent features are not stored; a stored 0.0 is an observed zero. Rows hold each id at most once. What is predicted
    is a label, whose code is -1 where it is missing, or a number: then ``targets`` is not None, and NaN where it is
    missing.
    """

    def __cinit__(self, Vocabulary vocabulary, indptr, indices, values, codes=None, Labels labels=None, weights=None,
                  targets=None):
        # not in __init__, which can be called again on a block, or not at all
        if vocabulary is None:
            raise DataError("a block needs a vocabulary; make one with varifold.Vocabulary()")
        self.vocabulary = vocabulary
        if indptr is UNCHECKED:
            return
        self.labels = Labels() if labels is None else labels
        self.indptr = own_copy("indptr", indptr, np.int64)
        self.indices = own_copy("indices", indices, np.int32)
        self.values = own_copy("values", values, np.float64)
        if not len(self.indptr):
            raise DataError("indptr is empty; it has one entry more than there are instances, the first one 0")
        n = len(self.indptr) - 1
        self.codes = np.full(n, -1, dtype=np.int32) if codes is None else own_copy("codes", codes, np.int32)
        self.weights = None if weights is None else checked_weights(weights, n)
        self.targets = None if targets is None else checked_targets(targets, n)
        if self.indptr[0] != 0 or self.indptr[n] != len(self.indices) or len(self.values) != len(self.indices):
            raise DataError("indptr, indices and values do not fit together")
        if n and np.diff(self.indptr).min() < 0:
            raise DataError("indptr must not fall")
        if len(self.codes) != n:
            raise DataError(f"{len(self.codes)} labels for {n} instances")
        if n and not (self.codes.min() >= -1 and self.codes.max() < len(self.labels)):
            raise DataError(f"label codes must lie between -1 and {len(self.labels) - 1}: there are {len(self.labels)} labels")
        if len(self.indices) and not (0 < self.indices.min() and self.indices.max() < vocabulary.size):
            raise DataError("an index lies outside the vocabulary")
        check_values(self)
        freeze(self)

    @staticmethod
    def from_dicts(rows, y=None, w=None, Vocabulary vocabulary=None, Labels labels=None) -> Block:
        """Make a block of an iterable of dicts; labels y and weights w are sequences of the same length."""
        if vocabulary is None:
            vocabulary = Vocabulary()
        from varifold._engine.data.builder import Builder

        builder = Builder(vocabulary)
        for x in rows:
            builder.add(x)
        return builder.finish(y, w, labels)

    def __len__(self):
        return len(self.indptr) - 1

    @property
    def y(self):
        """Labels or targets as a list, None where there is none."""
        if self.targets is not None:
            return [None if y != y else y for y in self.targets.tolist()]
        values = self.labels.values
        return [values[c] if c >= 0 else None for c in self.codes.tolist()]

    @property
    def labelled(self):
        """Mask of the instances that have a label or a target."""
        return self.codes >= 0 if self.targets is None else ~np.isnan(self.targets)

    def with_targets(self, targets) -> Block:
        """Return the same instances with these targets instead of labels, NaN where there is none."""
        n = len(self)
        return trusted(self.vocabulary, self.indptr, self.indices, self.values, np.full(n, -1, dtype=np.int32), Labels(),
                       self.weights, checked_targets(targets, n))

    def with_values(self, values) -> Block:
        """Return the same instances with these values in their stored cells."""
        return Block(self.vocabulary, self.indptr, self.indices, values, self.codes, self.labels, self.weights, self.targets)

    def row(self, Py_ssize_t i, bint indicators=False) -> dict[str | int, float | str]:
        """Return instance i as a dict; string values as such, or as indicators 'column=level': 1.0."""
        cdef Py_ssize_t k
        if not 0 <= i < len(self):
            raise IndexError(f"no instance {i} in a block of {len(self)}")
        x = {}
        lo, hi = int(self.indptr[i]), int(self.indptr[i + 1])
        for j, value in zip(self.indices[lo:hi].tolist(), self.values[lo:hi].tolist()):
            k = j
            if self.vocabulary.kind[k] & INDICATOR and not indicators:
                if value != 0.0:
                    column, level = self.vocabulary.level_of(k)
                    x[column] = level
            else:
                x[<object> self.vocabulary.key[k]] = value
        return x

    def rows(self, bint indicators=False) -> Iterator[dict[str | int, float | str]]:
        """Iterate over the instances as dicts."""
        for i in range(len(self)):
            yield self.row(i, indicators)

    def take(self, rows) -> Block:
        """Return the instances at these positions, in this order, over the same vocabulary."""
        cdef Py_ssize_t i, k, r
        cdef int64_t p
        cdef int64_t[::1] pick = np.ascontiguousarray(rows, dtype=np.int64)
        cdef const int64_t[::1] ptr = self.indptr
        cdef const int32_t[::1] idx = self.indices
        cdef const double[::1] val = self.values
        indptr = np.zeros(len(pick) + 1, dtype=np.int64)
        cdef int64_t[::1] out_ptr = indptr
        cdef Py_ssize_t n = len(self.indptr) - 1
        for i in range(pick.shape[0]):
            r = pick[i]
            if not 0 <= r < n:
                raise IndexError(f"no instance {r} in a block of {n}")
            out_ptr[i + 1] = out_ptr[i] + ptr[r + 1] - ptr[r]
        indices = np.empty(int(indptr[len(pick)]), dtype=np.int32)
        values = np.empty(int(indptr[len(pick)]))
        cdef int32_t[::1] out_idx = indices
        cdef double[::1] out_val = values
        for i in range(pick.shape[0]):
            r = pick[i]
            p = out_ptr[i]
            for k in range(ptr[r], ptr[r + 1]):
                out_idx[p] = idx[k]
                out_val[p] = val[k]
                p += 1
        picked = np.asarray(pick)
        weights = None if self.weights is None else self.weights[picked]
        targets = None if self.targets is None else self.targets[picked]
        return trusted(self.vocabulary, indptr, indices, values, self.codes[picked], self.labels, weights, targets)

    def __getitem__(self, rows) -> Block:
        if not isinstance(rows, slice):
            raise TypeError("a block is sliced; use row(i) for one instance and take(rows) for a choice")
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        stop = max(start, stop)
        lo, hi = self.indptr[start], self.indptr[stop]
        weights = None if self.weights is None else self.weights[start:stop]
        targets = None if self.targets is None else self.targets[start:stop]
        return trusted(self.vocabulary, self.indptr[start:stop + 1] - lo, self.indices[lo:hi], self.values[lo:hi],
                        self.codes[start:stop], self.labels, weights, targets)

    def keep(self, mask) -> Block:
        """Return the same instances with only those stored cells where the mask (one bool per cell) is true."""
        mask = np.ascontiguousarray(mask, dtype=bool)
        if len(mask) != len(self.indices):
            raise DataError(f"{len(mask)} mask entries for {len(self.indices)} cells")
        cdef const uint8_t[::1] kept = mask.view(np.uint8)
        cdef const int64_t[::1] ptr = self.indptr
        cdef const int32_t[::1] idx = self.indices
        cdef const double[::1] val = self.values
        cdef Py_ssize_t n = len(self.indptr) - 1, i, k
        cdef int64_t p = 0
        indptr = np.zeros(n + 1, dtype=np.int64)
        indices = np.empty(len(self.indices) + 1, dtype=np.int32)
        values = np.empty(len(self.indices) + 1)
        cdef int64_t[::1] out_ptr = indptr
        cdef int32_t[::1] out_idx = indices
        cdef double[::1] out_val = values
        with nogil:
            for i in range(n):
                for k in range(ptr[i], ptr[i + 1]):
                    # always written, counted if kept: no branch to mispredict
                    out_idx[p] = idx[k]
                    out_val[p] = val[k]
                    p += kept[k] != 0    # bytes of an array of bools may be other than 0 and 1
                out_ptr[i + 1] = p
        if 2 * p < len(self.indices):
            indices, values = indices[:p].copy(), values[:p].copy()
        return trusted(self.vocabulary, indptr, indices[:p], values[:p], self.codes, self.labels, self.weights,
                       self.targets)

    def __reduce__(self):
        return Block, (self.vocabulary, self.indptr, self.indices, self.values, self.codes, self.labels, self.weights,
                       self.targets)


cdef trusted(Vocabulary vocabulary, indptr, indices, values, codes, Labels labels, weights, targets):
    """Make a block of arrays that come from a checked one."""
    cdef Block b = Block.__new__(Block, vocabulary, UNCHECKED, None, None)
    b.labels = labels
    b.indptr = np.ascontiguousarray(indptr, dtype=np.int64)
    b.indices = np.ascontiguousarray(indices, dtype=np.int32)
    b.values = np.ascontiguousarray(values, dtype=np.float64)
    b.codes = np.ascontiguousarray(codes, dtype=np.int32)
    b.weights = weights
    b.targets = targets
    freeze(b)
    return b


def adopt(Vocabulary vocabulary, indptr, indices, values, codes, Labels labels, weights):
    """Make a block of a reader's arrays without copies: of the right types, and used by nobody else."""
    cdef Block b = trusted(vocabulary, indptr, indices, values, codes, labels,
                           None if weights is None else checked_weights(weights, len(codes)), None)
    check_values(b)
    freeze(b)
    return b


cdef int freeze(Block b) except -1:
    """Make the arrays read-only for good, so that the checks stay true."""
    b.indptr, b.indices, b.values = frozen(b.indptr), frozen(b.indices), frozen(b.values)
    b.codes, b.weights, b.targets = frozen(b.codes), frozen(b.weights), frozen(b.targets)
    return 0


cdef object frozen(object array):
    """Return a read-only view of an array, which setflags() cannot make writeable again, or None."""
    if array is None or not array.flags.writeable:
        return array
    return np.asarray(memoryview(array).toreadonly())


def own_copy(str name, given, dtype):
    """Return a contiguous copy of one dimension, which nobody else can change."""
    try:
        found = np.asarray(given)
        array = np.array(found, dtype=dtype, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} cannot be read as an array of {np.dtype(dtype)}: {error}") from None
    if array.ndim != 1:
        raise DataError(f"{name} has {array.ndim} dimensions; one is needed")
    if array.dtype.kind == "i" and array.size and (found.dtype.kind not in "iub" or (found != array).any()):
        raise DataError(f"{name} must hold whole numbers that fit {array.dtype}")
    return array


def concatenate(blocks) -> Block:
    """Join blocks over the same vocabulary and labels."""
    blocks = list(blocks)
    first = blocks[0]
    if len({b.targets is None for b in blocks}) > 1:
        raise DataError("blocks of labels and blocks of numbers to predict cannot be joined")
    labelled = first.targets is None
    if any(b.vocabulary is not first.vocabulary or (labelled and b.labels is not first.labels) for b in blocks):
        raise DataError("only blocks of one stream (same vocabulary, same labels) can be joined")
    indptr = [first.indptr]
    offset = int(first.indptr[len(first)])
    for b in blocks[1:]:
        indptr.append(b.indptr[1:] + offset)
        offset += int(b.indptr[len(b)])
    weights = None
    if any(b.weights is not None for b in blocks):
        weights = np.concatenate([np.ones(len(b)) if b.weights is None else b.weights for b in blocks])
    targets = None if first.targets is None else np.concatenate([b.targets for b in blocks])
    return trusted(first.vocabulary, np.concatenate(indptr), np.concatenate([b.indices for b in blocks]),
                    np.concatenate([b.values for b in blocks]), np.concatenate([b.codes for b in blocks]),
                    first.labels, weights, targets)


cdef int check_values(Block b) except -1:
    """Clamp the values; raise unless they are finite and every id is at most once in a row."""
    cdef const int32_t[::1] idx = b.indices
    cdef const int64_t[::1] ptr = b.indptr
    cdef Py_ssize_t i, k
    values = b.values
    if not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        i = int(np.searchsorted(b.indptr, k, side="right")) - 1
        raise value_error(b.vocabulary.name_of(int(b.indices[k])), float(values[k]), i + 1)
    if len(values) and max(values.max(), -values.min()) > LARGEST:
        b.values = np.clip(values, -LARGEST, LARGEST)
    cdef int64_t[::1] last = np.full(b.vocabulary.size, -1, dtype=np.int64)
    with nogil:
        for i in range(ptr.shape[0] - 1):
            for k in range(ptr[i], ptr[i + 1]):
                if last[idx[k]] == i:
                    with gil:
                        raise DataError(f"feature {b.vocabulary.name_of(idx[k])!r} is given twice in instance {i}")
                last[idx[k]] = i
    return 0


def checked_weights(given, Py_ssize_t n):
    """Return sample weights as an array: as many as instances, finite, not negative.

    Those below SMALLEST_WEIGHT count as 0, those above LARGEST_WEIGHT as that.
    """
    try:
        weights = np.asarray(given)
    except ValueError as error:
        raise DataError(f"weights cannot be read as numbers: {error}; weights are finite and >= 0") from None
    if weights.dtype.kind not in "fiub":
        raise DataError(f"weights are of type {weights.dtype}, such as {given[0]!r}; weights are finite numbers >= 0")
    weights = weights.astype(np.float64)
    if weights.shape != (n,):
        raise DataError(f"{len(weights) if weights.ndim else 1} weights for {n} instances")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(f"the weight of instance {int(bad[0])} is {float(weights[bad[0]])!r}; weights are finite and >= 0")
    return np.where(weights < SMALLEST_WEIGHT, 0.0, np.minimum(weights, LARGEST_WEIGHT))


def checked_targets(given, Py_ssize_t n):
    """Return targets as an array: as many as instances, NaN where missing, clamped to LARGEST."""
    cdef double number
    cdef double[::1] out
    cdef Py_ssize_t i
    if hasattr(given, "to_numpy") and not hasattr(given, "tolist"):
        given = given.to_numpy()
    if isinstance(given, np.ma.MaskedArray):
        given = given.tolist()  # None where it is masked
    if not (isinstance(given, np.ndarray) and given.dtype.kind in "fiub" and given.ndim == 1):
        values = given.tolist() if hasattr(given, "tolist") else list(given)
        given = np.full(len(values), np.nan)
        out = given
        for i, value in enumerate(values):
            number = np.nan
            if read_value(<PyObject*> value, &number) not in (NUMBER, ABSENT):
                raise target_error(value, f"of instance {i}")
            out[i] = number
    targets = given.astype(np.float64)
    if len(targets) != n:
        raise DataError(f"{len(targets)} numbers to predict for {n} instances")
    bad = np.flatnonzero(np.isinf(targets))
    if len(bad):
        raise target_error(targets[bad[0]], f"of instance {int(bad[0])}")
    return np.clip(targets, -LARGEST, LARGEST)


def target_error(value, str where):
    """Return the error for a target that is not a finite number."""
    shown = "too large for a float" if isinstance(value, int) else repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return TargetError(f"the target {where} is {shown} of type {type(value).__name__}; a regressor learns finite numbers; "
                       "None or NaN means that the target is not known")
