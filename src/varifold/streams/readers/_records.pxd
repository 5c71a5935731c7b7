from libc.stdint cimport int64_t, uint8_t

cdef class Records:
    """Splits delimited text into records; the cells of the last one are s[begin[j]:end[j]]."""
    cdef public int64_t line            # of the next record
    cdef readonly int64_t opened        # line at which the last quote was left open
    cdef char sep, quote
    cdef Py_ssize_t room                # cells that the three arrays have room for
    cdef Py_ssize_t* begin
    cdef Py_ssize_t* end
    cdef uint8_t* quoted                # 0 plain, 1 quoted, 2 quoted with doubled quotes inside

    # Number of cells of the record at `place`, which moves behind it, and of the lines it takes.
    # 0: a blank line, NOT_WHOLE: the text ends before it does, OPEN_QUOTE: a quote is never closed.
    cdef Py_ssize_t split(self, const char* s, Py_ssize_t n, Py_ssize_t* place, int64_t* lines, bint final) except -3
    cdef int more_room(self) except -1
    cdef bytes cell(self, const char* s, Py_ssize_t j)

cdef enum:
    NOT_WHOLE = -1
    OPEN_QUOTE = -2

# Moves *array to memory of another size; on failure it stays as it is and MemoryError is raised.
cdef int resize(void** array, size_t size) except -1
