"""Delimited text split into records and cells."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int64_t, uint8_t


cdef int resize(void** array, size_t size) except -1:
    cdef void* moved = PyMem_Realloc(array[0], size)
    if moved == NULL:
        raise MemoryError
    array[0] = moved
    return 0


cdef inline bint is_space(char c) noexcept nogil:
    return c == 32 or c == 9


cdef inline bint ends_cell(char c, char sep) noexcept nogil:
    return c == sep or c == 10 or c == 13


cdef inline Py_ssize_t plain_cell(Records self, const char* s, Py_ssize_t n, Py_ssize_t p, Py_ssize_t j) noexcept nogil:
    """Cell j begins at p and ends at the next separator, which is returned; spaces at its end are left out."""
    cdef char sep = self.sep
    cdef Py_ssize_t end
    self.begin[j] = p
    while p < n and not ends_cell(s[p], sep):
        p += 1
    end = p
    while end > self.begin[j] and is_space(s[end - 1]):
        end -= 1
    self.end[j] = end
    self.quoted[j] = 0
    return p


cdef Py_ssize_t quoted_cell(
    Records self, const char* s, Py_ssize_t n, Py_ssize_t p, Py_ssize_t j, int64_t* lines, bint final
) noexcept nogil:
    """Cell j has its opening quote at p; returns where the separator stands, NOT_WHOLE or OPEN_QUOTE."""
    cdef char sep = self.sep, quote = self.quote
    cdef int64_t before = lines[0]
    p += 1
    self.begin[j] = p
    self.quoted[j] = 1
    while True:
        while p < n and s[p] != quote:
            lines[0] += s[p] == 10
            p += 1
        if not (p + 1 < n and s[p + 1] == quote):
            break
        self.quoted[j] = 2
        p += 2
    if p >= n or (p + 1 >= n and not final):
        self.opened = self.line
        if p >= n and final:
            lines[0] = 1
            return OPEN_QUOTE
        return NOT_WHOLE
    self.end[j] = p
    p += 1
    while p < n and is_space(s[p]) and s[p] != sep:
        p += 1
    if p < n and not ends_cell(s[p], sep):
        if lines[0] > before:
            return OPEN_QUOTE
        # text after a closing quote on the same line: the quotes were part of the text
        self.quoted[j] = 0
        self.begin[j] -= 1
        while p < n and not ends_cell(s[p], sep):
            p += 1
        self.end[j] = p
    return p


cdef class Records:
    """See the declaration; the subclass sets `sep` and `quote`."""

    def __cinit__(self):
        self.line = 1
        self.more_room()

    def __dealloc__(self):
        PyMem_Free(self.begin)
        PyMem_Free(self.end)
        PyMem_Free(self.quoted)

    def records(self, bytes data, Py_ssize_t most, bint final):
        """(line, cells as str, end) of the first whole records; for looking ahead, nothing is kept."""
        cdef Py_ssize_t p = 0, count, j
        cdef int64_t lines = 0, line = self.line
        cdef const char* s = data
        found = []
        while len(found) < most:
            count = self.split(s, len(data), &p, &lines, final)
            if count < 0:
                break
            if count > 0:
                cells = [self.cell(s, j).decode("utf-8", "surrogateescape") for j in range(count)]
                found.append((line, cells, p))
            line += lines
        return found

    cdef Py_ssize_t split(self, const char* s, Py_ssize_t n, Py_ssize_t* place, int64_t* lines, bint final) except -3:
        cdef Py_ssize_t p = place[0], count = 0
        lines[0] = 1
        if p >= n:
            return NOT_WHOLE
        if s[p] == 10 or (s[p] == 13 and (p + 1 < n or final)):
            place[0] = p + (2 if s[p] == 13 and p + 1 < n and s[p + 1] == 10 else 1)
            return 0
        while True:
            if count == self.room:
                self.more_room()
            while p < n and is_space(s[p]) and s[p] != self.sep:
                p += 1
            if p < n and s[p] == self.quote:
                p = quoted_cell(self, s, n, p, count, lines, final)
                if p < 0:
                    return p
            else:
                p = plain_cell(self, s, n, p, count)
            if p >= n and not final:
                return NOT_WHOLE
            count += 1
            if p < n and s[p] == self.sep:
                p += 1
                continue
            if p < n and s[p] == 13:
                if p + 1 >= n and not final:
                    return NOT_WHOLE
                p += 1
                if p < n and s[p] == 10:
                    p += 1
            elif p < n:
                p += 1
            place[0] = p
            return count

    cdef int more_room(self) except -1:
        cdef Py_ssize_t room = max(16, 2 * self.room)
        resize(<void**> &self.begin, room * sizeof(Py_ssize_t))
        resize(<void**> &self.end, room * sizeof(Py_ssize_t))
        resize(<void**> &self.quoted, room)
        self.room = room
        return 0

    cdef bytes cell(self, const char* s, Py_ssize_t j):
        """The text of cell j; doubled quotes inside stand for one."""
        cdef bytes text = PyBytes_FromStringAndSize(s + self.begin[j], self.end[j] - self.begin[j])
        if self.quoted[j] == 2:
            mark = bytes([self.quote])
            text = text.replace(mark + mark, mark)
        return text
