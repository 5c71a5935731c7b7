"""Names -> dense ids: the one table behind a learner's space and a block's vocabulary."""

import numpy as np

from cpython.object cimport PyObject, PyObject_Hash, PyObject_RichCompareBool, Py_EQ
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_Compare
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free

from varifold._engine.names.reading cimport canonical_name
from varifold._numeric.memory cimport allocate, resize_zeroed

from varifold.errors import DataError, FeatureNameError, UnknownNameError

cdef enum:
    FIRST_CAPACITY = 16


cdef inline Py_hash_t hash_of(PyObject* name) except? -1:
    """Return the hash of a name; a str keeps it once it was computed."""
    cdef Py_hash_t h
    if PyUnicode_CheckExact(<object> name):
        h = (<PyASCIIObject*> name).hash
        if h != -1:
            return h
    return PyObject_Hash(<object> name)


cdef inline bint same_name(PyObject* stored, PyObject* name) except -1:
    """Return whether names are equal and of the same kind: '1' is not 1, and 1 is not True (which is rejected)."""
    if PyUnicode_CheckExact(<object> stored):
        if not PyUnicode_CheckExact(<object> name):
            return False
        if (<PyASCIIObject*> stored).hash != (<PyASCIIObject*> name).hash:
            return False
        return PyUnicode_Compare(<object> stored, <object> name) == 0
    if PyUnicode_CheckExact(<object> name):
        return False
    return PyObject_RichCompareBool(<object> stored, <object> name, Py_EQ)


cdef inline Py_ssize_t larger(Py_ssize_t capacity) noexcept:
    """Return the next capacity: double while small, then an eighth more, so that little memory stays unused."""
    return 2 * capacity if capacity < 4096 else capacity + (capacity >> 3)


cdef check_flat(list names, list kinds, list columns, list free_ids):
    """Raise ValueError unless the parts of a table's flat form belong together.

    These are, by id, the name (None at the intercept and where a name was removed), its kind and the id of its column;
    and the ids without a name.
    """
    size = len(names)
    if not size or not len(kinds) == len(columns) == size or names[0] is not None:
        raise ValueError("names, kinds and columns differ in number")
    seen = set()
    empty = set()
    allowed = tuple(int(k) for k in (NUMERIC, COLUMN, NUMERIC + COLUMN, INDICATOR))
    for i in range(1, size):
        name, kind, column = names[i], kinds[i], columns[i]
        if name is None:
            empty.add(i)
        elif type(name) is not str and type(name) is not int:
            raise ValueError(f"the name {name!r} is neither a str nor an int")
        if kind not in (allowed if name is not None else (0,)):
            raise ValueError(f"the name {name!r} has no kind {kind}")
        if kind != INDICATOR:
            if name is not None and column != i:
                raise ValueError(f"the name {name!r} has a column that is not its own")
        elif not (0 < column < size and kinds[column] & COLUMN and type(name) is str
                  and name.startswith(f"{names[column]}=")):
            raise ValueError(f"the indicator {name!r} has no column")
        if (type(name), name) in seen and name is not None:
            raise ValueError(f"the name {name!r} is there twice")
        seen.add((type(name), name))
    if len(free_ids) != len(empty) or set(free_ids) != empty:
        raise ValueError("the free ids are not those without a name")


def taken_error(name):
    """Return the error for a name that would be both a feature and the string value of a column."""
    return FeatureNameError(f"the name {name!r} would be both a feature and the indicator of a string value; "
                            "choose another name")


cdef int link_name(NameTable names, object name, int32_t i) except -1:
    """Map a name to id i; the name must not be in the table, and the table must have a free place."""
    cdef Py_ssize_t j = hash_of(<PyObject*> name) & names.mask
    while names.table[j] > 0:
        j = (j + 1) & names.mask
    if names.table[j] == 0:  # otherwise a removed name was here, and the place is already counted
        names.filled += 1
    names.table[j] = i + 1
    Py_INCREF(name)
    names.key[i] = <PyObject*> name
    return 0


