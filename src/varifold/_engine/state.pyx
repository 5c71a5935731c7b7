"""Declared state: a model declares its arrays once; growth, files, size and release follow from that.

A model declares each array in its constructor: what it has one entry for (slots, classes, problems), how many numbers
an entry holds, their first value and allowed range. Growth only ever adds memory: if it runs out half-way, some arrays
have more than others, every number is where it was, and the same request can be made again.

In memory an array by slot and problem is [slot][number][problem], so that a loop over the problems runs over
neighbours; in files [slot][problem][number]. With many problems every row of them starts with a cache line.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from varifold._numeric.memory cimport allocate, allocate_aligned, resize, resize_zeroed

cdef double ANY = 1e999
cdef Py_ssize_t LINED = 32
DTYPES = {FLOAT64: np.float64, INT64: np.int64, INT32: np.int32, UINT8: np.uint8}


def checked_array(dict arrays, str name, str kind, tuple shape, low=None, high=None):
    """Return a saved array; raise unless it has this kind ("f" or "i"), shape (None: any) and numbers in range.

    Whatever a model copies into its memory, or uses as an index, passes here first: a file may hold anything.
    """
    array = arrays[name]
    if array.dtype.kind not in ("f" if kind == "f" else "iu"):
        raise ValueError(f"{name} holds numbers of type {array.dtype}")
    if array.ndim != len(shape) or any(n is not None and n != held for n, held in zip(shape, array.shape)):
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    if array.size and ((low is not None and array.min() < low) or (high is not None and array.max() > high)):
        raise ValueError(f"{name} holds numbers outside {low} to {high}")
    return np.ascontiguousarray(array, dtype=np.float64 if kind == "f" else None)


def check_chains(first, following, belongs):
    """Check linked lists kept as arrays: from first[u] through `following` to 0 are the entries of u, each once."""
    reached = set()
    for u, at in enumerate(first):
        while at:
            if at in reached or belongs.get(at) != u:
                raise ValueError(f"entry {at} is chained to {u}, to which it does not belong")
            reached.add(at)
            at = following[at]
    if len(reached) != len(belongs):
        raise ValueError(f"{len(reached)} of {len(belongs)} entries are chained")


cdef inline Py_ssize_t larger(Py_ssize_t capacity, Py_ssize_t needed) noexcept nogil:
    """Return a capacity half as large again, so that adding one at a time costs little."""
    return max(needed, capacity + capacity // 2)


cdef void transpose(const uint8_t* a, Py_ssize_t side, uint8_t* b, Py_ssize_t other, Py_ssize_t rows, Py_ssize_t columns,
                    Py_ssize_t size) noexcept nogil:
    """Set b[column][row] = a[row][column], numbers of `size` bytes; rows of a are `side` apart, those of b `other`."""
    cdef Py_ssize_t i, j
    for i in range(rows):
        for j in range(columns):
            memcpy(b + (j * other + i) * size, a + (i * side + j) * size, size)


cdef inline bint all_zero(const char* block, Py_ssize_t bytes) noexcept nogil:
    """Return whether all bytes are zero."""
    return bytes == 0 or (block[0] == 0 and memcmp(block, block + 1, bytes - 1) == 0)


cdef inline Py_ssize_t whole_lines(Py_ssize_t problems) noexcept nogil:
    """Return a capacity for problems, from LINED on in whole cache lines of eight numbers."""
    return (problems + 7) & ~(<Py_ssize_t> 7) if problems >= LINED else problems


# ---------------------------------------------------------------- what an array has one entry for

cdef class Extent:
    """Entries of a declared array: along which axis, how many numbers each, their first value and allowed range."""


cdef Extent extent_of(int axis, width, Py_ssize_t most, double first, low, high):
    cdef Extent extent = Extent.__new__(Extent)
    extent.axis = axis
    extent.width = 1 if width is None else width
    extent.flat = width is None
    extent.most = most
    extent.first = first
    extent.low = -ANY if low is None else low
    extent.high = ANY if high is None else high
    return extent


def fixed(Py_ssize_t entries, *, width=None, double first=0.0, low=None, high=None):
    """Declare a given number of entries.

    An entry is one number, or `width` of them along a further axis. New numbers are `first`; numbers from files
    must lie within `low` and `high`.
    """
    return extent_of(FIXED, width, entries, first, low, high)


def per_slot(*, width=None, Py_ssize_t most=0, double first=0.0, low=None, high=None):
    """Declare one entry per slot; with `most` above 0, for the first `most` slots only; the rest as in `fixed`."""
    return extent_of(SLOT, width, most, first, low, high)


def per_class(*, width=None, double first=0.0, low=None, high=None):
    """Declare one entry per class; the rest as in `fixed`."""
    return extent_of(CLASS, width, 0, first, low, high)


def per_problem(*, width=None, double first=0.0, low=None, high=None):
    """Declare one entry per binary problem of one-versus-rest; the rest as in `fixed`."""
    return extent_of(PROBLEM, width, 0, first, low, high)


def per_slot_and_class(*, width=None, double first=0.0, low=None, high=None):
    """Declare one entry per slot and class; the rest as in `fixed`."""
    return extent_of(SLOT_CLASS, width, 0, first, low, high)


def per_slot_and_problem(*, width=None, double first=0.0, low=None, high=None):
    """Declare one entry per slot and binary problem; the rest as in `fixed`."""
    return extent_of(SLOT_PROBLEM, width, 0, first, low, high)


cdef class State:
    """Arrays of one model."""

    def __cinit__(self):
        self.names = []
        self.problems = 1

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            free(self.array[i].block[0])
            self.array[i].block[0] = NULL
        free(self.array)

    # ---------------------------------------------------------------- declaring

    cdef int declare(self, str name, Number** pointer, extent) except -1:
        """Declare a saved array: ``declare("weight", &self.weight, per_slot(low=0))``."""
        if Number is double:
            return self.add(name, <void**> pointer, FLOAT64, extent)
        elif Number is int64_t:
            return self.add(name, <void**> pointer, INT64, extent)
        elif Number is int32_t:
            return self.add(name, <void**> pointer, INT32, extent)
        else:
            return self.add(name, <void**> pointer, UINT8, extent)

    cdef int scratch(self, Number** pointer, extent) except -1:
        """Declare an array that grows with the others and is not saved."""
        return self.declare(None, pointer, extent)

    cdef int scratch_bytes(self, void** pointer, Py_ssize_t size, Extent extent) except -1:
        """Declare scratch whose entries are `size` bytes: C structs."""
        extent.width = size
        return self.add(None, pointer, BYTES, extent)

    cdef int add(self, str name, void** pointer, int type, Extent extent) except -1:
        """Add an array with as many entries as the others have."""
        cdef Array* a
        if resize(<void**> &self.array, (self.count + 1) * sizeof(Array)) < 0:
            raise MemoryError
        a = &self.array[self.count]
        a.block = pointer
        a.axis = extent.axis
        a.type = type
        a.width = extent.width
        a.flat = extent.flat
        a.most = extent.most
        a.saved = name is not None
        a.first = extent.first
        a.low = extent.low
        a.high = extent.high
        a.slots = 0
        self.names.append(name)
        self.count += 1
        if a.axis == FIXED:
            self.extend(a, a.most)
        elif a.axis == CLASS:
            self.extend(a, self.classes)
        elif a.axis == PROBLEM:
            self.extend(a, self.problems)
        else:
            self.extend(a, min(self.slots, a.most) if a.most else self.slots)
        return 0

    # ---------------------------------------------------------------- growing

    cdef inline Py_ssize_t bytes_per_number(self, Array* a) noexcept nogil:
        return 8 if a.type == FLOAT64 or a.type == INT64 else 4 if a.type == INT32 else 1

    cdef Py_ssize_t bytes_per_entry(self, Array* a) noexcept nogil:
        """Return the bytes of one entry along the first axis."""
        cdef Py_ssize_t size = a.width * self.bytes_per_number(a)
        if a.axis == SLOT_CLASS:
            size *= self.classes
        elif a.axis == SLOT_PROBLEM:
            size *= self.problems
        return size

    cdef int fill_first(self, Array* a, void* block, Py_ssize_t start, Py_ssize_t stop) except -1:
        """Write the first value into numbers that are zero."""
        cdef Py_ssize_t i
        if a.first == 0.0:
            return 0
        if a.type == FLOAT64:
            for i in range(start, stop):
                (<double*> block)[i] = a.first
        elif a.type == INT32:
            for i in range(start, stop):
                (<int32_t*> block)[i] = <int32_t> a.first
        else:
            raise TypeError("only FLOAT64 and INT32 arrays have a first value other than 0")
        return 0

    cdef int extend(self, Array* a, Py_ssize_t entries) except -1:
        """Reserve memory for this many entries along the first axis."""
        cdef Py_ssize_t per = self.bytes_per_entry(a), size = self.bytes_per_number(a)
        if entries <= a.slots:
            return 0
        if a.axis == SLOT_PROBLEM and self.problems >= LINED:
            self.extend_aligned(a, a.slots * per, entries * per)
        elif resize_zeroed(a.block, a.slots * per, entries * per) < 0:
            raise MemoryError
        self.fill_first(a, a.block[0], a.slots * per // size, entries * per // size)
        a.slots = entries
        return 0

    cdef int extend_aligned(self, Array* a, Py_ssize_t old_bytes, Py_ssize_t bytes) except -1:
        """Move a block to a larger one; realloc() would not keep it aligned."""
        cdef void* fresh = allocate_aligned(bytes)
        if fresh == NULL:
            raise MemoryError
        if old_bytes:
            memcpy(fresh, a.block[0], old_bytes)
        free(a.block[0])
        a.block[0] = fresh
        return 0

    cdef int reserve_slots(self, Py_ssize_t slots) except -1:
        """Reserve memory for this many slots in every array."""
        cdef int i
        cdef Array* a
        for i in range(self.count):
            a = &self.array[i]
            if a.axis == SLOT or a.axis == SLOT_CLASS or a.axis == SLOT_PROBLEM:
                self.extend(a, min(slots, a.most) if a.most else slots)
        self.slots = max(self.slots, slots)
        return 0

    cdef int reserve_classes(self, Py_ssize_t classes) except -1:
        """Reserve memory for this many classes in every array."""
        cdef Py_ssize_t capacity = larger(self.classes, classes)
        if classes > self.classes:
            self.widen(CLASS, SLOT_CLASS, self.classes, capacity)
            self.classes = capacity
        return 0

    cdef int reserve_problems(self, Py_ssize_t problems) except -1:
        """Reserve memory for this many problems in every array."""
        cdef Py_ssize_t capacity = whole_lines(larger(self.problems, problems))
        if problems > self.problems:
            self.widen(PROBLEM, SLOT_PROBLEM, self.problems, capacity)
            self.problems = capacity
        return 0

    cdef int widen(self, int axis, int crossed, Py_ssize_t old, Py_ssize_t new) except -1:
        """Add entries along a class axis; arrays by slot and class are laid out again, all of them or none."""
        cdef int i
        cdef Array* a
        cdef Py_ssize_t row, rows, per, n_crossed = 0
        cdef void** fresh
        cdef char* source
        for i in range(self.count):
            if self.array[i].axis == axis:
                self.extend(&self.array[i], new)
            n_crossed += self.array[i].axis == crossed
        if n_crossed == 0:
            return 0
        fresh = <void**> allocate(self.count * sizeof(void*))
        if fresh == NULL:
            raise MemoryError
        try:
            for i in range(self.count):
                a = &self.array[i]
                if a.axis != crossed:
                    continue
                rows = a.slots * a.width if crossed == SLOT_PROBLEM else a.slots
                per = self.bytes_per_number(a) * (1 if crossed == SLOT_PROBLEM else a.width)
                fresh[i] = allocate_aligned(rows * new * per)
                if fresh[i] == NULL:
                    raise MemoryError
                self.fill_first(a, fresh[i], 0, a.slots * new * a.width)
                for row in range(rows):
                    source = <char*> a.block[0] + row * old * per
                    if a.first != 0.0 or not all_zero(source, old * per):    # unused rows occupy no memory
                        memcpy(<char*> fresh[i] + row * new * per, source, old * per)
            for i in range(self.count):
                if fresh[i] != NULL:
                    free(self.array[i].block[0])
                    self.array[i].block[0] = fresh[i]
                    fresh[i] = NULL
        finally:
            for i in range(self.count):
                free(fresh[i])
            free(fresh)
        return 0

    # ---------------------------------------------------------------- forgetting

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Set a slot's saved numbers to their first values."""
        cdef int i
        cdef Py_ssize_t k, per
        cdef Array* a
        for i in range(self.count):
            a = &self.array[i]
            if not a.saved or slot >= a.slots or a.axis == FIXED or a.axis == CLASS or a.axis == PROBLEM:
                continue
            per = self.bytes_per_entry(a)
            if a.first == 0.0:
                memset(<char*> a.block[0] + slot * per, 0, per)
            elif a.type == FLOAT64:
                for k in range(slot * per // 8, (slot + 1) * per // 8):
                    (<double*> a.block[0])[k] = a.first
            else:
                for k in range(slot * per // 4, (slot + 1) * per // 4):
                    (<int32_t*> a.block[0])[k] = <int32_t> a.first

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size, Py_ssize_t classes, Py_ssize_t problems=1):
        """Return the saved arrays by name: the first `size` slots, `classes` and `problems`."""
        cdef int i
        cdef Array* a
        cdef uint8_t[::1] view
        found = {}
        for i in range(self.count):
            a = &self.array[i]
            if not a.saved:
                continue
            shape = self.shape_of(i, size, classes, problems)
            out = np.zeros(shape, dtype=DTYPES[a.type])
            found[self.names[i]] = out
            if out.size == 0 or (a.axis == SLOT_CLASS and classes == 0):
                continue
            view = out.reshape(-1).view(np.uint8)
            self.copy_out(a, &view[0], shape[0], view.shape[0] // shape[0], problems)
        return found

    cdef void copy_out(self, Array* a, uint8_t* out, Py_ssize_t n, Py_ssize_t row, Py_ssize_t problems) noexcept nogil:
        """Write the first n entries, `row` bytes of each, in the order of files."""
        cdef Py_ssize_t slot, per = self.bytes_per_entry(a)
        cdef uint8_t* block = <uint8_t*> a.block[0]
        if a.axis == SLOT_PROBLEM and a.width > 1:
            for slot in range(n):
                transpose(block + slot * per, self.problems, out + slot * row, a.width, a.width, problems,
                          self.bytes_per_number(a))
        elif row == per:
            memcpy(out, block, n * per)
        else:
            for slot in range(n):
                memcpy(out + slot * row, block + slot * per, row)

    def shape_of(self, int i, Py_ssize_t size, Py_ssize_t classes, Py_ssize_t problems):
        """Return the shape in which array i is saved."""
        cdef Array* a = &self.array[i]
        slots = min(size, a.most) if a.most else size
        lead = {FIXED: (a.most,), SLOT: (slots,), CLASS: (classes,), PROBLEM: (problems,),
                SLOT_CLASS: (slots, max(1, classes)), SLOT_PROBLEM: (slots, problems)}[a.axis]
        return lead if a.flat else (*lead, a.width)

    def fill(self, dict arrays, Py_ssize_t rows, Py_ssize_t capacity, Py_ssize_t classes, Py_ssize_t problems=1):
        """Restore what dump() returned, with memory for `capacity` slots; `rows` slots are saved (-1: any number).

        All arrays are checked before memory is reserved: slots, classes and problems are numbers in a file, and a file
        that does not have the arrays for them must not allocate them.
        """
        cdef int i
        cdef Array* a
        cdef Py_ssize_t n
        cdef const uint8_t[::1] view
        checked = {}
        for i in range(self.count):
            a = &self.array[i]
            if not a.saved:
                continue
            shape = self.shape_of(i, max(rows, 0), classes, problems)
            if rows < 0 and a.axis in (SLOT, SLOT_CLASS, SLOT_PROBLEM):
                shape = (None, *shape[1:])
            checked[i] = checked_array(arrays, self.names[i], "f" if a.type == FLOAT64 else "i", shape,
                                       None if a.low == -ANY else a.low, None if a.high == ANY else a.high)
        self.reserve_classes(classes)
        self.reserve_problems(problems)
        self.reserve_slots(capacity)
        for i, given in checked.items():
            a = &self.array[i]
            n = given.shape[0]
            if n > a.slots and given.size:
                raise ValueError(f"{self.names[i]} holds {n} entries where {a.slots} belong")
            if given.size == 0 or (a.axis == SLOT_CLASS and classes == 0):
                continue
            given = np.ascontiguousarray(given, dtype=DTYPES[a.type])
            view = given.reshape(-1).view(np.uint8)
            self.copy_in(a, &view[0], n, view.shape[0] // n, problems)

    cdef void copy_in(self, Array* a, const uint8_t* saved, Py_ssize_t n, Py_ssize_t row,
                      Py_ssize_t problems) noexcept nogil:
        """Read the first n entries, `row` bytes of each, from the order of files."""
        cdef Py_ssize_t slot, per = self.bytes_per_entry(a)
        cdef uint8_t* block = <uint8_t*> a.block[0]
        for slot in range(n):
            if a.axis == SLOT_PROBLEM and a.width > 1:
                transpose(saved + slot * row, a.width, block + slot * per, self.problems, problems, a.width,
                          self.bytes_per_number(a))
            else:
                memcpy(block + slot * per, saved + slot * row, row)

    def nbytes(self):
        """Return bytes of state, scratch included."""
        cdef int i
        return sum(self.array[i].slots * self.bytes_per_entry(&self.array[i]) for i in range(self.count))
