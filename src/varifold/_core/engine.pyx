"""The engine: space, scaler and model joined, with one door for dicts and one for blocks.

Both doors gather (slot, value) pairs, order them by slot, scale, score and learn with the same code, so they leave
the same state to the last bit.
"""

import numpy as np

from cpython.dict cimport PyDict_Next
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport isfinite, log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold._core.block cimport Block, Vocabulary
from varifold._core.model cimport BinaryRule, Model
from varifold._core.names cimport (
    ABSENT, BAD, COLUMN, FREE, INDICATOR, LEVEL, NUMBER, NUMERIC, canonical_name, conflict_error, name_error,
    quick_find, quick_read,
    value_error,
)
from varifold._core.order cimport BITMAP_SLOTS, MARKED_SLOTS, MARKED_WORDS, order_row, sort_pairs, sort_unique
from varifold._core.scaler cimport NONE, STANDARD, STRIP, Scaler, Stat, absorb, absorb_strip
from varifold._core.space cimport Seen, Space, seen_again, seen_last, seen_touch
from varifold._core.view cimport View

from varifold._core.block import plain_label
from varifold._core.model import expect
from varifold.errors import DataError

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define VARIFOLD_PREFETCH(p) __builtin_prefetch((p), 0, 1)
    #else
    #define VARIFOLD_PREFETCH(p) ((void) 0)
    #endif
    """
    void prefetch "VARIFOLD_PREFETCH"(void*) noexcept nogil


cdef double UNSCALED = 1e50  # inputs that no scaler bounds are held within it, so that products of weights stay finite


cdef class Binding:
    """Where a vocabulary's ids live in a space."""

    def __cinit__(self, Vocabulary vocabulary):
        self.vocabulary = vocabulary

    def __dealloc__(self):
        free(self.slot)
        free(self.source)

    cdef int fit(self, Space space) except -1:
        """Make room for new ids and slots, and look up the ids not yet known there."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef bint stale = self.evictions != space.evictions
        if self.vocabulary.size > self.ids:
            self.slot = <int32_t*> realloc(self.slot, self.vocabulary.size * sizeof(int32_t))
            if self.slot == NULL:
                raise MemoryError
            memset(self.slot + self.ids, 0, (self.vocabulary.size - self.ids) * sizeof(int32_t))
        if space.capacity > self.slots:
            self.source = <int32_t*> realloc(self.source, space.capacity * sizeof(int32_t))
            if self.source == NULL:
                raise MemoryError
            memset(self.source + self.slots, 0, (space.capacity - self.slots) * sizeof(int32_t))
            self.slots = space.capacity
        if stale:
            memset(self.slot, 0, self.vocabulary.size * sizeof(int32_t))
            memset(self.source, 0, self.slots * sizeof(int32_t))
        for i in range(1, self.vocabulary.size):
            if self.slot[i] == 0:
                s = slot_of(space, self.vocabulary, <int32_t> i)
                if s > 0:
                    self.slot[i] = s
                    self.source[s] = <int32_t> i
        self.ids = self.vocabulary.size
        self.evictions = space.evictions
        return 0


cdef int32_t slot_of(Space space, Vocabulary vocabulary, int32_t i) except -2:
    """The slot of a vocabulary id, 0 when the space does not know it; a clash of names raises."""
    cdef int32_t s
    cdef uint8_t kind = vocabulary.kind[i]
    s = space.find(vocabulary.key[i])
    if s < 0:
        return 0
    if kind & INDICATOR:
        if not space.kind[s] & INDICATOR:
            raise conflict_error(<object> vocabulary.key[i], 1)
        return s
    if space.kind[s] & INDICATOR:
        raise conflict_error(<object> vocabulary.key[i], 1)
    return s if kind & NUMERIC and space.kind[s] & NUMERIC else 0


def pending_order(entry):
    """Ints before strs, each in their own order."""
    return (type(entry[0]) is str, entry[0])


cdef class Engine:
    """One learner's state. For one thread at a time."""

    def __cinit__(self, Model model not None, str scale="standard", double clip=3.0, bint intercept=True,
                  max_features=None, str evict="oldest"):
        self.space = Space()
        self.scaler = Scaler(scale, clip)
        self.model = model
        self.labels = []
        self.label_index = {}
        self.intercept = intercept
        self.max_features = 0 if max_features is None else max_features
        self.lightest = evict == "lightest"
        self.dense = <double*> calloc(BITMAP_SLOTS, sizeof(double))
        self.marks = <uint64_t*> calloc(MARKED_WORDS, sizeof(uint64_t))
        if self.dense == NULL or self.marks == NULL:
            raise MemoryError
        self.scaler.grow(self.space.capacity)
        self.listens = model.calls_out()
        model.alone = True
        model.attach(self.space)
        self.reserve(16)
        self.fit_places()

    def __dealloc__(self):
        free(self.counts)
        free(self.slots)
        free(self.slots2)
        free(self.vals)
        free(self.vals2)
        free(self.scaled)
        free(self.fresh)
        free(self.heads)
        free(self.columns)
        free(self.dense)
        free(self.marks)
        free(self.places)
        free(self.out)
        free(self.probs)

    # ---------------------------------------------------------------- gathering

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Scratch for instances of n pairs and the intercept, which sits at position 0."""
        if n + 1 <= self.room:
            return 0
        cdef Py_ssize_t room = 2 * n + 16
        self.slots = <int32_t*> realloc(self.slots, room * sizeof(int32_t))
        self.slots2 = <int32_t*> realloc(self.slots2, room * sizeof(int32_t))
        self.vals = <double*> realloc(self.vals, room * sizeof(double))
        self.vals2 = <double*> realloc(self.vals2, room * sizeof(double))
        self.scaled = <double*> realloc(self.scaled, room * sizeof(double))
        self.fresh = <uint8_t*> realloc(self.fresh, room)
        self.heads = <int32_t*> realloc(self.heads, room * sizeof(int32_t))
        self.columns = <int32_t*> realloc(self.columns, 2 * room * sizeof(int32_t))
        if (self.slots == NULL or self.slots2 == NULL or self.vals == NULL or self.vals2 == NULL
                or self.scaled == NULL or self.fresh == NULL or self.heads == NULL or self.columns == NULL):
            raise MemoryError
        self.slots[0] = 0
        self.vals[0] = 1.0
        self.scaled[0] = 1.0
        self.fresh[0] = 0
        self.room = room
        return 0

    cdef int fit_places(self) except -1:
        """Scratch for ordering the rows of blocks, as large as the space."""
        cdef Py_ssize_t n = min(self.space.capacity, <Py_ssize_t> MARKED_SLOTS)
        self.places = <int32_t*> realloc(self.places, n * sizeof(int32_t))
        if self.places == NULL:
            raise MemoryError
        return 0

    cdef int append(self, int32_t slot, double value) except -1:
        self.n += 1
        self.slots[self.n] = slot
        self.vals[self.n] = value
        if self.space.kind[slot] & INDICATOR:
            self.heads[self.n_heads] = self.space.column[slot]
            self.n_heads += 1
        return 0

    cdef list gather(self, dict x):
        """Known pairs into scratch; unknown ones come back as (name, column, level, value), or None."""
        cdef Py_ssize_t pos = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef double number = 0.0
        cdef int found
        cdef int32_t s, i
        cdef uint8_t kind
        cdef object name
        cdef list pending = None
        cdef Space space = self.space
        self.n = 0
        self.n_heads = 0
        self.ordered = False
        self.reserve(len(x))
        while PyDict_Next(x, &pos, &key, &value):
            found = quick_read(value, &number)
            if PyUnicode_CheckExact(<object> key) or PyLong_CheckExact(<object> key):
                s = quick_find(space, key)
                name = None
            else:
                name = canonical_name(<object> key)
                if name is None:
                    raise name_error(<object> key, self.step + 1)
                s = space.find(<PyObject*> name)
            if found == ABSENT:
                continue
            if found == BAD:
                raise value_error(<object> key, <object> value, self.step + 1)
            kind = space.kind[s] if s >= 0 else 0
            if kind & INDICATOR:
                raise conflict_error(<object> key, self.step + 1)
            if found == NUMBER:
                if kind & NUMERIC:
                    self.n += 1
                    self.slots[self.n] = s
                    self.vals[self.n] = number
                    if self.scaler.kind != NONE:
                        prefetch(&self.scaler.stat[s])
                    continue
                if pending is None:
                    pending = []
                pending.append((<object> key if name is None else name, None, None, number))
            else:
                level = str(<object> value)
                i = space.find_level(s, level) if s >= 0 else -1
                if i >= 0:
                    self.append(i, 1.0)
                    continue
                if pending is None:
                    pending = []
                name = <object> key if name is None else name
                pending.append((f"{name}={level}", name, level, 1.0))
        return pending

    cdef int admit(self, list pending) except -1:
        """Give the pending names slots, in sorted order; nothing changes if two of them clash."""
        cdef int32_t s
        cdef Py_ssize_t added = 0, k
        cdef set taken = set()
        for name, column, level, value in pending:
            if column is not None:
                s = self.space.find(<PyObject*> name)
                if s >= 0 or name in taken:
                    raise conflict_error(name, self.step + 1)
            elif name in taken:
                raise conflict_error(name, self.step + 1)
            taken.add(name)
        for name, column, level, value in pending:
            if column is not None and column in taken and type(column) is str:
                raise conflict_error(column, self.step + 1)
        pending.sort(key=pending_order)
        k = len(pending)
        self.ordered = False
        if self.max_features and self.space.features + k > self.max_features:
            k = self.make_room(k)
        for name, column, level, value in pending[:k]:
            if column is None:
                s = self.space.ensure_numeric(name)
            else:
                s = self.space.ensure_level(column, level)
            if self.space.capacity > self.model.capacity:
                self.scaler.grow(self.space.capacity)
                self.model.grow(self.space.capacity)
                self.fit_places()
            self.append(s, value)
        return 0

    cdef int make_room(self, Py_ssize_t needed) except -1:
        """Evict so that `needed` new features fit, sparing those of this instance; returns how many fit.

        A sixteenth of the bound goes at a time, so that an eviction's search is paid for by many new features.
        """
        cdef Py_ssize_t i, room
        cdef Space space = self.space
        cdef set spared = {self.slots[i] for i in range(1, self.n + 1)}
        needed = min(needed, self.max_features - len(spared))
        room = self.max_features - space.features
        if needed > room:
            candidates = [i for i in space.live() if i not in spared]
            if self.lightest:
                candidates.sort(key=lambda i: (self.model.magnitude(i), seen_last(&space.seen[<int32_t> i]), i))
            else:
                candidates.sort(key=lambda i: (seen_last(&space.seen[<int32_t> i]), i))
            for i in candidates[:max(needed - room, self.max_features // 16)]:
                self.drop(<int32_t> i)
        return max(needed, 0)

    cdef int drop(self, int32_t slot) except -1:
        """Forget a feature: its name, its statistics, what the model holds, and where a block finds it."""
        cdef int32_t head = self.space.column[slot]
        if self.binding is not None and self.binding.slots > slot:
            self.binding.slot[self.binding.source[slot]] = 0
            self.binding.source[slot] = 0
        self.model.forget(slot)
        self.scaler.forget(slot)
        self.space.remove(slot)
        if self.space.kind[head] == FREE:
            self.model.forget(head)  # a column went with its last level
        if self.binding is not None:
            self.binding.evictions = self.space.evictions
        return 0

    cdef int settle(self) except -1 with gil:
        """After a learn: drop the features that the model gave up, in slot order, and say if memory ran out."""
        cdef Py_ssize_t i
        cdef int32_t slot
        for slot in sorted({self.model.gone[i] for i in range(self.model.n_gone)}):
            if self.space.kind[slot] & (NUMERIC | INDICATOR):
                self.drop(slot)
        self.model.n_gone = 0
        if self.space.starved:
            self.space.starved = False
            raise MemoryError(
                f"no memory was left at step {self.step:,}: values of that instance for which there was no room were "
                "not learned, everything else was; bound the learner with max_features"
            )
        return 0

    cdef void present(self, double w, bint commit, bint admitted) noexcept nogil:
        """Order the pairs, scale them (for good when committing) and lay out the view.

        Only an instance that admitted names, or the very first one, can hold fresh slots.
        """
        cdef Py_ssize_t i, k, n = self.n
        cdef int32_t s
        cdef Stat passing
        cdef int kind = self.scaler.kind
        cdef double clip = self.scaler.clip
        cdef Stat* stat = self.scaler.stat
        cdef Seen* seen = self.space.seen
        cdef View* v = &self.view
        cdef int32_t* slots = self.slots
        cdef double* vals = self.vals
        cdef double* scaled = self.scaled
        if not self.ordered:
            sort_pairs(n, slots + 1, vals + 1, self.slots2, self.vals2, self.dense, <int32_t> (self.space.size - 1))
            self.ordered = True
        if kind == NONE:
            for i in range(1, n + 1):
                scaled[i] = -UNSCALED if vals[i] < -UNSCALED else UNSCALED if vals[i] > UNSCALED else vals[i]
        elif self.n_heads == 0 and kind == STANDARD:
            i = 1
            while i <= n:
                k = n + 1 - i if n + 1 - i < STRIP else STRIP
                absorb_strip(stat, k, slots + i, vals + i, w, clip, commit, scaled + i)
                i += k
        else:
            for i in range(1, n + 1):
                s = self.slots[i]
                if self.space.kind[s] & INDICATOR:
                    self.scaled[i] = self.vals[i]
                    continue
                passing = stat[s]
                self.scaled[i] = absorb(&passing, self.vals[i], w, kind, clip)
                if commit:
                    stat[s] = passing
        memset(self.fresh, 0, n + 1)
        self.admitted = admitted
        if admitted:
            self.fresh[0] = seen[0].packed_first == 0
            for i in range(1, n + 1):
                self.fresh[i] = seen[self.slots[i]].packed_first == 0
        v.n = n + 1 if self.intercept else n
        i = 0 if self.intercept else 1
        v.slot = self.slots + i
        v.x = self.scaled + i
        v.raw = self.vals + i
        v.fresh = self.fresh + i
        v.step = self.step
        v.known = self.space.features
        if self.n_heads == 0:
            v.column = self.slots + 1
            v.columns = n
        elif self.model.wants_columns:
            memcpy(self.columns, self.heads, self.n_heads * sizeof(int32_t))
            v.columns = self.n_heads
            for i in range(1, n + 1):
                if not self.space.kind[self.slots[i]] & INDICATOR:
                    self.columns[v.columns] = self.slots[i]
                    v.columns += 1
            v.columns = sort_unique(v.columns, self.columns)
            v.column = self.columns
        else:
            v.column = NULL
            v.columns = 0

    # ---------------------------------------------------------------- labels

    cdef int add_label(self, object y) except -1:
        """Class index of a plain label, new or known."""
        cdef object known = self.label_index.get(y)
        cdef Py_ssize_t k
        if known is not None:
            return known
        k = len(self.labels)
        if k + 1 > self.out_room:
            room = 2 * k + 4
            self.out = <double*> realloc(self.out, room * sizeof(double))
            self.probs = <double*> realloc(self.probs, room * sizeof(double))
            self.counts = <double*> realloc(self.counts, room * sizeof(double))
            if self.out == NULL or self.probs == NULL or self.counts == NULL:
                raise MemoryError
            self.out_room = room
        self.counts[k] = 0.0
        self.model.add_class()
        self.labels.append(y)
        self.label_index[y] = k
        return <int> k

    # ---------------------------------------------------------------- one instance

    cdef void learn_view(self, int y, double w) noexcept nogil:
        """Learn the presented instance as label y."""
        if self.n > 0 or self.model.sees_empty:
            self.model.learn(&self.view, y, w)
        self.note(y, w)

    cdef void note(self, int y, double w) noexcept nogil:
        """Count the instance that was just learned."""
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
        if self.n_heads:
            self.n_heads = sort_unique(self.n_heads, self.heads)
            for i in range(self.n_heads):
                if not self.space.kind[self.heads[i]] & NUMERIC:
                    seen_touch(&seen[self.heads[i]], now)
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
        return self.best() if k > 1 else 0

    cdef int best(self) noexcept nogil:
        """The class of the highest score in `out`, the first among equals."""
        cdef int c, best = 0
        for c in range(1, self.model.classes):
            if self.out[c] > self.out[best]:
                best = c
        return best

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

    def learn_one(self, x, y, double w=1.0):
        """Learn one dict."""
        cdef dict d = x if type(x) is dict else dict(x)
        cdef list pending
        cdef int c
        cdef object known = None
        try:
            known = self.label_index.get(y)
        except TypeError:
            pass
        if known is None:
            y = plain_label(y, self.step + 1)
        if not (isfinite(w) and w >= 0.0):
            raise DataError(f"the weight is {w!r} at step {self.step + 1:,}; weights are finite and >= 0")
        pending = self.gather(d)
        if w == 0.0:
            return
        if pending is not None:
            self.admit(pending)
        c = self.add_label(y) if known is None else known
        self.present(w, True, pending is not None or self.step == 0)
        self.learn_view(c, w)
        if self.model.n_gone or self.space.starved:
            self.settle()
        self.hear()

    cdef int hear(self) except -1:
        """Raise what a model that calls out to Python met there."""
        if self.listens:
            error = self.model.trouble()
            if error is not None:
                raise error
        return 0

    def predict_one(self, x):
        """The label, or None before any was learned."""
        cdef int c
        self.gather(x if type(x) is dict else dict(x))
        if self.model.classes == 0:
            return None
        self.present(1.0, False, False)
        c = self.answer()
        self.hear()
        return self.labels[c]

    def predict_proba_one(self, x):
        """Probabilities by label."""
        cdef int c
        self.gather(x if type(x) is dict else dict(x))
        if self.model.classes == 0:
            return {}
        self.present(1.0, False, False)
        self.decide()
        self.hear()
        return {self.labels[c]: self.probs[c] for c in range(self.model.classes)}

    def margins_one(self, x):
        """Scores by label."""
        cdef int c
        self.gather(x if type(x) is dict else dict(x))
        if self.model.classes == 0:
            return {}
        self.present(1.0, False, False)
        self.answer()
        self.hear()
        return {self.labels[c]: self.out[c] for c in range(self.model.classes)}

    def explain_one(self, x, int c=-1):
        """(label, contributions by name, what is left); c = -1 explains the answer."""
        cdef Py_ssize_t i, first
        self.gather(x if type(x) is dict else dict(x))
        if self.model.classes == 0:
            return None, {}, 0.0
        self.present(1.0, False, False)
        best = self.answer()
        c = best if c < 0 else c
        first = 1 if self.intercept else 0
        parts = {}
        rest = 0.0
        if self.n == 0 and not self.model.sees_empty:
            return self.labels[c], parts, self.out[c]
        cdef double[::1] share = np.zeros(max(1, self.view.n))
        self.model.contributions(&self.view, c, &share[0])
        for i in range(self.view.n):
            if self.view.slot[i] == 0:
                rest = share[i]
            else:
                parts[<object> self.space.key[self.view.slot[i]]] = share[i]
        for key, part in self.model.beyond(&self.view, c).items():
            parts[key if type(key) is str else self.space.name_of(key)] = part
        self.hear()
        return self.labels[c], parts, rest

    def complete_one(self, x):
        """(values, low, high) by slot that the model completes an instance to, NaN where it cannot tell."""
        cdef double[:, ::1] out = np.full((3, self.space.size), np.nan)
        self.gather(x if type(x) is dict else dict(x))
        self.present(1.0, False, False)
        self.model.complete(&self.view, &out[0, 0], &out[1, 0], &out[2, 0])
        return np.asarray(out)

    # ---------------------------------------------------------------- blocks

    cdef int _bind(self, Vocabulary vocabulary) except -1:
        if self.binding is None or self.binding.vocabulary is not vocabulary:
            self.binding = Binding(vocabulary)
            self.binding.evictions = self.space.evictions
        self.binding.fit(self.space)
        return 0

    cdef int _admit_row(self, const int32_t* idx, const double* val, Py_ssize_t m) except -1 with gil:
        """Admit the unknown names of a block's row."""
        cdef Py_ssize_t k
        cdef Vocabulary vocabulary = self.binding.vocabulary
        cdef list pending = []
        cdef Py_ssize_t before = self.n
        for k in range(m):
            if self.binding.slot[idx[k]] == 0:
                name = <object> vocabulary.key[idx[k]]
                if vocabulary.kind[idx[k]] & INDICATOR:
                    column, level = vocabulary.level_of(idx[k])
                    pending.append((name, column, level, val[k]))
                else:
                    pending.append((name, None, None, val[k]))
        self.admit(pending)
        if self.space.capacity > self.binding.slots:
            self.binding.fit(self.space)
        else:
            for k in range(m):
                if self.binding.slot[idx[k]] == 0:
                    s = slot_of(self.space, vocabulary, idx[k])
                    if s > 0:
                        self.binding.slot[idx[k]] = s
                        self.binding.source[s] = idx[k]
        return 0

    cdef Py_ssize_t _gather_row(self, const int32_t* idx, const double* val, Py_ssize_t m) noexcept nogil:
        """Known pairs of a block's row into scratch; returns how many are unknown."""
        cdef Py_ssize_t k, n = 0
        cdef int32_t s
        cdef int32_t* map = self.binding.slot
        cdef uint8_t* kind = self.space.kind
        cdef int32_t* slots = self.slots
        cdef double* vals = self.vals
        self.n_heads = 0
        self.ordered = self.space.size <= MARKED_SLOTS and self.space.size <= 128 * (m + 1)
        if self.ordered:
            n = order_row(m, idx, val, map, self.space.size, self.marks, self.places, slots + 1, vals + 1)
        else:
            for k in range(m):
                s = map[idx[k]]
                if s != 0:
                    n += 1
                    slots[n] = s
                    vals[n] = val[k]
        self.n = n
        if self.space.indicators:
            for k in range(1, n + 1):
                if kind[slots[k]] & INDICATOR:
                    self.heads[self.n_heads] = self.space.column[slots[k]]
                    self.n_heads += 1
        return m - n

    def run(self, Block block, schedule=None, bint learn=True, bint predict=True, bint probabilities=True):
        """Walk a block without returning to Python between instances.

        Without a schedule every row is predicted (when asked) and then learned (when asked). A schedule is an int64
        array of steps: i + 1 predicts row i, -(i + 1) learns row i. Returns predicted class indices (-1: none) and
        probabilities (rows x labels known at the end), each None when not asked for.
        """
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices
        cdef const double[::1] val = block.values
        cdef const int32_t[::1] codes = block.codes
        cdef const double[::1] weights = None
        cdef const int64_t[::1] steps
        cdef Py_ssize_t n = len(block), row, i, total, widest
        cdef int c, k, best, k_all
        cdef double w
        cdef bint weighted = block.weights is not None
        cdef bint shared
        cdef Py_ssize_t unknown, m
        cdef const int32_t* row_idx
        cdef const double* row_val
        cdef int64_t code
        cdef bint planned = schedule is not None
        cdef bint fused = predict and learn and not planned
        if learn and not planned and n and (block.codes < 0).any():
            raise DataError(f"instance {int(np.argmax(block.codes < 0))} has no label; give y, or call predict_many")
        if planned:
            schedule = np.ascontiguousarray(schedule, dtype=np.int64)
            if len(schedule) and (np.abs(schedule).max() > n or (schedule == 0).any()):
                raise DataError("a schedule names rows that are not in the block")
            if (block.codes[-schedule[schedule < 0] - 1] < 0).any():
                raise DataError("a schedule learns an instance that has no label")
        else:
            schedule = np.zeros(0, dtype=np.int64)
        steps = schedule
        self._bind(block.vocabulary)
        widest = int(np.diff(block.indptr).max()) if n else 0
        self.reserve(widest)
        if weighted:
            weights = block.weights
        cdef int32_t[::1] classes = np.full(max(1, len(block.labels)), -1, dtype=np.int32)
        for i in range(len(block.labels)):
            classes[i] = self.label_index.get(block.labels.values[i], -1)
        k_all = len(self.labels) + <int> sum(1 for i in range(len(block.labels)) if classes[i] < 0) if learn else \
            len(self.labels)
        predicted = np.full(n if predict else 0, -1, dtype=np.int32)
        probs = np.zeros((n if predict and probabilities else 0, max(1, k_all)))
        cdef int32_t[::1] out_label = predicted
        cdef double[:, ::1] out_prob = probs
        total = steps.shape[0] if planned else n
        if idx.shape[0] == 0:
            # nothing stored: keep the pointers below valid
            idx = np.zeros(1, dtype=np.int32)
            val = np.zeros(1)
        with nogil:
            for i in range(total):
                code = steps[i] if planned else i + 1
                row = (code if code > 0 else -code) - 1
                row_idx = &idx[0] + ptr[row]
                row_val = &val[0] + ptr[row]
                m = ptr[row + 1] - ptr[row]
                w = weights[row] if weighted else 1.0
                unknown = self._gather_row(row_idx, row_val, m)
                shared = False
                c = classes[codes[row]] if fused else -1
                if c >= 0 and unknown == 0 and w == 1.0 and self.n > 0 and self.model.classes > 1:
                    # known names, a known label: the model scores and learns in one go
                    self.present(1.0, True, self.step == 0)
                    self.model.learn_scored(&self.view, c, 1.0, self.out, self.probs if probabilities else NULL)
                    out_label[row] = self.best()
                    if probabilities:
                        for k in range(self.model.classes):
                            out_prob[row, k] = self.probs[k]
                    self.note(c, 1.0)
                    if self.model.n_gone or self.space.starved:
                        self.settle()
                    continue
                if predict and code > 0:
                    shared = learn and not planned and unknown == 0 and w == 1.0
                    self.present(1.0, shared, self.step == 0)
                    if probabilities:
                        best = self.decide()
                        for c in range(self.model.classes):
                            out_prob[row, c] = self.probs[c]
                    else:
                        best = self.answer()
                    out_label[row] = best
                    if planned:
                        continue
                if not learn or w == 0.0:
                    continue
                if unknown:
                    self._admit_row(row_idx, row_val, m)
                c = classes[codes[row]]
                if c < 0:
                    with gil:
                        c = self.add_label(block.labels.values[codes[row]])
                    classes[codes[row]] = c
                if not shared:
                    self.present(w, True, unknown > 0 or self.step == 0)
                self.learn_view(c, w)
                if self.model.n_gone or self.space.starved:
                    self.settle()
        self.hear()
        return (predicted if predict else None,
                probs[:, :max(1, len(self.labels))] if predict and probabilities else None)

    def labels_of(self, const int32_t[::1] codes):
        """The labels of class indices, None for -1."""
        cdef list labels = [*self.labels, None]
        cdef Py_ssize_t i, k = len(self.labels)
        return [labels[codes[i] if codes[i] >= 0 else k] for i in range(codes.shape[0])]

    def complete(self, Block block):
        """The values of complete_one() for every row of a block, rows by slots."""
        cdef const int64_t[::1] ptr = block.indptr
        cdef const int32_t[::1] idx = block.indices
        cdef const double[::1] val = block.values
        cdef Py_ssize_t row, n = len(block)
        values = np.full((n, self.space.size), np.nan)
        cdef double[:, ::1] out = values
        cdef double[:, ::1] ends = np.zeros((2, self.space.size))
        self._bind(block.vocabulary)
        self.reserve(int(np.diff(block.indptr).max()) if n else 0)
        if idx.shape[0] == 0:
            idx = np.zeros(1, dtype=np.int32)
            val = np.zeros(1)
        with nogil:
            for row in range(n):
                self._gather_row(&idx[0] + ptr[row], &val[0] + ptr[row], ptr[row + 1] - ptr[row])
                self.present(1.0, False, False)
                self.model.complete(&self.view, &out[row, 0], &ends[0, 0], &ends[1, 0])
        return values

    # ---------------------------------------------------------------- looking and keeping

    def class_counts(self):
        """Weight learned by label."""
        return {y: self.counts[i] for i, y in enumerate(self.labels)}

    def magnitude(self, int32_t slot):
        """The size of what the model holds for a slot."""
        return self.model.magnitude(slot)

    def dump(self):
        """(names by slot, labels, arrays): all of the state."""
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
        cdef Py_ssize_t i
        if len(arrays["counts"]) != len(labels) or len(set(labels)) != len(labels):
            raise ValueError(f"{len(labels)} labels for {len(arrays['counts'])} counts")
        if self.scaler.kind != NONE and len(arrays["scaler"]) != len(names):
            raise ValueError(f"{len(arrays['scaler'])} rows of statistics for {len(names)} names")
        if isinstance(self.model, BinaryRule) and len(arrays["model.state"]) != len(names):
            raise ValueError(f"{len(arrays['model.state'])} rows of weights for {len(names)} names")
        expect(arrays, "counts", "f", (len(labels),), 0)
        expect(arrays, "step", "i", (1,), 0, (1 << 43) - 1)
        expect(arrays, "space.evictions", "i", (1,), 0)
        expect(arrays, "space.seen", "i", (len(names), 3), 0, (1 << 43) - 1)
        expect(arrays, "scaler", "f", (None, 3))
        for key, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{key} holds NaN or infinity")
            if key.endswith(".classes"):
                expect(arrays, key, "i", (1,), 0, len(labels))
        self.space.fill(names, arrays["space.kind"], arrays["space.column"], arrays["space.free"])
        self.space.restore_seen(arrays["space.seen"])
        self.space.evictions = int(arrays["space.evictions"][0])
        self.scaler.fill(arrays["scaler"], self.space.capacity)
        self.step = int(arrays["step"][0])
        k = len(labels)
        self.out_room = 2 * k + 4
        self.out = <double*> realloc(self.out, self.out_room * sizeof(double))
        self.probs = <double*> realloc(self.probs, self.out_room * sizeof(double))
        self.counts = <double*> realloc(self.counts, self.out_room * sizeof(double))
        if self.out == NULL or self.probs == NULL or self.counts == NULL:
            raise MemoryError
        for i in range(k):
            self.counts[i] = arrays["counts"][i]
        self.fit_places()
        self.labels = list(labels)
        self.label_index = {y: i for i, y in enumerate(self.labels)}
        self.model.fill({key[6:]: a for key, a in arrays.items() if key.startswith("model.")}, self.space.capacity)
        if self.model.classes != k:
            raise ValueError(f"{k} labels for {self.model.classes} classes of the model")

    def nbytes(self):
        """Bytes of state by part."""
        return {**self.space.nbytes(), "scaler": self.scaler.nbytes(), "model": self.model.nbytes()}