cdef class NameTable:
    """Name (str or int, which differ) -> dense id; id 0 is reserved for the intercept."""

    def __cinit__(self):
        self.capacity = 0
        self.levels = {}
        self.free_ids = []
        self.grow(FIRST_CAPACITY)
        self.rehash(4 * FIRST_CAPACITY)
        self.size = 1
        self.kind[0] = RESERVED
        self.column[0] = 0

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.key != NULL:
            for i in range(self.size):
                Py_XDECREF(self.key[i])
        free(self.key)
        free(self.column)
        free(self.kind)
        free(self.table)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        """Reserve memory for this many ids; subclasses grow their own arrays too."""
        cdef Py_ssize_t old = self.capacity
        if capacity <= old:
            return 0
        if (resize_zeroed(<void**> &self.key, old * sizeof(PyObject*), capacity * sizeof(PyObject*)) < 0
                or resize_zeroed(<void**> &self.column, old * sizeof(int32_t), capacity * sizeof(int32_t)) < 0
                or resize_zeroed(<void**> &self.kind, old, capacity) < 0):
            raise MemoryError
        self.capacity = capacity
        return 0

    cdef int reserve(self, Py_ssize_t names) except -1:
        """Reserve memory for this many more names: insert() then allocates none."""
        cdef Py_ssize_t needed = self.size + names - len(self.free_ids), capacity = self.capacity
        while capacity < needed:
            capacity = larger(capacity)
        self.grow(capacity)
        if 2 * (self.filled + names) > self.mask + 1:
            self.rehash(self.table_size(names))
        return 0

    cdef int rehash(self, Py_ssize_t slots) except -1:
        """Lay the table out again with this many slots, a power of two."""
        cdef Py_ssize_t i, j
        cdef int32_t* table = <int32_t*> allocate(slots * sizeof(int32_t))
        if table == NULL:
            raise MemoryError
        free(self.table)
        self.table = table
        self.mask = slots - 1
        self.filled = 0
        for i in range(1, self.size):
            if self.key[i] == NULL:
                continue
            j = hash_of(self.key[i]) & self.mask
            while self.table[j] != 0:
                j = (j + 1) & self.mask
            self.table[j] = <int32_t> (i + 1)
            self.filled += 1
        return 0

    cdef int32_t find(self, PyObject* name) except -2:
        """Return the id of a canonical name, or -1."""
        cdef Py_ssize_t j = hash_of(name) & self.mask
        cdef int32_t e
        while True:
            e = self.table[j]
            if e == 0:
                return -1
            if e > 0 and (self.key[e - 1] == name or same_name(self.key[e - 1], name)):
                return e - 1
            j = (j + 1) & self.mask

    cdef int32_t find_level(self, int32_t column, object level) except -2:
        """Return the indicator id of a column's string value, or -1."""
        cdef object levels = self.levels.get(column)
        if levels is None:
            return -1
        return <int32_t> levels.get(level, -1)

    cdef int32_t insert(self, object name, int kind, int32_t column) except -2:
        """Return a new id for a canonical name that is not in the table; column -1 means itself."""
        cdef int32_t i
        self.reserve(1)
        if self.free_ids:
            i = self.free_ids.pop()
        else:
            i = <int32_t> self.size
            self.size += 1
        link_name(self, name, i)
        self.kind[i] = <uint8_t> kind
        self.column[i] = i if column < 0 else column
        if kind & (NUMERIC | INDICATOR):
            self.features += 1
        self.indicators += kind == INDICATOR
        return i

    cdef Py_ssize_t table_size(self, Py_ssize_t names):
        """Return the table slots for this many more names: a power of two, at most half full afterwards."""
        cdef Py_ssize_t slots = 64
        while slots < 4 * (self.size - len(self.free_ids) + names):
            slots *= 2
        return slots

    cdef int32_t ensure_numeric(self, object name) except -2:
        """Return the id of a feature with numbers, new or known; -1 if the name is an indicator's."""
        cdef int32_t i = self.find(<PyObject*> name)
        if i < 0:
            return self.insert(name, NUMERIC, -1)
        if self.kind[i] & INDICATOR:
            return -1
        if not self.kind[i] & NUMERIC:
            self.kind[i] |= NUMERIC
            self.features += 1
        return i

    cdef int32_t ensure_level(self, object column_name, object level) except -2:
        """Return the indicator id of a column's string value, new or known; -1 if a feature has that name."""
        cdef int32_t c = self.find(<PyObject*> column_name)
        cdef int32_t i
        cdef Py_ssize_t unused
        if c >= 0:
            i = self.find_level(c, level)
            if i >= 0:
                return i
            if self.kind[c] & INDICATOR:
                return -1
        name = f"{column_name}={level}"
        if self.find(<PyObject*> name) >= 0:
            return -1
        self.reserve(2 if c < 0 else 1)
        if c < 0:
            c = self.insert(column_name, COLUMN, -1)
        # the id that insert() returns; noted first, since that needs memory of Python, of which there may be none
        unused = len(self.free_ids)
        self.levels.setdefault(c, {})[level] = self.free_ids[unused - 1] if unused else self.size
        self.kind[c] |= COLUMN
        return self.insert(name, INDICATOR, c)

    cdef int remove(self, int32_t i) except -1:
        """Remove a feature; its id is reused, and a column is removed with its last level."""
        cdef int32_t c = self.column[i]
        if self.kind[i] & INDICATOR:
            levels = self.levels[c]
            level = (<object> self.key[i])[len(str(<object> self.key[c])) + 1:]
            self.erase(i)
            self.features -= 1
            self.indicators -= 1
            del levels[level]
            if not levels:
                del self.levels[c]
                if self.kind[c] == COLUMN:
                    self.erase(c)
                else:
                    self.kind[c] &= ~<uint8_t> COLUMN
            return 0
        if self.kind[i] == NUMERIC:
            self.erase(i)
        else:
            self.kind[i] &= ~<uint8_t> NUMERIC
        self.features -= 1
        return 0

    cdef int erase(self, int32_t i) except -1:
        """Free an id for the next new name; without memory to note it, nothing changes."""
        self.free_ids.append(i)
        self.table[self.place_of(i)] = -1
        Py_DECREF(<object> self.key[i])
        self.key[i] = NULL
        self.kind[i] = FREE
        self.column[i] = i
        return 0

    def renaming(self, dict names, bint partial=False):
        """Return ({id: new name}, ids to be replaced) for {old name: new name}; raise unless all of it is possible.

        Indicators go with their column. A feature that already has a new name is replaced, with its levels. If
        `partial`, unknown names are left out.
        """
        cdef dict changes = {}
        cdef set replaced = set()
        for old, new in names.items():
            i = self.id_of(old)
            if i < 0:
                if partial:
                    continue
                raise UnknownNameError(f"there is no feature {old!r} to rename to {new!r}")
            if self.kind[<Py_ssize_t> i] & INDICATOR:
                column = <object> self.key[self.column[<Py_ssize_t> i]]
                raise DataError(f"{old!r} is a string value of the column {column!r}; rename the column")
            canonical = canonical_name(new)
            if canonical is None:
                raise FeatureNameError(f"{old!r} cannot be renamed to {new!r}: names are str or int")
            changes[i] = canonical
            changes.update({j: f"{canonical}={level}" for level, j in self.levels.get(i, {}).items()})
        for i in list(changes):
            if not self.kind[<Py_ssize_t> i] & INDICATOR:
                replaced |= self.known_as(changes[i], changes)
        self.check_renaming(changes, replaced)
        return changes, replaced

    def known_as(self, name, changes):
        """Return the ids that have this name and are not renamed themselves, levels of a column included."""
        i = self.find(<PyObject*> name)
        if i < 0 or i in changes:
            return set()
        if self.kind[<Py_ssize_t> i] & INDICATOR:
            raise taken_error(name)
        return {i, *self.levels.get(i, {}).values()}

    def check_renaming(self, changes, replaced):
        """Reject new names that are given twice, or that a feature which stays has."""
        taken = set()
        for name in changes.values():
            i = self.find(<PyObject*> name)
            if (type(name), name) in taken:
                raise DataError(f"two features would get the name {name!r}; use different names")
            if i >= 0 and i not in changes and i not in replaced:
                raise taken_error(name)
            taken.add((type(name), name))

    cdef int place_of(self, int32_t i) except -1:
        """Return the table slot of an id."""
        cdef Py_ssize_t j = hash_of(self.key[i]) & self.mask
        while self.table[j] != i + 1:
            j = (j + 1) & self.mask
        return <int> j

    cdef int rename(self, dict changes) except -1:
        """Rename ids; no other id has the new names by now; reserve() was called before."""
        cdef int32_t i
        for i in changes:
            self.table[self.place_of(i)] = -1
        for i, name in changes.items():
            old = <object> self.key[i]
            link_name(self, name, i)
            Py_DECREF(old)
        return 0

    def __len__(self):
        return self.features

    def __contains__(self, name):
        canonical = canonical_name(name)
        i = -1 if canonical is None else self.find(<PyObject*> canonical)
        return i >= 0 and (self.kind[i] & (NUMERIC | INDICATOR)) != 0

    def id_of(self, name):
        """Return the id of a feature, or -1."""
        canonical = canonical_name(name)
        return -1 if canonical is None else self.find(<PyObject*> canonical)

    def name_of(self, Py_ssize_t i) -> str | int:
        """Return the name of an id in use."""
        if not 0 < i < self.size or self.key[i] == NULL:
            raise IndexError(f"no name has id {i}")
        return <object> self.key[i]

    def column_of(self, Py_ssize_t i):
        """Return the id of the column that an id belongs to: itself, unless it is an indicator."""
        if not 0 < i < self.size or self.key[i] == NULL:
            raise IndexError(f"no name has id {i}")
        return self.column[i]

    def live(self):
        """Return the ids of features, ascending."""
        return [i for i in range(1, self.size) if self.kind[i] & (NUMERIC | INDICATOR)]

    def columns(self):
        """Return the ids of columns (a plain feature is its own column), ascending."""
        return [i for i in range(1, self.size) if self.kind[i] & (NUMERIC | COLUMN)]

    def dump(self):
        """Return names by id (None where free), kinds, columns, and free ids in their stack order."""
        names = [<object> self.key[i] if self.key[i] != NULL else None for i in range(self.size)]
        kinds = np.array([self.kind[i] for i in range(self.size)], dtype=np.uint8)
        columns = np.array([self.column[i] for i in range(self.size)], dtype=np.int32)
        return names, kinds, columns, np.array(self.free_ids, dtype=np.int32)

    def fill(self, names, kinds, columns, free_ids):
        """Restore what dump() returned into an empty table."""
        cdef Py_ssize_t i
        cdef object name
        if self.size != 1:
            raise ValueError("fill() needs an empty table")
        # exact lists, which cannot be other ones after the check
        names, free_ids = list(names), [int(i) for i in free_ids]
        kinds, columns = [int(kind) for kind in kinds], [int(column) for column in columns]
        check_flat(names, kinds, columns, free_ids)
        self.grow(max(FIRST_CAPACITY, len(names)))
        self.size = len(names)
        for i in range(1, self.size):
            name = names[i]
            self.kind[i] = kinds[i]
            self.column[i] = columns[i]
            if name is not None:
                Py_INCREF(name)
                self.key[i] = <PyObject*> name
                if self.kind[i] & (NUMERIC | INDICATOR):
                    self.features += 1
        for i in range(1, self.size):
            if self.kind[i] & INDICATOR:
                self.indicators += 1
                c = self.column[i]
                column_name = <object> self.key[c]
                self.levels.setdefault(c, {})[(<object> self.key[i])[len(str(column_name)) + 1:]] = <int32_t> i
        self.free_ids = free_ids
        self.rehash(self.table_size(0))
