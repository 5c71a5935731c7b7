"""What a method must answer (Model), and one-versus-rest for those that know two classes only (BinaryRule)."""

import numpy as np

from libc.math cimport exp, fabs
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold._engine.space cimport Space
from varifold._engine.view cimport View


def expect(dict arrays, str name, str kind, tuple shape, low=None, high=None):
    """An array of a state to be filled in: of this kind ("f" or "i") and shape (None: any), with numbers in range.

    Whatever a model copies into memory of its own, or uses as an index, passes here first: a file may hold anything.
    """
    array = arrays[name]
    if array.dtype.kind not in ("f" if kind == "f" else "iu"):
        raise ValueError(f"{name} holds numbers of type {array.dtype}")
    if array.ndim != len(shape) or any(n is not None and n != held for n, held in zip(shape, array.shape)):
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    if array.size and ((low is not None and array.min() < low) or (high is not None and array.max() > high)):
        raise ValueError(f"{name} holds numbers outside {low} to {high}")
    return np.ascontiguousarray(array, dtype=np.float64 if kind == "f" else None)


def expect_chains(first, following, belongs):
    """Lists of numbers that 0 ends, from first[u] through `following`: what belongs to u, each once, and no more."""
    met = set()
    for u, at in enumerate(first):
        while at:
            if at in met or belongs.get(at) != u:
                raise ValueError(f"entry {at} is chained to {u}, to which it does not belong")
            met.add(at)
            at = following[at]
    if len(met) != len(belongs):
        raise ValueError(f"{len(met)} of {len(belongs)} entries are chained")


