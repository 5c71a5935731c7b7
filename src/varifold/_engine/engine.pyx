"""Engine of every learner: learn, predict, and run over a block.

An `Engine` holds the parts of one learner (docs/engine.md draws them) and joins them in one place, `process`: predict
the gathered instance, admit its new features, learn it. Dicts and blocks differ only in how an instance is gathered and
in what the target does with the prediction; so they lead to the same state, to the last bit.
"""

cimport cython
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t

from varifold._engine.admission cimport Admission
from varifold._engine.data.block cimport LARGEST_WEIGHT, SMALLEST_WEIGHT, Block
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport NEW_LABEL, Model
from varifold._engine.scaler cimport NONE, Scaler
from varifold._engine.names.space cimport Space
from varifold._engine.targets.target cimport Target

from varifold._engine.state import checked_array
from varifold.errors import BusyLearnerError, DataError, OutOfMemoryError

cdef enum:
    SIGNALS = 1024   # rows of a block between two checks for Ctrl-C

cdef int64_t LATEST = (1 << 43) - 1   # the last step that the table of seen features can hold


cdef double weight_of(object w, int64_t step) except? -1.0:
    """Read a sample weight; raise unless it is finite and not negative."""
    cdef double weight
    try:
        weight = w
    except TypeError:
        raise DataError(f"the weight is {w!r} of type {type(w).__name__} at step {step:,}; "
                        "weights are finite numbers >= 0") from None
    except OverflowError:
        raise DataError(f"the weight at step {step:,} is an int too large for a float; "
                        "weights are finite numbers >= 0") from None
    if not (isfinite(weight) and weight >= 0.0):
        raise DataError(f"the weight is {weight!r} at step {step:,}; weights are finite and >= 0")
    return 0.0 if weight < SMALLEST_WEIGHT else min(weight, LARGEST_WEIGHT)


