"""Declared state: a model declares its arrays once; growth, files, size and release follow from that."""

from libc.stdint cimport int32_t, int64_t, uint8_t

# The numbers of a declared array; the type follows from the pointer.
ctypedef fused Number:
    double
    int64_t
    int32_t
    uint8_t

# What an array has one entry for. PROBLEM is a binary problem of one-versus-rest.
cdef enum Axis:
    FIXED          # a number of entries given when it is declared
    SLOT
    CLASS
    PROBLEM
    SLOT_CLASS     # [slot][class]
    SLOT_PROBLEM   # [slot][number][problem]; in files [slot][problem][number]

cdef enum Type:
    FLOAT64
    INT64
    INT32
    UINT8
    BYTES          # scratch for C structs: never saved

# What fixed(), per_slot() and the others return.
cdef class Extent:
    cdef int axis
    cdef Py_ssize_t width      # numbers per entry
    cdef bint flat             # saved without an axis for the width
    cdef Py_ssize_t most       # with FIXED: the number of entries; per slot: entries at the most, 0 for no limit
    cdef double first, low, high

cdef struct Array:
    void** block           # where the model keeps the pointer
    int axis
    int type
    Py_ssize_t width       # numbers per entry
    bint flat              # saved without an axis for the width, which is 1
    Py_ssize_t most        # with FIXED: the number of entries; per slot: entries at the most, 0 for no limit
    bint saved
    double first           # value of a new number
    double low, high       # allowed in files
    Py_ssize_t slots       # entries there is memory for along the first axis

cdef class State:
    cdef Array* array
    cdef int count
    cdef list names
    cdef readonly Py_ssize_t slots       # capacity for slots of every array
    cdef readonly Py_ssize_t classes     # capacity for classes: the stride of [slot][class]
    cdef readonly Py_ssize_t problems    # capacity for problems: the stride of [slot][number]

    cdef int declare(self, str name, Number** pointer, extent) except -1
    cdef int scratch(self, Number** pointer, extent) except -1
    cdef int scratch_bytes(self, void** pointer, Py_ssize_t size, Extent extent) except -1
    cdef int add(self, str name, void** pointer, int type, Extent extent) except -1
    cdef inline Py_ssize_t bytes_per_number(self, Array* a) noexcept nogil
    cdef Py_ssize_t bytes_per_entry(self, Array* a) noexcept nogil
    cdef void copy_out(self, Array* a, uint8_t* out, Py_ssize_t n, Py_ssize_t row, Py_ssize_t problems) noexcept nogil
    cdef void copy_in(self, Array* a, const uint8_t* saved, Py_ssize_t n, Py_ssize_t row,
                      Py_ssize_t problems) noexcept nogil
    cdef int reserve_slots(self, Py_ssize_t slots) except -1
    cdef int reserve_classes(self, Py_ssize_t classes) except -1
    cdef int reserve_problems(self, Py_ssize_t problems) except -1
    cdef int widen(self, int axis, int crossed, Py_ssize_t old, Py_ssize_t new) except -1
    cdef int extend(self, Array* a, Py_ssize_t entries) except -1
    cdef int extend_aligned(self, Array* a, Py_ssize_t old_bytes, Py_ssize_t bytes) except -1
    cdef int fill_first(self, Array* a, void* block, Py_ssize_t start, Py_ssize_t stop) except -1
    cdef void forget(self, int32_t slot) noexcept nogil
