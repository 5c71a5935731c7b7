"""The intake: from names and values to the view that a model reads.

Dicts and rows of blocks are gathered into (slot, value) pairs, new names get slots, the pairs are ordered by slot and
scaled: one way for both doors, so they leave the same state to the last bit. Space, scaler and model grow and forget
together here.
"""

from cpython.dict cimport PyDict_Next
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold._engine.binding cimport Binding, slot_of
from varifold._engine.block cimport Vocabulary
from varifold._engine.model cimport Model
from varifold._engine.names cimport (
    ABSENT, BAD, FREE, INDICATOR, NUMBER, NUMERIC, canonical_name, conflict_error, name_error, plain_dict, quick_find,
    quick_read, value_error,
)
from varifold._engine.order cimport BITMAP_SLOTS, MARKED_SLOTS, MARKED_WORDS, order_row, sort_pairs, sort_unique
from varifold._engine.scaler cimport NONE, STANDARD, STRIP, Scaler, Stat, absorb, absorb_strip
from varifold._engine.space cimport Seen, Space, seen_last
from varifold._engine.view cimport View

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


def pending_order(entry):
    """Ints before strs, each in their own order."""
    return (type(entry[0]) is str, entry[0])


cdef class Intake:
    """Space, scaler and model in step, and the one instance that is on its way to the model."""

    def __cinit__(self, Model model not None, str scale="standard", double clip=3.0, bint intercept=True,
                  max_features=None, str evict="oldest"):
        self.space = Space()
        self.scaler = Scaler(scale, clip)
        self.model = model
        self.intercept = intercept
        self.max_features = 0 if max_features is None else max_features
        self.lightest = evict == "lightest"
        self.dense = <double*> calloc(BITMAP_SLOTS, sizeof(double))
        self.marks = <uint64_t*> calloc(MARKED_WORDS, sizeof(uint64_t))
        if self.dense == NULL or self.marks == NULL:
            raise MemoryError
        self.scaler.grow(self.space.capacity)
        model.alone = True
        model.attach(self.space)
        self.reserve(16)
        self.fit_places()

    def __dealloc__(self):
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

    # ---------------------------------------------------------------- room

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

    # ---------------------------------------------------------------- gathering

    cdef int append(self, int32_t slot, double value) except -1:
        self.n += 1
        self.slots[self.n] = slot
        self.vals[self.n] = value
        if self.space.kind[slot] & INDICATOR:
            self.heads[self.n_heads] = self.space.column[slot]
            self.n_heads += 1
        return 0

    cdef list gather(self, object given):
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
        cdef dict x = given if type(given) is dict else plain_dict(given, self.step + 1)
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

    cdef int bind(self, Vocabulary vocabulary) except -1:
        """Find the slots of a vocabulary's ids."""
        if self.binding is None or self.binding.vocabulary is not vocabulary:
            self.binding = Binding(vocabulary)
            self.binding.evictions = self.space.evictions
        self.binding.fit(self.space)
        return 0

    cdef Py_ssize_t gather_row(self, const int32_t* idx, const double* val, Py_ssize_t m) noexcept nogil:
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

    # ---------------------------------------------------------------- names that come and go

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

    cdef int admit_row(self, const int32_t* idx, const double* val, Py_ssize_t m) except -1 with gil:
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

    # ---------------------------------------------------------------- presenting

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
