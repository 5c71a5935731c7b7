"""One instance: from names and values to the view that a model reads.

A dict or a row of a block is gathered into (slot, value) pairs, ordered by slot and scaled. Both APIs pass here, so
that they leave the same state to the last bit.
"""

from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.names.binding cimport Binding, slot_of
from varifold._engine.names.table cimport INDICATOR, NUMERIC, quick_find
from varifold._engine.order cimport MARKED_WORDS, by_marks, order_row, sort_pairs, sort_unique
from varifold._engine.names.reading cimport (
    ABSENT, BAD, LARGEST, NUMBER, canonical_name, check_size, conflict_error, name_error, plain_dict, plain_text, quick_read,
    repeated_error, runs_no_code, value_error,
)
from varifold._engine.robust cimport absorb_strip_robust
from varifold._engine.scaler cimport NONE, ROBUST, STANDARD, STRIP, Scaler, Stat, absorb, absorb_strip
from varifold._engine.names.space cimport Seen, Space, seen_again, seen_touch
from varifold._engine.view cimport View
from varifold._engine.names.vocabulary cimport Vocabulary
from varifold._numeric.memory cimport allocate, resize

cdef double UNSCALED = 1e50  # bound on inputs that no scaler bounds, so that products of weights stay finite


cdef class Instance:
    """Instance at hand and the scratch arrays for it; holds the space, the scaler and the vocabulary binding."""

    def __cinit__(self, Space space not None, Scaler scaler not None, bint intercept, bint wants_columns):
        self.space = space
        self.scaler = scaler
        self.intercept = intercept
        self.wants_columns = wants_columns
        self.marks = <uint64_t*> allocate(MARKED_WORDS * sizeof(uint64_t))
        if self.marks == NULL:
            raise MemoryError
        self.reserve(16)

    def __dealloc__(self):
        free(self.slots)
        free(self.slots2)
        free(self.values)
        free(self.values2)
        free(self.scaled)
        free(self.is_new)
        free(self.indicator_columns)
        free(self.noted)
        free(self.columns)
        free(self.former)
        free(self.marks)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Reserve scratch for n pairs and the intercept at position 0."""
        cdef Py_ssize_t capacity = 2 * n + 16
        if n + 1 <= self.capacity:
            return 0
        if (resize(<void**> &self.slots, capacity * sizeof(int32_t)) < 0
                or resize(<void**> &self.slots2, capacity * sizeof(int32_t)) < 0
                or resize(<void**> &self.values, capacity * sizeof(double)) < 0
                or resize(<void**> &self.values2, capacity * sizeof(double)) < 0
                or resize(<void**> &self.scaled, capacity * sizeof(double)) < 0
                or resize(<void**> &self.is_new, capacity) < 0
                or resize(<void**> &self.indicator_columns, capacity * sizeof(int32_t)) < 0
                or resize(<void**> &self.noted, capacity * sizeof(int32_t)) < 0
                or resize(<void**> &self.columns, 2 * capacity * sizeof(int32_t)) < 0
                or resize(<void**> &self.former, capacity * sizeof(int32_t)) < 0):
            raise MemoryError
        memset(self.former, 0, capacity * sizeof(int32_t))
        self.slots[0] = 0
        self.values[0] = 1.0
        self.scaled[0] = 1.0
        self.is_new[0] = 0
        self.capacity = capacity
        return 0

    # ---------------------------------------------------------------- gather a dict

    cdef int append(self, int32_t slot, double value) except -1:
        """Append a pair; reserve() was called before."""
        self.n += 1
        self.slots[self.n] = slot
        self.values[self.n] = value
        if self.space.kind[slot] & INDICATOR:
            self.indicator_columns[self.n_indicator_columns] = self.space.column[slot]
            self.n_indicator_columns += 1
        return 0

    cdef void note_column(self, int32_t slot) noexcept nogil:
        """Record a known column whose value has no slot as present: presence is of the column (OVFIV, eq. 1)."""
        if self.wants_columns:
            self.noted[self.n_noted] = slot
            self.n_noted += 1

    cdef int gather(self, object x) except -1:
        """Gather the pairs of a mapping; names without a slot are listed in `pending`."""
        self.row_ids = NULL
        self.unknown = 0
        self.pending = self.gather_dict(x if type(x) is dict else plain_dict(x, self.space.step + 1))
        if self.pending is not None:
            self.unknown = len(self.pending)
        return 0

    cdef list gather_dict(self, dict x):
        """Gather known pairs; return the others as (name, column, level, value), or None if there are none."""
        cdef Py_ssize_t position = 0, at = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef double number
        cdef int32_t s
        cdef bint as_before = True
        cdef list pending = None
        cdef Space space = self.space
        self.n = 0
        self.n_indicator_columns = 0
        self.n_noted = 0
        self.ordered = False
        self.reserve(len(x))
        cdef PyObject** known = space.key
        cdef uint8_t* kind = space.kind
        cdef int32_t* former = self.former
        cdef int32_t* slots = self.slots
        cdef double* values = self.values
        while PyDict_Next(x, &position, &key, &value):
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
                    values[self.n] = number
                    continue
            if not runs_no_code(key, value):
                return self.gather_items(list(x.items()))
            pending = self.gather_pair(key, value, pending)
        return pending

    cdef list gather_items(self, list items):
        """Gather pairs whose names or values may run code of the caller.

        The list keeps the pairs alive, whatever that code does. Names that are not exact may be equal here although
        they differed as keys of the mapping.
        """
        cdef list pending = None
        cdef set names = set()
        self.n = 0
        self.n_indicator_columns = 0
        self.n_noted = 0
        self.reserve(len(items))
        for name, value in items:
            exact = canonical_name(name)
            if exact is None:
                raise name_error(name, self.space.step + 1)
            if exact in names:
                raise repeated_error(exact, self.space.step + 1)
            names.add(exact)
            pending = self.gather_pair(<PyObject*> exact, <PyObject*> value, pending)
        return pending

    cdef list gather_pair(self, PyObject* key, PyObject* value, list pending):
        """Append one pair, or list it as pending if its name is new; the name is an exact str or int."""
        cdef double number = 0.0
        cdef int found = quick_read(value, &number)
        cdef int32_t s, i
        cdef uint8_t kind
        cdef object name, given
        s = quick_find(self.space, key)
        if found == ABSENT:
            return pending
        if found == BAD:
            raise value_error(<object> key, <object> value, self.space.step + 1)
        kind = self.space.kind[s] if s >= 0 else 0
        if kind & INDICATOR:
            raise conflict_error(<object> key, self.space.step + 1)
        if found == NUMBER and kind & NUMERIC:
            self.append(s, number)
            return pending
        if s < 0:
            check_size(<object> key, self.space.step + 1)
        name, given = <object> key, <object> value   # kept: to allocate may collect garbage, which runs code
        if pending is None:
            pending = []
        if found == NUMBER:
            if s >= 0:
                self.note_column(s)
            pending.append((name, None, None, number))
            return pending
        level = plain_text(given)
        i = self.space.find_level(s, level) if s >= 0 else -1
        if i >= 0:
            self.append(i, 1.0)
        else:
            if s >= 0:
                self.note_column(s)
            pending.append((f"{name}={level}", name, level, 1.0))
        return pending if pending else None

    # ---------------------------------------------------------------- gather a row

    cdef int bind(self, Vocabulary vocabulary) except -1:
        """Look up the slots of a vocabulary's ids."""
        if self.binding is None or self.binding.vocabulary is not vocabulary:
            self.binding = Binding(vocabulary)
        self.binding.fit(self.space)
        return 0

    cdef void gather_row(self, const int32_t* ids, const double* given, Py_ssize_t length) noexcept nogil:
        """Gather the known pairs of a block's row and count the others."""
        cdef Py_ssize_t k, n = 0
        cdef int32_t s
        cdef int32_t* map = self.binding.slot
        cdef uint8_t* kind = self.space.kind
        cdef int32_t* slots = self.slots
        cdef double* values = self.values
        self.n_indicator_columns = 0
        self.n_noted = 0
        self.ordered = by_marks(length, self.space.size)
        if self.ordered:
            n = order_row(length, ids, given, map, self.space.size, self.marks, self.slots2, slots + 1, values + 1)
            values[0] = 1.0  # unknown names were written to the intercept's position
        else:
            for k in range(length):
                s = map[ids[k]]
                if s != 0:
                    n += 1
                    slots[n] = s
                    values[n] = given[k]
        self.n = n
        self.unknown = length - n
        self.row_ids = ids
        self.row_values = given
        self.row_length = length
        if self.space.indicators:
            for k in range(1, n + 1):
                if kind[slots[k]] & INDICATOR:
                    self.indicator_columns[self.n_indicator_columns] = self.space.column[slots[k]]
                    self.n_indicator_columns += 1
        if self.unknown:
            for k in range(length):
                s = self.binding.column_slot[self.binding.column[ids[k]]]
                if map[ids[k]] == 0 and s != 0:
                    self.note_column(s)

    cdef list unknown_pairs(self):
        """List the pairs without a slot as (name, column, level, value)."""
        cdef Py_ssize_t k
        cdef int32_t i
        cdef Vocabulary vocabulary
        cdef list pending = []
        if self.row_ids == NULL:
            return self.pending
        vocabulary = self.binding.vocabulary
        for k in range(self.row_length):
            i = self.row_ids[k]
            if self.binding.slot[i] == 0:
                name = <object> vocabulary.key[i]
                column, level = vocabulary.level_of(i) if vocabulary.kind[i] & INDICATOR else (None, None)
                pending.append((name, column, level, self.row_values[k]))
        return pending

    cdef int bind_admitted(self) except -1:
        """Note where the ids of the gathered row have slots now."""
        cdef Py_ssize_t k
        cdef int32_t i, s
        if self.row_ids == NULL:
            return 0
        for k in range(self.row_length):
            i = self.row_ids[k]
            if self.binding.slot[i] == 0:
                s = slot_of(self.space, self.binding.vocabulary, i)
                if s > 0:
                    self.binding.slot[i] = s
                    self.binding.source[s] = i
                self.binding.fit_column(self.space, i)
        return 0

    # ---------------------------------------------------------------- present

    cdef void present(self, double w, bint commit) noexcept nogil:
        """Order the pairs, scale them and lay out the view.

        With `commit` the values are added to the scaler's statistics, with weight w. Only an instance that is about to
        be learned, and that admitted names or is the first one, can hold new slots.
        """
        cdef Py_ssize_t i, n = self.n
        cdef Seen* seen = self.space.seen
        cdef View* v = &self.view
        if not self.ordered:
            sort_pairs(n, self.slots + 1, self.values + 1, self.slots2, self.values2, self.marks,
                       <int32_t> (self.space.size - 1))
            self.ordered = True
        self.scale(w, commit)
        memset(self.is_new, 0, n + 1)
        self.admitted = commit and (self.unknown > 0 or self.space.step == 0)
        if self.admitted:
            for i in range(n + 1):
                self.is_new[i] = seen[self.slots[i]].packed_first == 0
        i = 0 if self.intercept else 1
        v.n = n + 1 - i
        v.slot = self.slots + i
        v.x = self.scaled + i
        v.raw = self.values + i
        v.is_new = self.is_new + i
        v.step = self.space.step
        v.known = self.space.features
        if self.n_indicator_columns == 0 and self.n_noted == 0:
            v.column = self.slots + 1
            v.columns = n
        elif self.wants_columns:
            self.list_columns()
        else:
            v.column = NULL
            v.columns = 0

    cdef void scale(self, double w, bint commit) noexcept nogil:
        """Scale the ordered pairs; indicators stay as they are."""
        cdef Py_ssize_t i, k, n = self.n
        cdef int32_t s
        cdef Stat passing
        cdef Stat* stat = self.scaler.stat
        cdef int kind = self.scaler.kind
        cdef double clip = self.scaler.clip
        cdef int32_t* slots = self.slots
        cdef double* values = self.values
        cdef double* scaled = self.scaled
        if kind == NONE:
            for i in range(1, n + 1):
                scaled[i] = -UNSCALED if values[i] < -UNSCALED else UNSCALED if values[i] > UNSCALED else values[i]
        elif self.n_indicator_columns == 0 and kind == STANDARD:
            i = 1
            while i <= n:
                k = n + 1 - i if n + 1 - i < STRIP else STRIP
                absorb_strip(stat, k, slots + i, values + i, w, clip, commit, scaled + i)
                i += k
        elif kind == ROBUST:
            self.scale_robust(w, commit)
        else:
            for i in range(1, n + 1):
                s = slots[i]
                if self.space.kind[s] & INDICATOR:
                    scaled[i] = values[i]
                    continue
                passing = stat[s]
                scaled[i] = absorb(&passing, values[i], w, kind, clip)
                if commit:
                    stat[s] = passing

    cdef void scale_robust(self, double w, bint commit) noexcept nogil:
        """Scale the pairs by their robust statistics; indicators, which are always 1, are presence."""
        cdef Py_ssize_t i = 1, k, n = self.n
        while i <= n:
            k = n + 1 - i if n + 1 - i < STRIP else STRIP
            absorb_strip_robust(self.scaler.robust, k, self.slots + i, self.values + i, w, self.scaler.clip, commit,
                                self.space.step + 1, self.scaled + i)
            i += k

    cdef void list_columns(self) noexcept nogil:
        """Write the columns present into the view: of a number its slot, of an indicator its column, and noted ones."""
        cdef Py_ssize_t i
        cdef View* v = &self.view
        memcpy(self.columns, self.indicator_columns, self.n_indicator_columns * sizeof(int32_t))
        memcpy(self.columns + self.n_indicator_columns, self.noted, self.n_noted * sizeof(int32_t))
        v.columns = self.n_indicator_columns + self.n_noted
        for i in range(1, self.n + 1):
            if not self.space.kind[self.slots[i]] & INDICATOR:
                self.columns[v.columns] = self.slots[i]
                v.columns += 1
        v.columns = sort_unique(v.columns, self.columns)
        v.column = self.columns

    cdef void mark_seen(self, bint counts_empty) noexcept nogil:
        """Count the learned instance: one more step, at which the features of the view were seen.

        The intercept is seen with a known feature, or always if `counts_empty`.
        """
        cdef Py_ssize_t i
        cdef Seen* seen = self.space.seen
        cdef int32_t* slots = self.slots
        cdef int64_t now = self.space.step + 1
        if self.n > 0 or counts_empty:
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
        self.space.step = now
