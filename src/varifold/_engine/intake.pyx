"""The intake: from names and values to the view that a model reads.

Dicts and rows of blocks are gathered into (slot, value) pairs, new names get slots, the pairs are ordered by slot and
scaled: one way for both doors, so they leave the same state to the last bit.
"""

from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.binding cimport Binding, slot_of
from varifold._engine.vocabulary cimport Vocabulary
from varifold._engine.guard cimport Guard
from varifold._engine.model cimport Model
from varifold._engine.names cimport FREE, INDICATOR, NUMERIC, quick_find
from varifold._engine.reading cimport (
    ABSENT, BAD, LARGEST, NUMBER, canonical_name, conflict_error, name_error, plain_dict, plain_text, quick_read,
    runs_no_code, value_error,
)
from varifold._engine.order cimport MARKED_WORDS, by_marks, order_row, sort_pairs, sort_unique
from varifold._engine.robust cimport RobustStat, absorb_robust
from varifold._engine.scaler cimport NONE, ROBUST, STANDARD, STRIP, Scaler, Stat, absorb, absorb_strip
from varifold._engine.space cimport Seen, Space, seen_last
from varifold._engine.view cimport View
from varifold._numeric.memory cimport allocate, resize

cdef double UNSCALED = 1e50  # inputs that no scaler bounds are held within it, so that products of weights stay finite