@cython.final
cdef class Engine:
    """One learner's state and the operations on it. For one thread at a time.

    A second call while one runs gets `BusyLearnerError`; ``with engine:`` keeps other threads out over several calls of
    the same thread. The interpreter lock makes the test and the claim one step; the loop over a block releases the lock
    and keeps the claim.
    """

    cdef readonly Space space            # names <-> slots
    cdef readonly Scaler scaler          # statistics of the values
    cdef readonly Model model            # the method's mathematics
    cdef readonly Target target          # labels, numbers or nothing to predict
    cdef Instance instance               # the instance at hand
    cdef Admission admission             # features that come and go
    cdef bint calls_python               # the model calls Python code, which may raise
    # one call at a time
    cdef bint busy                       # inside a call
    cdef unsigned long holder            # the thread inside a `with`, 0 for none
    cdef int depth                       # its nested `with` statements

    def __cinit__(self, Model model not None, Target target not None, str scale="robust", double clip=3.0,
                  bint intercept=True, max_features=None, str evict="oldest"):
        self.space = Space()
        self.scaler = Scaler(scale, clip)
        self.model = model
        self.target = target
        self.instance = Instance(self.space, self.scaler, intercept, model.wants_columns)
        model.alone = True
        self.admission = Admission(self.instance, model, target.conformal, max_features, evict)
        target.attach(self.instance, model)
        self.calls_python = model.calls_python()

    @property
    def step(self):
        """Instances learned."""
        return self.space.step

    # ---------------------------------------------------------------- one call at a time

    cdef int claim(self) except -1:
        """Begin a call; raise if another one runs or another thread is inside a `with`. End it with release()."""
        if self.busy or (self.holder != 0 and self.holder != <unsigned long> PyThread_get_thread_ident()):
            raise BusyLearnerError(
                "the learner is in use: a call on it, from another thread or from the code of a value it reads, has "
                "not returned yet; use it from one thread at a time, or give each thread a copy (copy.deepcopy)"
            )
        self.busy = True
        return 0

    cdef void release(self) noexcept:
        self.busy = False

    def __enter__(self):
        self.claim()
        self.busy = False
        self.holder = <unsigned long> PyThread_get_thread_ident()
        self.depth += 1
        return self

    def __exit__(self, *_):
        self.depth -= 1
        if self.depth == 0:
            self.holder = 0

    # ---------------------------------------------------------------- the body of both APIs

    cdef int process(self, double w, bint learn, bint predict) except -1 nogil:
        """Predict and learn the gathered instance, as requested; to learn it, the target has read its truth.

        A weight of 0 learns nothing. Memory is reserved before anything changes; after that only Python code that the
        model calls can fail. Such a model predicts before anything changes; an error while it learns is raised last.
        """
        cdef bint together    # one scaling serves prediction and learning
        learn = learn and w > 0.0
        if learn and not self.target.has_truth:
            return self.process_unlabelled(w, predict)
        if learn:
            self.reserve()
            predict = predict or (self.target.memo == NULL and self.target.predicts_first())
        together = predict and learn and w == 1.0 and self.instance.unknown == 0 and not self.calls_python
        if together and self.target.fuses():
            self.instance.present(1.0, True)
            self.target.predict_and_learn()
        else:
            if predict:
                self.predict(together)
            if learn:
                if self.target.memo != NULL:
                    self.target.recall(self.target.memo)
                self.learn(w, together)
        return self.finish() if learn else 0

    cdef int process_unlabelled(self, double w, bint predict) except -1 nogil:
        """Predict the gathered instance, if requested, and learn it without a label, if the model can."""
        if self.model.learns_unlabelled:
            self.reserve()
        if predict:
            self.predict(False)
        if not self.model.learns_unlabelled:
            return 0
        if self.instance.unknown:
            self.admission.admit()
        self.instance.present(w, True)
        self.target.learn_unlabelled(w)
        return self.finish()

    cdef int reserve(self) except -1 nogil:
        """Reserve the memory to learn the gathered instance: for a new label, new features, and in the model."""
        if self.target.y == NEW_LABEL:
            self.target.reserve_label()
        if self.instance.unknown:
            self.admission.reserve()
        if self.model.prepares:
            self.model.prepare(self.instance.slots + 1, self.instance.n, self.instance.unknown, self.target.y)
        return 0

    cdef int predict(self, bint commit) except -1 nogil:
        """Scale and predict the gathered instance; with `commit`, add its values to the scaler's statistics."""
        self.instance.present(1.0, commit)
        self.target.predict()
        if self.calls_python:
            self.raise_pending()
        return 0

    cdef int learn(self, double w, bint presented) except -1 nogil:
        """Add a new label and admit new features; scale the instance, unless `presented`, and learn it."""
        if self.target.y == NEW_LABEL:
            self.target.add_label()
        if self.instance.unknown:
            self.admission.admit()
        if not presented:
            self.instance.present(w, True)
        self.target.learn(w)
        return 0

    cdef int finish(self) except -1 nogil:
        """Count the learned instance, and drop the features that the model evicted."""
        self.instance.mark_seen(self.model.sees_empty)
        if self.model.n_evicted:
            self.admission.drop_marked()
        if self.calls_python:
            self.raise_pending()
        return 0

    cdef int raise_pending(self) except -1 with gil:
        """Raise the exception of Python code that the model called."""
        error = self.model.pending_error()
        if error is not None:
            raise error
        return 0

    # ---------------------------------------------------------------- one instance

    def learn_one(self, x, y=None, w=1.0, memo=None):
        """Learn one mapping of names to values, without a truth if y is None or NaN; judge the prediction of the memo.

        If anything is wrong, or memory runs out, the state stays as it was.
        """
        self.claim()
        try:
            self.target.take_memo(memo)
            self.learn_dict(x, y, w)
        except MemoryError as error:
            raise OutOfMemoryError(
                f"no memory was left at step {self.space.step + 1:,}: the instance was not learned and the learner is "
                "as it was before; max_features bounds what a learner holds"
            ) from error
        finally:
            self.target.take_memo(None)
            self.release()

    cdef int learn_dict(self, object x, object y, object w) except -1:
        cdef double weight
        self.target.read(y)
        weight = weight_of(w, self.space.step + 1)
        self.instance.gather(x)
        if weight == 0.0 or not (self.target.has_truth or self.model.learns_unlabelled):
            return 0 if self.instance.unknown == 0 else self.check_names()
        if self.target.predicts_first():
            self.target.begin(False, self.target.conformal is not None)
        return self.process(weight, True, False)

    def check(self, x, y=None):
        """Raise what learning this instance would raise; y is None while the truth is not known. Changes nothing."""
        self.claim()
        try:
            if y is not None:
                self.target.read(y)
            self.instance.gather(x)
            if self.instance.unknown:
                self.check_names()
        finally:
            self.release()

    cdef int check_names(self) except -1:
        """Reject unknown names of the gathered mapping that could not be admitted."""
        self.admission.check(self.instance.pending)
        return 0

    cdef int predict_dict(self, object x, bint probabilities, bint bounds) except -1:
        """Gather, present and predict one mapping."""
        self.target.begin(probabilities, bounds)
        self.instance.gather(x)
        return self.process(1.0, False, True)

    def predict_one(self, x):
        """Return the prediction: a label or None, a number, or imputed values by slot."""
        self.claim()
        try:
            self.predict_dict(x, False, False)
            return self.target.prediction()
        finally:
            self.release()

    def predict_proba_one(self, x) -> dict[Any, float]:
        """Return probabilities by label; empty before any label."""
        self.claim()
        try:
            self.predict_dict(x, True, False)
            return self.target.probabilities()
        finally:
            self.release()

    def predict_with_proba_one(self, x):
        """Return (prediction, probabilities by label) of an instance that is gathered once."""
        self.claim()
        try:
            self.predict_dict(x, True, False)
            return self.target.prediction(), self.target.probabilities()
        finally:
            self.release()

    def predict_with_bounds_one(self, x):
        """Return (prediction, bounds), see bounds_one(), of an instance that is gathered and predicted once."""
        self.claim()
        try:
            self.predict_dict(x, False, True)
            return self.target.prediction(), self.target.bounds()
        finally:
            self.release()

    def memo_one(self, x):
        """Return what learn_one() needs to judge the prediction that x gets now; empty if that makes no difference."""
        self.claim()
        try:
            self.target.with_memo = True
            self.predict_dict(x, False, self.target.conformal is not None)
            return self.target.make_memo()
        finally:
            self.target.with_memo = False
            self.release()

    def memo_fits(self, memo):
        """Return whether learn_one() accepts the memo: it has the size and labels that this learner writes."""
        self.claim()
        try:
            self.target.take_memo(memo)
            return True
        except DataError:
            return False
        finally:
            self.target.take_memo(None)
            self.release()

    def bounds_one(self, x):
        """Return sets of labels or intervals (low, high) by coverage, ascending."""
        self.claim()
        try:
            self.predict_dict(x, False, True)
            return self.target.bounds()
        finally:
            self.release()

    def margins_one(self, x) -> dict[Any, float]:
        """Return scores by label, or what the decision makes of them."""
        self.claim()
        try:
            self.predict_dict(x, False, False)
            return self.target.margins()
        finally:
            self.release()

    def explain_one(self, x, int c=-1):
        """Return the contributions to the prediction, or to the score of class c, as the target describes them."""
        self.claim()
        try:
            self.predict_dict(x, False, False)
            explanation = self.target.explain(c)
            if self.calls_python:
                self.raise_pending()
            return explanation
        finally:
            self.release()

    # ---------------------------------------------------------------- blocks

    def run(self, Block block not None, schedule=None, bint learn=True, bint predict=True, bint probabilities=False,
            bint bounds=False, list memos=None):
        """Run over a block without returning to Python between instances; return the outputs of the target.

        Without a schedule every row is predicted (if requested) and then learned (if requested). A schedule is an int64
        array of steps: i + 1 predicts row i, -(i + 1) learns row i, and -(n + i + 1), of n rows, learns row i without
        its label. A row that has none is learned without one. If memory runs out, the rows before are learned.
        With `memos`, an entry per row, a row's prediction replaces its entry, and learning the row judges by it.
        """
        cdef int64_t before = self.space.step
        cdef list held = None if memos is None else list(memos)    # nobody else can change these
        self.claim()
        try:
            self.check_memos(held, len(block))
            steps = self.target.schedule(block, schedule, learn)
            self.target.begin_block(block, learn, predict, probabilities, bounds)
            self.target.with_memo = memos is not None
            self.run_rows(block, steps, schedule is not None, learn, predict, held)
            return self.target.end_block()
        except MemoryError as error:
            learned = self.space.step - before
            raise OutOfMemoryError(
                f"no memory was left: {learned:,} instances of the block were learned and the learner is as after the "
                "last of them; max_features bounds what a learner holds", learned
            ) from error
        finally:
            self.target.end_block()    # after an error: drops the outputs
            self.target.with_memo = False
            self.target.take_memo(None)
            if held is not None and len(held) == len(memos):
                memos[:] = held
            self.release()

    cdef int check_memos(self, list memos, Py_ssize_t rows) except -1:
        """Reject memos that are not one per row or that this learner did not make, before anything is learned."""
        if memos is None:
            return 0
        if len(memos) != rows:
            raise DataError(f"{len(memos):,} memos for {rows:,} rows; pass one per row, None for a row without")
        for memo in memos:
            self.target.take_memo(memo)
        return 0

    cdef int run_rows(self, Block block, const int64_t[::1] steps, bint scheduled, bint learn, bint predict,
                      list memos) except -1:
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices if len(block.indices) else np.zeros(1, dtype=np.int32)
        cdef const double[::1] val = block.values if len(block.values) else np.zeros(1)
        cdef const double[::1] weights = block.weights
        cdef bint weighted = block.weights is not None
        cdef Py_ssize_t i, row, n = len(block)
        cdef int64_t code
        cdef bint learns, predicts, with_memos = scheduled and memos is not None
        self.instance.bind(block.vocabulary)
        self.instance.reserve(int(np.diff(block.indptr).max()) if n else 0)
        with nogil:
            for i in range(steps.shape[0] if scheduled else n):
                if i % SIGNALS == SIGNALS - 1:
                    with gil:
                        PyErr_CheckSignals()
                code = steps[i] if scheduled else i + 1
                row = ((code if code > 0 else -code) - 1) % n
                predicts = predict and code > 0
                learns = learn and (code < 0 or not scheduled)
                self.instance.gather_row(&idx[0] + ptr[row], &val[0] + ptr[row], ptr[row + 1] - ptr[row])
                if learns and code < -n:
                    self.target.hide_truth()
                elif learns:
                    self.target.read_row(row)
                    if with_memos:
                        with gil:
                            self.target.take_memo(memos[row])
                            memos[row] = None
                self.process(weights[row] if weighted else 1.0, learns, predicts)
                if predicts:
                    self.target.write_row(row)
                    if with_memos:
                        with gil:
                            memos[row] = self.target.make_memo()
        return 0

    # ---------------------------------------------------------------- features

    def rename(self, dict names, bint partial=False):
        """Move the state of features to new names, {old: new}; return how many slots got a new name."""
        self.claim()
        try:
            return self.admission.rename(names, partial)
        finally:
            self.release()

    def shrink(self):
        """Evict features beyond max_features; a merged learner may hold more."""
        self.claim()
        try:
            self.admission.shrink()
        finally:
            self.release()

    def magnitude(self, Py_ssize_t slot):
        """Return how much a slot contributes to the model."""
        if not 0 <= slot < self.space.size:
            raise IndexError(f"no feature has the slot {slot}; there are {self.space.size}")
        found = self.model.magnitude(<int32_t> slot)
        self.raise_pending()
        return found

    def role(self, Py_ssize_t slot):
        """Return the part that a slot's feature plays in the method."""
        if not 0 <= slot < self.space.size:
            raise IndexError(f"no feature has the slot {slot}; there are {self.space.size}")
        return self.model.role(slot)

    def nbytes(self):
        """Return bytes of state by part."""
        return {**self.space.nbytes(), "scaler": self.scaler.nbytes(), "model": self.model.nbytes(),
                **self.target.nbytes()}

    # ---------------------------------------------------------------- files

    def dump(self):
        """Return (names by slot, labels, arrays by name): all of the state."""
        self.claim()
        try:
            names, kinds, columns, free_ids = self.space.dump()
            arrays = {
                "space.kind": kinds, "space.column": columns, "space.free": free_ids,
                "space.seen": self.space.seen_table(),
                "space.evictions": np.array([self.space.evictions], dtype=np.int64),
                "scaler": self.scaler.dump(self.space.size),
                "step": np.array([self.space.step], dtype=np.int64),
                **self.admission.dump(),
                **{"model." + key: array for key, array in self.model.dump(self.space.size).items()},
                **self.target.dump(),
            }
            if self.target.conformal is not None:
                arrays.update({"conformal." + key: array for key, array in self.target.conformal.dump().items()})
            return names, self.target.label_list(), arrays
        finally:
            self.release()

    def fill(self, names, labels, dict arrays):
        """Restore what dump() returned into a new engine with the same parameters; raise if it does not fit."""
        self.claim()
        try:
            labels = list(labels)
            self.target.check(labels, arrays)
            self.check_arrays(names, arrays)
            self.space.fill(names, arrays["space.kind"], arrays["space.column"], arrays["space.free"])
            self.space.restore_seen(arrays["space.seen"])
            self.space.evictions = int(arrays["space.evictions"][0])
            self.space.step = int(arrays["step"][0])
            self.scaler.fill(arrays["scaler"], self.space.capacity)
            self.admission.fill(arrays)
            if self.target.conformal is not None:
                self.target.conformal.fill({key[10:]: a for key, a in arrays.items() if key.startswith("conformal.")})
            self.target.fill(labels, arrays)
            self.model.fill({key[6:]: a for key, a in arrays.items() if key.startswith("model.")}, self.space.capacity)
            if labels and self.model.classes != len(labels):
                raise ValueError(f"{len(labels)} labels for {self.model.classes} classes of the model")
        finally:
            self.release()

    cdef int check_arrays(self, names, dict arrays) except -1:
        """Reject arrays of space, scaler and step that do not belong together, and numbers that are not finite."""
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
