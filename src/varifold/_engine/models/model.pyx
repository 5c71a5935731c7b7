"""Base class for a method's mathematics: `Model`, and `Components` for a model that is made of models."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memset

from varifold._engine.names.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View
from varifold._numeric.activation cimport softmax
from varifold._numeric.memory cimport resize

from varifold._engine.state import checked_array


@cython.no_gc_clear  # what a subclass frees at its end is in the memory of `arrays`
cdef class Model:
    """A method's mathematics over slots and values.

    A subclass declares its arrays in ``__cinit__`` (see `State`) and implements ``scores`` and ``learn`` without the
    GIL. ``scores`` changes nothing and never sees new slots. Memory is allocated in ``grow``, ``reserve_class``
    and ``prepare`` only, which may raise `MemoryError` and change nothing that is visible from outside; ``add_class``,
    ``scores`` and ``learn`` use that memory and cannot fail.

    A model made of models calls ``hold`` for each: it then attaches, grows, adds classes to, prepares, forgets, saves
    and restores all of them in these methods. A subclass that overrides one of the methods calls it, too. A model
    around a single one has also its probabilities, magnitudes and contributions.
    """

    def __cinit__(self):
        self.arrays = State()

    def __dealloc__(self):
        free(self.evicted)

    cdef int hold(self, str prefix, Model model) except -1:
        """Add a component model; the names of its arrays get the prefix in files."""
        if self.components is None:
            self.components = Components()
        self.components.add(prefix, model)
        self.prepares = self.prepares or model.prepares
        return 0

    # ---------------------------------------------------------------- memory

    cdef int attach(self, Space space) except -1:
        """Attach the model to the slots of this space."""
        self.space = space
        if self.components is not None:
            self.components.attach(space)
        self.grow(space.capacity)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        """Reserve memory for this many slots."""
        if self.components is not None:
            self.components.grow(capacity)
        self.arrays.reserve_slots(capacity)
        self.capacity = max(self.capacity, capacity)
        return 0

    cdef int reserve_class(self) except -1:
        """Reserve memory for one more class."""
        if self.components is not None:
            self.components.reserve_class()
        self.arrays.reserve_classes(self.classes + 1)
        return 0

    cdef int add_class(self) except -1:
        """Add a class; reserve_class() was called before."""
        if self.components is not None:
            self.components.add_class()
        self.classes += 1
        return 0

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Reserve memory to learn an instance of these slots and n_new new ones; for models that set `prepares`.

        `slots` are in no order, and hold neither the intercept nor what is new. `y` is the class, NEW_LABEL or
        NO_LABEL.
        """
        if self.components is not None:
            self.components.prepare(slots, n, n_new, y)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Reset the slot of an evicted feature to the state of an unused one."""
        if self.components is not None:
            self.components.forget(slot)
        self.arrays.forget(slot)

    cdef void mark_evicted(self, int32_t slot) noexcept nogil:
        """Mark the feature of this slot, which is absent now, as vanished: the engine drops it after this learn.

        A model calls it while it learns. Inside another model, which may still need the feature, it does nothing.
        """
        if not self.alone:
            return
        if self.n_evicted == self.evicted_capacity:
            if resize(<void**> &self.evicted, (2 * self.evicted_capacity + 16) * sizeof(int32_t)) < 0:
                return    # the name stays, which does no harm
            self.evicted_capacity = 2 * self.evicted_capacity + 16
        self.evicted[self.n_evicted] = slot
        self.n_evicted += 1

    # ---------------------------------------------------------------- one instance

    cdef void scores(self, View* v, double* out) noexcept nogil:
        """Write the score of each class to `out`; the class of the largest is predicted."""
        pass

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        """Turn scores into probabilities. Softmax: right for scores that are log-probabilities up to a constant."""
        if self.components is not None and self.components.count == 1:
            self.components.proba(0, scores, out)
        else:
            softmax(self.classes, scores, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        """Learn the instance as class y with sample weight w > 0."""
        pass

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Do scores(), proba() unless probs is NULL, then learn(); a model may do it in one pass, to the same bits."""
        self.scores(v, scores)
        if probs != NULL:
            self.proba(scores, probs)
        self.learn(v, y, w)

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Learn an instance without a label; called if `learns_unlabelled`, also before any label."""
        pass

    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil:
        """Return how many numbers a memo has that was written when there were this many classes; 0: none is needed.

        A memo holds the parts of a prediction. A model that judges its parts when the truth arrives (a mixture weighs
        its experts) judges by the memo: after learning what came in between, the parts would predict better.
        """
        return 0

    cdef void write_memo(self, double* out) noexcept nogil:
        """Write the memo of the last prediction."""
        pass

    cdef void read_memo(self, const double* memo, int classes) noexcept nogil:
        """Judge by this memo, of finite numbers, in the next call of learn(); then there were this many classes."""
        pass

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return how much a slot contributes; with ``evict="lightest"`` the smallest are evicted first."""
        return self.components.magnitude(0, slot) if self.components is not None and self.components.count == 1 else 0.0

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Write what each entry of the view adds to the label's score; absent_contributions() is the rest of it."""
        if self.components is not None and self.components.count == 1:
            self.components.contributions(0, v, label, out)
        else:
            memset(out, 0, v.n * sizeof(double))

    cdef dict absent_contributions(self, View* v, int label):
        """Return what features that are not in the view add to the label's score: by slot, (slot, what) or another name."""
        if self.components is not None and self.components.count == 1:
            return (<Model> self.components.models[0]).absent_contributions(v, label)
        return {}

    cdef void impute(self, View* v, double* value, double* low, double* high) noexcept nogil:
        """Write the value and its interval by slot, as far as the instance implies them; the rest stays as it is."""
        pass

    def calls_python(self):
        """Return whether the model calls Python code, whose exceptions the compiled loop cannot raise."""
        return self.components is not None and any(model.calls_python() for model in self.components.live())

    def pending_error(self):
        """Return the exception raised in such a call, once; None if there is none."""
        if self.components is None:
            return None
        errors = [model.pending_error() for model in self.components.live()]
        return next((error for error in errors if error is not None), None)

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        """Return the state of the first `size` slots as arrays by name."""
        arrays = {} if self.components is None else self.components.dump(size)
        return {**arrays, "classes": np.array([self.classes], dtype=np.int64), **self.arrays.dump(size, self.classes)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Restore what dump() returned into a new model with the same parameters."""
        self.classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        self.arrays.fill(arrays, self.space.size if self.alone else -1, capacity, self.classes)
        if self.components is not None:
            self.components.fill(arrays, capacity)
            for model in self.components.live():
                if model.classes != self.classes:
                    raise ValueError(f"a component with {model.classes} classes of a model with {self.classes}")
        self.grow(capacity)

    def merging(self):
        """Return how it merges: "exact", "approximate" or, if it cannot be merged, None; see `_engine.merging`."""
        return None

    def merge(self, parts):
        """Return the arrays (all but `classes`) of a model that holds what all parts hold."""
        raise NotImplementedError(f"{type(self).__name__} cannot be merged")

    def notes(self):
        """Return what the user should know now (a fallback in use, for example), as sentences."""
        return [] if self.components is None else [note for model in self.components.live() for note in model.notes()]

    def role(self, Py_ssize_t slot):
        """Return the part that a feature plays in the method, for methods that name one; shown by `features`."""
        return self.components.models[0].role(slot) if self.components is not None and self.components.count == 1 else ""

    def nbytes(self):
        """Return bytes of numeric state."""
        return self.arrays.nbytes() + (0 if self.components is None else self.components.nbytes())


# ---------------------------------------------------------------- models made of models

# A method of a model that is known by a pointer: without the GIL no Python object can be made of it.
cdef void call_scores(Model m, View* v, double* out) noexcept nogil:
    m.scores(v, out)


cdef void call_proba(Model m, double* scores, double* out) noexcept nogil:
    m.proba(scores, out)


cdef void call_learn(Model m, View* v, int y, double w) noexcept nogil:
    m.learn(v, y, w)


cdef void call_learn_scored(Model m, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
    m.learn_scored(v, y, w, scores, probs)


cdef void call_learn_unlabelled(Model m, View* v, double w) noexcept nogil:
    m.learn_unlabelled(v, w)


cdef int call_prepare(Model m, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
    return m.prepare(slots, n, n_new, y)


cdef void call_forget(Model m, int32_t slot) noexcept nogil:
    m.forget(slot)


cdef double call_magnitude(Model m, int32_t slot) noexcept nogil:
    return m.magnitude(slot)


cdef void call_contributions(Model m, View* v, int label, double* out) noexcept nogil:
    m.contributions(v, label, out)


ctypedef void (*scores_call)(void*, View*, double*) noexcept nogil
ctypedef void (*proba_call)(void*, double*, double*) noexcept nogil
ctypedef void (*learn_call)(void*, View*, int, double) noexcept nogil
ctypedef void (*learn_scored_call)(void*, View*, int, double, double*, double*) noexcept nogil
ctypedef void (*learn_unlabelled_call)(void*, View*, double) noexcept nogil
ctypedef int (*prepare_call)(void*, const int32_t*, Py_ssize_t, Py_ssize_t, int) except -1 nogil
ctypedef void (*forget_call)(void*, int32_t) noexcept nogil
ctypedef double (*magnitude_call)(void*, int32_t) noexcept nogil
ctypedef void (*contributions_call)(void*, View*, int, double*) noexcept nogil


cdef class Components:
    """Models that a model is made of, over the same space; whatever concerns all of them is forwarded here.

    A component that is disabled, and a place that is empty, is left out of everything.
    """

    def __cinit__(self):
        self.models = []
        self.prefixes = []

    def __dealloc__(self):
        free(self.inner)

    cdef int add(self, str prefix, Model model) except -1:
        """Append a component, or an empty position if it is None."""
        if resize(<void**> &self.inner, (self.count + 1) * sizeof(void*)) < 0:
            raise MemoryError
        self.models.append(None)
        self.prefixes.append(prefix)
        self.count += 1
        return self.put(self.count - 1, model)

    cdef int put(self, int i, Model model) except -1:
        """Set the model, or None, at a position."""
        self.inner[i] = NULL
        self.models[i] = model
        if model is not None:
            self.inner[i] = <void*> model
        return 0

    cdef bint used(self, int i) noexcept nogil:
        """Return whether there is a component at this position that is not disabled."""
        return self.inner[i] != NULL and (self.disabled == NULL or not self.disabled[i])

    def live(self):
        """Return the components in use."""
        return [self.models[i] for i in range(self.count) if self.used(i)]

    # ---------------------------------------------------------------- all components

    cdef int attach(self, Space space) except -1:
        cdef int i
        for i in range(self.count):
            if self.used(i):
                (<Model> self.models[i]).attach(space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef int i
        for i in range(self.count):
            if self.used(i) and (<Model> self.models[i]).capacity < capacity:
                (<Model> self.models[i]).grow(capacity)
        return 0

    cdef int reserve_class(self) except -1:
        cdef int i
        for i in range(self.count):
            if self.used(i):
                (<Model> self.models[i]).reserve_class()
        return 0

    cdef int add_class(self) except -1:
        cdef int i
        for i in range(self.count):
            if self.used(i):
                (<Model> self.models[i]).add_class()
        return 0

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        cdef int i
        for i in range(self.count):
            if self.used(i):
                self.prepare_component(i, slots, n, n_new, y)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int i
        for i in range(self.count):
            if self.used(i):
                (<forget_call> call_forget)(self.inner[i], slot)

    # ---------------------------------------------------------------- one component

    cdef int prepare_component(self, int i, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        return (<prepare_call> call_prepare)(self.inner[i], slots, n, n_new, y)

    cdef void scores(self, int i, View* v, double* out) noexcept nogil:
        (<scores_call> call_scores)(self.inner[i], v, out)

    cdef void proba(self, int i, double* scores, double* out) noexcept nogil:
        (<proba_call> call_proba)(self.inner[i], scores, out)

    cdef void learn(self, int i, View* v, int y, double w) noexcept nogil:
        (<learn_call> call_learn)(self.inner[i], v, y, w)

    cdef void learn_scored(self, int i, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        (<learn_scored_call> call_learn_scored)(self.inner[i], v, y, w, scores, probs)

    cdef void learn_unlabelled(self, int i, View* v, double w) noexcept nogil:
        (<learn_unlabelled_call> call_learn_unlabelled)(self.inner[i], v, w)

    cdef double magnitude(self, int i, int32_t slot) noexcept nogil:
        return (<magnitude_call> call_magnitude)(self.inner[i], slot)

    cdef void contributions(self, int i, View* v, int label, double* out) noexcept nogil:
        (<contributions_call> call_contributions)(self.inner[i], v, label, out)

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        """Return the state of the components in use, their names with prefixes."""
        cdef int i
        arrays = {}
        for i in range(self.count):
            if self.used(i):
                arrays.update({self.prefixes[i] + key: array for key, array in self.models[i].dump(size).items()})
        return arrays

    def saved(self, int i, dict arrays):
        """Return the arrays of a component, their names without the prefix."""
        prefix = self.prefixes[i]
        return {key[len(prefix):]: array for key, array in arrays.items() if key.startswith(prefix)}

    def fill(self, dict arrays, Py_ssize_t capacity):
        """Restore the components in use."""
        cdef int i
        for i in range(self.count):
            if self.used(i):
                self.models[i].fill(self.saved(i, arrays), capacity)

    def nbytes(self):
        """Return bytes of numeric state."""
        return sum(model.nbytes() for model in self.models if model is not None)