cdef class Intake(Guard):
    """Space, scaler and model in step, and the one instance that is on its way to the model."""

    def __cinit__(self, Model model not None, str scale="standard", double clip=3.0, bint intercept=True,
                  max_features=None, str evict="oldest"):
        self.space = Space()
        self.scaler = Scaler(scale, clip)
        self.model = model
        self.intercept = intercept
        self.max_features = 0 if max_features is None else max_features
        self.lightest = evict == "lightest"
        self.marks = <uint64_t*> allocate(MARKED_WORDS * sizeof(uint64_t))
        if self.marks == NULL:
            raise MemoryError
        self.scaler.grow(self.space.capacity)
        model.alone = True
        model.attach(self.space)
        self.fitted = self.space.capacity
        self.reserve(16)

    def __dealloc__(self):
        free(self.slots)
        free(self.slots2)
        free(self.vals)
        free(self.vals2)
        free(self.scaled)
        free(self.is_new)
        free(self.indicator_columns)
        free(self.columns)
        free(self.former)
        free(self.marks)

    # ---------------------------------------------------------------- room

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Scratch for instances of n pairs and the intercept, which sits at position 0."""
        cdef Py_ssize_t room = 2 * n + 16
        if n + 1 <= self.room:
            return 0
        if (resize(<void**> &self.slots, room * sizeof(int32_t)) < 0
                or resize(<void**> &self.slots2, room * sizeof(int32_t)) < 0
                or resize(<void**> &self.vals, room * sizeof(double)) < 0
                or resize(<void**> &self.vals2, room * sizeof(double)) < 0
                or resize(<void**> &self.scaled, room * sizeof(double)) < 0
                or resize(<void**> &self.is_new, room) < 0
                or resize(<void**> &self.indicator_columns, room * sizeof(int32_t)) < 0
                or resize(<void**> &self.columns, 2 * room * sizeof(int32_t)) < 0
                or resize(<void**> &self.former, room * sizeof(int32_t)) < 0):
            raise MemoryError
        memset(self.former, 0, room * sizeof(int32_t))
        self.slots[0] = 0
        self.vals[0] = 1.0
        self.scaled[0] = 1.0
        self.is_new[0] = 0
        self.room = room
        return 0

    # ---------------------------------------------------------------- gathering

    cdef int append(self, int32_t slot, double value) except -1:
        self.n += 1
        self.slots[self.n] = slot
        self.vals[self.n] = value
        if self.space.kind[slot] & INDICATOR:
            self.indicator_columns[self.n_indicator_columns] = self.space.column[slot]
            self.n_indicator_columns += 1
        return 0

    cdef list gather(self, object given):
        """Known pairs into scratch; unknown ones come back as (name, column, level, value), or None."""
        cdef Py_ssize_t pos = 0, at = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef double number
        cdef int32_t s
        cdef bint as_before = True
        cdef list pending = None
        cdef dict x = given if type(given) is dict else plain_dict(given, self.step + 1)
        cdef Space space = self.space
        self.n = 0
        self.n_indicator_columns = 0
        self.ordered = False
        self.reserve(len(x))
        cdef PyObject** known = space.key
        cdef uint8_t* kind = space.kind
        cdef int32_t* former = self.former
        cdef int32_t* slots = self.slots
        cdef double* vals = self.vals
        while PyDict_Next(x, &pos, &key, &value):
            if PyFloat_CheckExact(<object> value) and PyUnicode_CheckExact(<object> key):
                # the usual case in line: a known feature with an ordinary float
                number = PyFloat_AS_DOUBLE(<object> value)
                s = former[at]
                if not as_before or known[s] != key:
                    as_before = False
                    s = quick_find(space, key)
                    former[at] = s if s > 0 else 0
                at += 1
                if -LARGEST <= number <= LARGEST and s >= 0 and kind[s] & NUMERIC:
                    self.n += 1
                    slots[self.n] = s
                    vals[self.n] = number
                    continue
            if not runs_no_code(key, value):
                return self.gather_items(list(x.items()))
            pending = self.gather_pair(key, value, pending)
        return pending

    cdef list gather_items(self, list items):
        """gather() where reading a name or a value may run its own code: the pairs are held, whatever that code does."""
        cdef list pending = None
        self.n = 0
        self.n_indicator_columns = 0
        self.reserve(len(items))
        for name, value in items:
            pending = self.gather_pair(<PyObject*> name, <PyObject*> value, pending)
        return pending

    cdef list gather_pair(self, PyObject* key, PyObject* value, list pending):
        """One pair into scratch, or onto the list of those whose name is new."""
        cdef double number = 0.0
        cdef int found = quick_read(value, &number)
        cdef int32_t s, i
        cdef uint8_t kind
        cdef object name = None
        if PyUnicode_CheckExact(<object> key) or PyLong_CheckExact(<object> key):
            s = quick_find(self.space, key)
        else:
            name = canonical_name(<object> key)
            if name is None:
                raise name_error(<object> key, self.step + 1)
            s = self.space.find(<PyObject*> name)
        if found == ABSENT:
            return pending
        if found == BAD:
            raise value_error(<object> key, <object> value, self.step + 1)
        kind = self.space.kind[s] if s >= 0 else 0
        if kind & INDICATOR:
            raise conflict_error(<object> key, self.step + 1)
        if found == NUMBER and kind & NUMERIC:
            self.append(s, number)
            return pending
        if pending is None:
            pending = []
        name = <object> key if name is None else name
        if found == NUMBER:
            pending.append((name, None, None, number))
            return pending
        level = plain_text(<object> value)
        i = self.space.find_level(s, level) if s >= 0 else -1
        if i >= 0:
            self.append(i, 1.0)
        else:
            pending.append((f"{name}={level}", name, level, 1.0))
        return pending if pending else None

    cdef int bind(self, Vocabulary vocabulary) except -1:
        """Find the slots of a vocabulary's ids."""
        if self.binding is None or self.binding.vocabulary is not vocabulary:
            self.binding = Binding(vocabulary)
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
        self.n_indicator_columns = 0
        self.ordered = by_marks(m, self.space.size)
        if self.ordered:
            n = order_row(m, idx, val, map, self.space.size, self.marks, self.slots2, slots + 1, vals + 1)
            vals[0] = 1.0  # unknown names fell onto the intercept's place
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
                    self.indicator_columns[self.n_indicator_columns] = self.space.column[slots[k]]
                    self.n_indicator_columns += 1
        return m - n

    # ---------------------------------------------------------------- presenting

    cdef void scale_robust(self, double w, bint commit) noexcept nogil:
        """Scale the pairs by their robust statistics (for good when committing)."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef RobustStat passing
        cdef RobustStat* stat
        for i in range(1, self.n + 1):
            s = self.slots[i]
            if self.space.kind[s] & INDICATOR:
                self.scaled[i] = self.vals[i]
                continue
            stat = &self.scaler.robust[s]
            if not commit:
                passing = stat[0]
                stat = &passing
            self.scaled[i] = absorb_robust(stat, self.vals[i], w, self.scaler.clip, self.step + 1.0)

    cdef void present(self, double w, bint commit, bint admitted) noexcept nogil:
        """Order the pairs, scale them (for good when committing) and lay out the view.

        Only an instance that admitted names, or the very first one, can hold is_new slots.
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
            sort_pairs(n, slots + 1, vals + 1, self.slots2, self.vals2, self.marks, <int32_t> (self.space.size - 1))
            self.ordered = True
        if kind == NONE:
            for i in range(1, n + 1):
                scaled[i] = -UNSCALED if vals[i] < -UNSCALED else UNSCALED if vals[i] > UNSCALED else vals[i]
        elif self.n_indicator_columns == 0 and kind == STANDARD:
            i = 1
            while i <= n:
                k = n + 1 - i if n + 1 - i < STRIP else STRIP
                absorb_strip(stat, k, slots + i, vals + i, w, clip, commit, scaled + i)
                i += k
        elif kind == ROBUST:
            self.scale_robust(w, commit)
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
        memset(self.is_new, 0, n + 1)
        self.admitted = admitted
        if admitted:
            self.is_new[0] = seen[0].packed_first == 0
            for i in range(1, n + 1):
                self.is_new[i] = seen[self.slots[i]].packed_first == 0
        v.n = n + 1 if self.intercept else n
        i = 0 if self.intercept else 1
        v.slot = self.slots + i
        v.x = self.scaled + i
        v.raw = self.vals + i
        v.is_new = self.is_new + i
        v.step = self.step
        v.known = self.space.features
        if self.n_indicator_columns == 0:
            v.column = self.slots + 1
            v.columns = n
        elif self.model.wants_columns:
            memcpy(self.columns, self.indicator_columns, self.n_indicator_columns * sizeof(int32_t))
            v.columns = self.n_indicator_columns
            for i in range(1, n + 1):
                if not self.space.kind[self.slots[i]] & INDICATOR:
                    self.columns[v.columns] = self.slots[i]
                    v.columns += 1
            v.columns = sort_unique(v.columns, self.columns)
            v.column = self.columns
        else:
            v.column = NULL
            v.columns = 0
