"""Delimited text to CSR in one pass: tokens, numbers, categories and labels, without a table in between."""

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.math cimport INFINITY, NAN, isinf, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from varifold._engine.vocabulary cimport Labels, Vocabulary
from varifold.errors import DataError, FeatureNameError

cdef extern from "float.h":
    int LDBL_MANT_DIG
cdef extern from "Python.h":
    double PyOS_string_to_double(const char* s, char** end, PyObject* overflow) except? -1.0

# What a column's cells become.
NUMERIC = 0
CATEGORY = 1
TEXT = 2
TARGET = 3
WEIGHT = 4
EXTRA = 5        # kept as it is: id, time
IGNORED = 6

cdef double[23] POWER
cdef long double[28] LONG_POWER
cdef int _k
POWER[0] = 1.0
LONG_POWER[0] = 1.0
for _k in range(1, 23):
    POWER[_k] = POWER[_k - 1] * 10.0
for _k in range(1, 28):
    LONG_POWER[_k] = LONG_POWER[_k - 1] * 10.0


cdef inline bint is_space(char c) noexcept nogil:
    return c == 32 or c == 9


cdef int slow_number(const char* s, Py_ssize_t n, char decimal, double* out) except -1:
    """Any length, correctly rounded, as Python's own float()."""
    cdef char* copy = <char*> PyMem_Malloc(n + 1)
    cdef char* end = NULL
    cdef Py_ssize_t i
    if copy == NULL:
        raise MemoryError
    try:
        for i in range(n):
            copy[i] = 46 if s[i] == decimal else s[i]
        copy[n] = 0
        out[0] = PyOS_string_to_double(copy, &end, NULL)
        return 1 if end == copy + n else 0
    except ValueError:
        return 0
    finally:
        PyMem_Free(copy)


cdef int word_number(const char* s, Py_ssize_t n, bint negative, double* out) noexcept:
    """nan, inf and infinity in any case; 0 for other words."""
    cdef bytes word
    if n != 3 and n != 8:
        return 0
    word = PyBytes_FromStringAndSize(s, n).lower()
    if word == b"nan":
        out[0] = NAN
        return 1
    if word == b"inf" or word == b"infinity":
        out[0] = -INFINITY if negative else INFINITY
        return 1
    return 0


cdef int read_number(const char* s, Py_ssize_t n, char decimal, double* out) except -1:
    """1 and the number, or 0 when the bytes are not one. Exactly what float() gives."""
    cdef Py_ssize_t i = 0
    cdef bint negative = False, point = False
    cdef int digits = 0, exponent = 0, shift = 0, e = 0, any_digit = 0
    cdef bint negative_e
    cdef uint64_t m = 0, bits = 0
    cdef long double wide
    cdef double x
    cdef char c
    if n == 0:
        return 0
    if s[0] == 45 or s[0] == 43:
        negative = s[0] == 45
        i = 1
    if i < n and s[i] > 57:
        return word_number(s + i, n - i, negative, out)
    while i < n:
        c = s[i]
        if 48 <= c <= 57:
            any_digit = 1
            if m or c != 48:
                digits += 1
                if digits > 19:
                    return slow_number(s, n, decimal, out)
                m = 10 * m + <uint64_t> (c - 48)
            if point:
                shift += 1
        elif c == decimal and not point:
            point = True
        else:
            break
        i += 1
    if not any_digit:
        return 0
    if i < n:
        if s[i] != 101 and s[i] != 69:
            return 0
        i += 1
        negative_e = False
        if i < n and (s[i] == 45 or s[i] == 43):
            negative_e = s[i] == 45
            i += 1
        if i == n:
            return 0
        while i < n:
            if not 48 <= s[i] <= 57:
                return 0
            if e < 100000:
                e = 10 * e + (s[i] - 48)
            i += 1
        exponent = -e if negative_e else e
    exponent -= shift
    if m == 0:
        out[0] = -0.0 if negative else 0.0
        return 1
    if m <= 9007199254740992ULL and -22 <= exponent <= 22:
        x = <double> m
        x = x / POWER[-exponent] if exponent < 0 else x * POWER[exponent]
        out[0] = -x if negative else x
        return 1
    if LDBL_MANT_DIG == 64 and -27 <= exponent <= 27:
        # One rounding to 64 bits; rounding again to 53 is right unless the 64 bits lie exactly half-way.
        wide = <long double> m
        wide = wide / LONG_POWER[-exponent] if exponent < 0 else wide * LONG_POWER[exponent]
        memcpy(&bits, &wide, 8)
        if bits & 2047 != 1024:
            x = <double> wide
            out[0] = -x if negative else x
            return 1
    return slow_number(s, n, decimal, out)