cdef class Model:
    """A method's mathematics over slots and values.

    A subclass owns its state, grows it with the space, and answers ``scores`` and ``learn`` without the GIL.
    ``scores`` must not change anything, and slots marked fresh never reach it.
    """

    def __dealloc__(self):
        free(self.gone)

    cdef int attach(self, Space space) except -1:
        self.space = space
        self.grow(space.capacity)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        self.classes += 1
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        pass

    cdef void give_up(self, int32_t slot) noexcept nogil:
        """The feature of this slot, absent now, has vanished: after this learn the engine forgets its name and slot.

        A model calls it while it learns. Inside another model, which may still need the feature, it does nothing.
        """
        cdef int32_t* more
        if not self.alone:
            return
        if self.n_gone == self.gone_room:
            more = <int32_t*> realloc(self.gone, (2 * self.gone_room + 16) * sizeof(int32_t))
            if more == NULL:
                return    # the name stays, which does no harm
            self.gone = more
            self.gone_room = 2 * self.gone_room + 16
        self.gone[self.n_gone] = slot
        self.n_gone += 1

    cdef void scores(self, View* v, double* out) noexcept nogil:
        pass

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Softmax: right for models whose scores are log-probabilities up to a constant."""
        softmax(self.classes, scores, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        pass

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """scores(), proba() unless probs is NULL, then learn(); a model may do it in one go, to the same bits."""
        self.scores(v, scores)
        if probs != NULL:
            self.proba(scores, probs)
        self.learn(v, y, w)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return 0.0

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """What each entry of the view adds to the label's score; with `beyond` the sum is the score."""
        memset(out, 0, v.n * sizeof(double))

    cdef dict beyond(self, View* v, int label):
        """What features that are not in the view add to the label's score, by slot (or under a name of their own)."""
        return {}

    cdef void complete(self, View* v, double* value, double* low, double* high) noexcept nogil:
        """Write, by slot, the values that an instance implies; what the model cannot tell stays as it is."""
        pass

    def calls_out(self):
        """Whether the model calls Python code, whose exceptions the compiled loop cannot raise."""
        return False

    def trouble(self):
        """The exception met in such a call, told once; None when there is none."""
        return None

    def dump(self, Py_ssize_t size):
        """The state of the first `size` slots as a dict of arrays."""
        return {"classes": np.array([self.classes], dtype=np.int64)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Take what dump() gave; the model was just made with the same parameters."""
        self.classes = int(expect(arrays, "classes", "i", (1,), 0)[0])

    def notes(self):
        """What the model wants its user to know now (a fallback it took, say), as sentences."""
        return []

    def role(self, Py_ssize_t slot):
        """The part a feature plays in the method, for methods that tell; shown by `features`."""
        return ""

    def nbytes(self):
        """Bytes of numeric state held."""
        return 0


cdef void softmax(int k, double* scores, double* out) noexcept nogil:
    cdef int c
    cdef double top = scores[0], total = 0.0
    for c in range(1, k):
        if scores[c] > top:
            top = scores[c]
    for c in range(k):
        out[c] = exp(scores[c] - top)
        total += out[c]
    for c in range(k):
        out[c] /= total


cdef inline double sigmoid(double f) noexcept nogil:
    cdef double e
    if f >= 0.0:
        return 1.0 / (1.0 + exp(-f))
    e = exp(f)
    return e / (1.0 + e)


cdef class BinaryRule(Model):
    """A rule for labels -1 and +1. The second label met is +1; from the third on, one problem a label.

    When the third label comes the first label's problem is the negation of the binary one, the second label's
    is a copy of it, and the new label starts from nothing.
    """

    def __cinit__(self):
        self.problems = 1

    def __dealloc__(self):
        free(self.state)
        free(self.shared)

    cdef int attach(self, Space space) except -1:
        self.shared = <double*> calloc(self.globals + 1, sizeof(double))
        if self.shared == NULL:
            raise MemoryError
        self.start(0)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t row = self.problems * self.width
        if capacity <= self.capacity:
            return 0
        self.state = <double*> realloc(self.state, capacity * row * sizeof(double))
        if self.state == NULL:
            raise MemoryError
        memset(self.state + self.capacity * row, 0, (capacity - self.capacity) * row * sizeof(double))
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        cdef int old = self.problems, new, c
        cdef Py_ssize_t slot, wide
        cdef double* state
        cdef double* shared
        self.classes += 1
        if self.classes <= 2:
            return 0
        new = self.classes
        wide = self.width
        state = <double*> calloc(self.capacity * new * wide, sizeof(double))
        shared = <double*> calloc(new * self.globals + 1, sizeof(double))
        if state == NULL or shared == NULL:
            raise MemoryError
        for slot in range(self.capacity):
            memcpy(state + slot * new * wide, self.state + slot * old * wide, old * wide * sizeof(double))
            if old == 1:
                memcpy(state + (slot * new + 1) * wide, self.state + slot * wide, wide * sizeof(double))
        memcpy(shared, self.shared, old * self.globals * sizeof(double))
        if old == 1:
            memcpy(shared + self.globals, self.shared, self.globals * sizeof(double))
        free(self.state)
        free(self.shared)
        self.state = state
        self.shared = shared
        self.problems = new
        if old == 1:
            self.negate(0)
        self.start(new - 1)
        return 0

    cdef void start(self, int c) noexcept nogil:
        """Set a new problem's shared numbers to their first values (they are zero already)."""
        pass

    cdef void negate(self, int c) noexcept nogil:
        """Turn the problem's answer round; by default the first number of every slot is a weight."""
        cdef Py_ssize_t slot
        for slot in range(self.capacity):
            at(self, <int32_t> slot, c)[0] *= -1.0

    cdef void forget(self, int32_t slot) noexcept nogil:
        memset(at(self, slot, 0), 0, self.problems * self.width * sizeof(double))

    cdef double score(self, View* v, int c) noexcept nogil:
        return 0.0

    cdef void update(self, View* v, int c, double y, double w) noexcept nogil:
        pass

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[0]

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        if self.problems == 1:
            out[0] = 0.0
            if self.classes == 2:
                out[1] = self.score(v, 0)
                out[0] = -out[1]
        else:
            for c in range(self.problems):
                out[c] = self.score(v, c)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Logistic of the margin; with more than two labels normalised to one."""
        cdef int c
        cdef double total = 0.0
        if self.problems == 1:
            out[0] = 1.0
            if self.classes == 2:
                out[1] = sigmoid(scores[1])
                out[0] = sigmoid(-scores[1])
            return
        for c in range(self.problems):
            out[c] = sigmoid(scores[c])
            total += out[c]
        if total < 1e-200:
            softmax(self.problems, scores, out)
            return
        for c in range(self.problems):
            out[c] /= total

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int c
        if self.problems == 1:
            self.update(v, 0, 1.0 if y == 1 else -1.0, w)
        else:
            for c in range(self.problems):
                self.update(v, c, 1.0 if y == c else -1.0, w)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef double total = 0.0
        cdef int c
        for c in range(self.problems):
            total += fabs(self.coefficient(slot, c))
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int c = label if self.problems > 1 else 0
        cdef double sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        if self.classes < 2:
            sign = 0.0
        for i in range(v.n):
            out[i] = sign * self.coefficient(v.slot[i], c) * v.x[i]

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t row = self.problems * self.width
        cdef double[::1] view
        state = np.zeros(size * row)
        shared = np.zeros(self.problems * self.globals)
        if state.size:
            view = state
            memcpy(&view[0], self.state, size * row * sizeof(double))
        if shared.size:
            view = shared
            memcpy(&view[0], self.shared, shared.size * sizeof(double))
        arrays = Model.dump(self, size)
        arrays["state"] = state.reshape(size, self.problems, self.width)
        arrays["shared"] = shared.reshape(self.problems, self.globals)
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double[::1] view
        Model.fill(self, arrays, capacity)
        problems = self.classes if self.classes > 2 else 1
        state = expect(arrays, "state", "f", (None, problems, self.width))
        shared = expect(arrays, "shared", "f", (problems, self.globals))
        if len(state) > capacity:
            raise ValueError(f"{len(state)} rows of weights for {capacity} slots")
        free(self.state)
        free(self.shared)
        self.state = NULL
        self.capacity = 0
        self.problems = state.shape[1]
        self.shared = <double*> calloc(self.problems * self.globals + 1, sizeof(double))
        if self.shared == NULL:
            raise MemoryError
        BinaryRule.grow(self, capacity)
        if state.size:
            view = state.reshape(-1)
            memcpy(self.state, &view[0], state.size * sizeof(double))
        if shared.size:
            view = shared.reshape(-1)
            memcpy(self.shared, &view[0], shared.size * sizeof(double))

    def nbytes(self):
        return self.capacity * self.problems * self.width * sizeof(double)


cdef void call_scores(Model m, View* v, double* out) noexcept nogil:
    m.scores(v, out)


cdef void call_proba(Model m, double* scores, double* out) noexcept nogil:
    m.proba(scores, out)


cdef void call_learn(Model m, View* v, int y, double w) noexcept nogil:
    m.learn(v, y, w)


cdef void call_forget(Model m, int32_t slot) noexcept nogil:
    m.forget(slot)


cdef double call_magnitude(Model m, int32_t slot) noexcept nogil:
    return m.magnitude(slot)


cdef void call_contributions(Model m, View* v, int label, double* out) noexcept nogil:
    m.contributions(v, label, out)


cdef Calls model_calls() noexcept:
    cdef Calls calls
    calls.scores = <scores_call> call_scores
    calls.proba = <proba_call> call_proba
    calls.learn = <learn_call> call_learn
    calls.forget = <forget_call> call_forget
    calls.magnitude = <magnitude_call> call_magnitude
    calls.contributions = <contributions_call> call_contributions
    return calls
