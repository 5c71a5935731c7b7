"""What a method's mathematics must answer to be driven by the engine."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memset

from varifold._engine.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View
from varifold._numeric.activation cimport softmax
from varifold._numeric.memory cimport resize

from varifold._engine.state import checked_array


@cython.no_gc_clear  # what a subclass frees at its end stands in the memory of `arrays`
cdef class Model:
    """A method's mathematics over slots and values.

    A subclass declares its arrays in ``__cinit__`` (see `State`) and answers ``scores`` and ``learn`` without the GIL.
    ``scores`` changes nothing and never sees slots that are new. Memory is taken in ``grow``, ``reserve_class`` and
    ``prepare`` only, which may raise `MemoryError` and change nothing that anybody can see; ``add_class``, ``scores``
    and ``learn`` use what they took and cannot fail.
    """

    def __cinit__(self):
        self.arrays = State()

    def __dealloc__(self):
        free(self.evicted)

    cdef int attach(self, Space space) except -1:
        """Take the space whose slots the model sees, and make room for it."""
        self.space = space
        self.grow(space.capacity)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        """Room for this many slots."""
        self.arrays.reserve_slots(capacity)
        self.capacity = max(self.capacity, capacity)
        return 0

    cdef int reserve_class(self) except -1:
        """Room for one more class."""
        self.arrays.reserve_classes(self.classes + 1)
        return 0

    cdef int add_class(self) except -1:
        """One more class; reserve_class() made room for it."""
        self.classes += 1
        return 0

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Room for learning an instance of these slots and n_new new ones; for models that set `prepares`.

        `slots` are in no order, and hold neither the intercept nor what is new. `y` is the class, -1 if it is new.
        """
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        """The feature of this slot is evicted: the slot is as if it had never been used."""
        self.arrays.forget(slot)

    cdef void mark_evicted(self, int32_t slot) noexcept nogil:
        """The feature of this slot, absent now, has vanished: after this learn the engine forgets its name and slot.

        A model calls it while it learns. Inside another model, which may still need the feature, it does nothing.
        """
        if not self.alone:
            return
        if self.n_evicted == self.evicted_room:
            if resize(<void**> &self.evicted, (2 * self.evicted_room + 16) * sizeof(int32_t)) < 0:
                return    # the name stays, which does no harm
            self.evicted_room = 2 * self.evicted_room + 16
        self.evicted[self.n_evicted] = slot
        self.n_evicted += 1

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Score by class; the largest is the answer."""
        pass

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Probabilities from scores. Softmax: right for scores that are log-probabilities up to a constant."""
        softmax(self.classes, scores, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        """Learn the instance as class y with sample weight w > 0."""
        pass

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """scores(), proba() unless probs is NULL, then learn(); a model may do it in one pass, to the same bits."""
        self.scores(v, scores)
        if probs != NULL:
            self.proba(scores, probs)
        self.learn(v, y, w)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """How much the model makes of a slot; the lightest are evicted first when the user asks for that."""
        return 0.0

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """What each entry of the view adds to the label's score; with absent_contributions() the sum is the score."""
        memset(out, 0, v.n * sizeof(double))

    cdef dict absent_contributions(self, View* v, int label):
        """What features that are not in the view add to the label's score, by slot (or under a name of their own)."""
        return {}

    cdef void impute(self, View* v, double* value, double* low, double* high) noexcept nogil:
        """Write the value and its interval by slot, as far as the instance implies them; the rest stays as it is."""
        pass

    def calls_python(self):
        """Whether the model calls Python code, whose exceptions the compiled loop cannot raise."""
        return False

    def pending_error(self):
        """The exception raised in such a call, given once; None when there is none."""
        return None

    def dump(self, Py_ssize_t size):
        """The state of the first `size` slots as a dict of arrays."""
        return {"classes": np.array([self.classes], dtype=np.int64), **self.arrays.dump(size, self.classes)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Take what dump() gave; the model was just made with the same parameters."""
        self.classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        self.arrays.fill(arrays, self.space.size if self.alone else -1, capacity, self.classes)
        self.grow(capacity)

    def merging(self):
        """How it merges: "exact", "approximate" or, if it cannot be merged, None; see `_engine.merging`."""
        return None

    def merge(self, parts):
        """The arrays (all but `classes`) of a model that holds what all parts hold."""
        raise NotImplementedError(f"{type(self).__name__} cannot be merged")

    def notes(self):
        """What the model wants its user to know now (a fallback it took, say), as sentences."""
        return []

    def role(self, Py_ssize_t slot):
        """The part a feature plays in the method, for methods that say so; shown by `features`."""
        return ""

    def nbytes(self):
        """Bytes of numeric state held."""
        return self.arrays.nbytes()


cdef void call_scores(Model m, View* v, double* out) noexcept nogil:
    m.scores(v, out)


cdef void call_proba(Model m, double* scores, double* out) noexcept nogil:
    m.proba(scores, out)


cdef void call_learn(Model m, View* v, int y, double w) noexcept nogil:
    m.learn(v, y, w)


cdef int call_prepare(Model m, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
    return m.prepare(slots, n, n_new, y)


cdef void call_forget(Model m, int32_t slot) noexcept nogil:
    m.forget(slot)


cdef double call_magnitude(Model m, int32_t slot) noexcept nogil:
    return m.magnitude(slot)


cdef void call_contributions(Model m, View* v, int label, double* out) noexcept nogil:
    m.contributions(v, label, out)


cdef Calls model_calls() noexcept:
    """The functions above, for `Calls`."""
    cdef Calls calls
    calls.scores = <scores_call> call_scores
    calls.proba = <proba_call> call_proba
    calls.learn = <learn_call> call_learn
    calls.prepare = <prepare_call> call_prepare
    calls.forget = <forget_call> call_forget
    calls.magnitude = <magnitude_call> call_magnitude
    calls.contributions = <contributions_call> call_contributions
    return calls