def parse_number(bytes text, decimal="."):
    """The number that these bytes spell (NaN and inf included), or None."""
    cdef double x = 0.0
    cdef const char* s = text
    return x if read_number(s, len(text), <char> ord(decimal), &x) else None


cdef class Delimited:
    """Takes chunks of bytes and turns whole records into the cells of a block.

    `failed(line, column, message)` is told of each record that cannot be read; when it returns, the record is left
    out. `words(text)` gives the counts of a text cell.
    """

    cdef public int64_t line              # of the next record
    cdef readonly Py_ssize_t rows, cells
    cdef readonly list extras             # one tuple a row, when there are EXTRA columns
    cdef readonly set revised             # numeric columns that turned out to hold strings too
    cdef readonly int64_t opened          # line at which the last quote was left open
    cdef char sep, quote, decimal
    cdef Vocabulary vocabulary
    cdef Labels labels
    cdef object failed, words
    cdef frozenset absent
    cdef bint empty_absent
    cdef uint8_t[256] absent_first
    cdef Py_ssize_t absent_longest
    cdef Py_ssize_t width, room, row_room, cell_room
    cdef list names, caches
    cdef uint8_t* role
    cdef int32_t* fixed
    cdef Py_ssize_t* begin
    cdef Py_ssize_t* end
    cdef uint8_t* quoted
    cdef int32_t* idx
    cdef double* val
    cdef int64_t* ends
    cdef int32_t* codes
    cdef double* weights
    cdef bint has_weights, has_extras
    cdef dict label_cache

    def __cinit__(self, Vocabulary vocabulary, Labels labels, sep, absent, failed, words, quote='"', decimal="."):
        self.vocabulary = vocabulary
        self.labels = labels
        self.sep = <char> ord(sep)
        self.quote = <char> ord(quote)
        self.decimal = <char> ord(decimal)
        self.failed = failed
        self.words = words
        self.absent = frozenset(token.encode() for token in absent)
        self.absent_longest = max([len(token) for token in self.absent], default=-1)
        self.empty_absent = b"" in self.absent
        memset(self.absent_first, 0, 256)
        for token in self.absent:
            if token:
                self.absent_first[<uint8_t> token[0]] = 1
        self.label_cache = {}
        self.revised = set()
        self.extras = []
        self.line = 1
        self.room = 16
        self.begin = <Py_ssize_t*> PyMem_Malloc(self.room * sizeof(Py_ssize_t))
        self.end = <Py_ssize_t*> PyMem_Malloc(self.room * sizeof(Py_ssize_t))
        self.quoted = <uint8_t*> PyMem_Malloc(self.room)
        if self.begin == NULL or self.end == NULL or self.quoted == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.begin); PyMem_Free(self.end); PyMem_Free(self.quoted)
        PyMem_Free(self.role); PyMem_Free(self.fixed)
        PyMem_Free(self.idx); PyMem_Free(self.val); PyMem_Free(self.ends)
        PyMem_Free(self.codes); PyMem_Free(self.weights)

    def set_columns(self, names, roles):
        """What the columns are called and what each becomes."""
        cdef Py_ssize_t j
        self.width = len(names)
        self.names = list(names)
        self.caches = [{} for _ in names]
        self.role = <uint8_t*> PyMem_Realloc(self.role, self.width + 1)
        self.fixed = <int32_t*> PyMem_Realloc(self.fixed, (self.width + 1) * sizeof(int32_t))
        if self.role == NULL or self.fixed == NULL:
            raise MemoryError
        self.has_weights = self.has_extras = False
        for j in range(self.width):
            self.role[j] = roles[j]
            self.fixed[j] = 0
            self.has_weights |= roles[j] == WEIGHT
            self.has_extras |= roles[j] == EXTRA

    def records(self, bytes data, Py_ssize_t most, bint final):
        """(line, cells as str) of the first whole records, without keeping anything; a look ahead."""
        cdef Py_ssize_t p = 0, count, j
        cdef int64_t lines = 0, line = self.line
        cdef const char* s = data
        found = []
        while len(found) < most:
            count = self.split(s, len(data), &p, &lines, final)
            if count < 0:
                break
            if count > 0:
                cells = [self.cell_bytes(s, j).decode("utf-8", "surrogateescape") for j in range(count)]
                found.append((line, cells, p))
            line += lines
        return found

    def feed(self, bytes data, Py_ssize_t start, bint final, Py_ssize_t most_rows, Py_ssize_t most_cells):
        """Reads records from `start` until a bound is met or no whole one is left; returns where it stopped."""
        cdef Py_ssize_t p = start, count
        cdef int64_t lines = 0
        cdef const char* s = data
        cdef Py_ssize_t n = len(data)
        while self.rows < most_rows and self.cells < most_cells:
            count = self.split(s, n, &p, &lines, final)
            if count == -1:
                break
            if count == -2:
                # leave this one line out and go on after it
                self.failed(self.line, None, "a quote is opened here and never closed, or closed inside another cell")
                while p < n and s[p] != 10:
                    p += 1
                p = min(p + 1, n)
                self.line += 1
                continue
            if count == 0:
                self.line += lines
                continue
            if count != self.width:
                self.failed(self.line, None, f"{count} cells where the header has {self.width}")
            else:
                self.take(s, lines)
            self.line += lines
        return p

    cdef Py_ssize_t split(self, const char* s, Py_ssize_t n, Py_ssize_t* place, int64_t* lines, bint final) except -3:
        """Cells of the record at `place`, which moves behind it. 0: blank line, -1: not whole, -2: open quote."""
        cdef Py_ssize_t p = place[0], count = 0, a, b
        cdef int64_t before
        cdef char c, sep = self.sep, quote = self.quote
        cdef uint8_t kind
        lines[0] = 1
        if p >= n:
            return -1
        if s[p] == 10 or (s[p] == 13 and (p + 1 < n or final)):
            place[0] = p + (2 if s[p] == 13 and p + 1 < n and s[p + 1] == 10 else 1)
            return 0
        while True:
            if count == self.room:
                self.more_room()
            kind = 0
            while p < n and is_space(s[p]) and s[p] != sep:
                p += 1
            if p < n and s[p] == quote:
                kind = 1
                before = lines[0]
                p += 1
                a = p
                while True:
                    while p < n and s[p] != quote:
                        if s[p] == 10:
                            lines[0] += 1
                        p += 1
                    if p + 1 < n and s[p + 1] == quote:
                        kind = 2
                        p += 2
                        continue
                    break
                if p >= n or (p + 1 >= n and not final):
                    self.opened = self.line
                    if p >= n and final:
                        lines[0] = 1
                        return -2
                    return -1
                b = p
                p += 1
                while p < n and is_space(s[p]) and s[p] != sep:
                    p += 1
                if p < n and s[p] != sep and s[p] != 10 and s[p] != 13:
                    if lines[0] > before:
                        return -2
                    # text after a closing quote on the same line: the quotes were part of the text
                    kind = 0
                    a -= 1
                    while p < n and s[p] != sep and s[p] != 10 and s[p] != 13:
                        p += 1
                    b = p
            else:
                a = p
                while p < n:
                    c = s[p]
                    if c == sep or c == 10 or c == 13:
                        break
                    p += 1
                b = p
                while b > a and is_space(s[b - 1]):
                    b -= 1
            if p >= n and not final:
                return -1
            self.begin[count] = a
            self.end[count] = b
            self.quoted[count] = kind
            count += 1
            if p < n and s[p] == sep:
                p += 1
                continue
            if p < n and s[p] == 13:
                if p + 1 >= n and not final:
                    return -1
                p += 1
                if p < n and s[p] == 10:
                    p += 1
            elif p < n:
                p += 1
            place[0] = p
            return count

    cdef int more_room(self) except -1:
        self.room *= 2
        self.begin = <Py_ssize_t*> PyMem_Realloc(self.begin, self.room * sizeof(Py_ssize_t))
        self.end = <Py_ssize_t*> PyMem_Realloc(self.end, self.room * sizeof(Py_ssize_t))
        self.quoted = <uint8_t*> PyMem_Realloc(self.quoted, self.room)
        if self.begin == NULL or self.end == NULL or self.quoted == NULL:
            raise MemoryError
        return 0

    cdef bytes cell_bytes(self, const char* s, Py_ssize_t j):
        cdef bytes text = PyBytes_FromStringAndSize(s + self.begin[j], self.end[j] - self.begin[j])
        if self.quoted[j] == 2:
            mark = bytes([self.quote])
            text = text.replace(mark + mark, mark)
        return text

    cdef int reserve(self, Py_ssize_t cells) except -1:
        if cells > self.cell_room:
            self.cell_room = max(2 * self.cell_room, cells + 1024)
            self.idx = <int32_t*> PyMem_Realloc(self.idx, self.cell_room * sizeof(int32_t))
            self.val = <double*> PyMem_Realloc(self.val, self.cell_room * sizeof(double))
            if self.idx == NULL or self.val == NULL:
                raise MemoryError
        if self.rows + 1 >= self.row_room:
            self.row_room = max(2 * self.row_room, 1024)
            self.ends = <int64_t*> PyMem_Realloc(self.ends, self.row_room * sizeof(int64_t))
            self.codes = <int32_t*> PyMem_Realloc(self.codes, self.row_room * sizeof(int32_t))
            self.weights = <double*> PyMem_Realloc(self.weights, self.row_room * sizeof(double))
            if self.ends == NULL or self.codes == NULL or self.weights == NULL:
                raise MemoryError
        return 0

    cdef int take(self, const char* s, int64_t lines) except -1:
        """The record in begin/end as the next row; a bad cell leaves the row out."""
        cdef Py_ssize_t before = self.cells, j, a, n
        cdef double x = 0.0
        cdef int role
        cdef bytes text
        cdef list kept = [] if self.has_extras else None
        self.reserve(self.cells + self.width)
        self.codes[self.rows] = -1
        self.weights[self.rows] = 1.0
        try:
            for j in range(self.width):
                role = self.role[j]
                a = self.begin[j]
                n = self.end[j] - a
                if role == IGNORED:
                    continue
                if self.is_absent(s, j, a, n):
                    if role == TARGET:
                        raise DataError("no label here; fill it in, or leave such rows out by --on-error skip")
                    if role == EXTRA:
                        kept.append(None)
                    continue
                if role == NUMERIC:
                    if read_number(s + a, n, self.decimal, &x):
                        if isnan(x):
                            continue
                        if isinf(x):
                            raise DataError(f"{s[a:a + n].decode()!r} is infinite as a number; leave the cell empty")
                        if self.fixed[j] == 0:
                            self.fixed[j] = self.vocabulary.add(self.names[j])
                        self.put(self.fixed[j], x)
                    else:
                        self.level(s, j)
                        self.revised.add(self.names[j])
                elif role == CATEGORY:
                    self.level(s, j)
                elif role == TEXT:
                    self.text(s, j)
                elif role == TARGET:
                    text = self.cell_bytes(s, j)
                    code = self.label_cache.get(text)
                    if code is None:
                        code = self.labels.code(label_of(text))
                        self.label_cache[text] = code
                    self.codes[self.rows] = code
                elif role == WEIGHT:
                    if not read_number(s + a, n, self.decimal, &x) or not 0 <= x < INFINITY:
                        raise DataError(f"the weight {self.cell_bytes(s, j).decode(errors='replace')!r} is no number >= 0")
                    self.weights[self.rows] = x
                else:
                    kept.append(self.cell_bytes(s, j).decode())
        except UnicodeDecodeError as error:
            self.cells = before
            byte = error.object[error.start]
            self.failed(self.line, self.names[j],
                        f"byte 0x{byte:02x} is not UTF-8; name the encoding, for example latin-1")
            return 0
        except (DataError, FeatureNameError) as error:
            self.cells = before
            self.failed(self.line, self.names[j], str(error))
            return 0
        self.rows += 1
        self.ends[self.rows - 1] = self.cells
        if self.has_extras:
            self.extras.append(tuple(kept))
        return 0

    cdef inline void put(self, int32_t i, double x) noexcept:
        self.idx[self.cells] = i
        self.val[self.cells] = x
        self.cells += 1

    cdef bint is_absent(self, const char* s, Py_ssize_t j, Py_ssize_t a, Py_ssize_t n) except -1:
        if n == 0:
            return self.empty_absent
        if n > self.absent_longest or not self.absent_first[<uint8_t> s[a]]:
            return False
        return PyBytes_FromStringAndSize(s + a, n) in self.absent

    cdef int level(self, const char* s, Py_ssize_t j) except -1:
        cdef bytes text = self.cell_bytes(s, j)
        cdef dict cache = <dict> self.caches[j]
        found = cache.get(text)
        if found is None:
            found = self.vocabulary.add_level(self.names[j], text.decode())
            cache[text] = found
        self.put(found, 1.0)
        return 0

    cdef int text(self, const char* s, Py_ssize_t j) except -1:
        cdef dict cache = <dict> self.caches[j]
        cdef dict counts = self.words(self.cell_bytes(s, j).decode())
        self.reserve(self.cells + len(counts) + self.width)
        for word, count in counts.items():
            found = cache.get(word)
            if found is None:
                found = self.vocabulary.add(f"{self.names[j]}:{word}")
                cache[word] = found
            self.put(found, count)
        return 0

    def finish(self):
        """(indptr, indices, values, codes, weights or None, extras) of the rows so far, which are given up."""
        cdef Py_ssize_t n = self.rows, m = self.cells
        indptr = np.zeros(n + 1, dtype=np.int64)
        indices = np.empty(m, dtype=np.int32)
        values = np.empty(m)
        codes = np.empty(n, dtype=np.int32)
        cdef int64_t[::1] ptr = indptr
        cdef int32_t[::1] idx = indices
        cdef double[::1] val = values
        cdef int32_t[::1] code = codes
        cdef double[::1] weight
        weights = None
        if n:
            memcpy(&ptr[1], self.ends, n * sizeof(int64_t))
            memcpy(&code[0], self.codes, n * sizeof(int32_t))
            if self.has_weights:
                weights = np.empty(n)
                weight = weights
                memcpy(&weight[0], self.weights, n * sizeof(double))
        if m:
            memcpy(&idx[0], self.idx, m * sizeof(int32_t))
            memcpy(&val[0], self.val, m * sizeof(double))
        extras = self.extras
        self.extras = []
        self.rows = 0
        self.cells = 0
        return indptr, indices, values, codes, weights, extras


def label_of(bytes text):
    """A label as a number where it is one, whole ones as int, else as text."""
    cdef double x = 0.0
    cdef const char* s = text
    if read_number(s, len(text), 46, &x) and not isnan(x) and not isinf(x):
        return int(x) if x == int(x) else x
    return text.decode()
