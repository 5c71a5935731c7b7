"""Delimited text to CSR in one pass: numbers, categories, texts and labels, without a table in between."""

cimport cython
import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free
from libc.math cimport INFINITY, isinf, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from varifold._engine.vocabulary cimport Labels, Vocabulary
from varifold.errors import DataError, FeatureNameError
from varifold.streams.readers._numbers import label_of
from varifold.streams.readers._numbers cimport read_number
from varifold.streams.readers._quick cimport (
    AS_CATEGORY, AS_DATE, AS_EXTRA, AS_IGNORED, AS_NUMBER, AS_TARGET, AS_TEXT, AS_WEIGHT, LITTLE, NEW_LABEL, PLACES, Quick,
    Text, forget_texts, quick_row, remember,
)
from varifold.streams.readers._records cimport NOT_WHOLE, OPEN_QUOTE, Records, resize

# What a column's cells become.
NUMERIC = AS_NUMBER
CATEGORY = AS_CATEGORY
TEXT = AS_TEXT
TARGET = AS_TARGET
WEIGHT = AS_WEIGHT
EXTRA = AS_EXTRA            # kept as it is: id, time
DATE = AS_DATE              # parts of a point in time
IGNORED = AS_IGNORED


cdef str shown(const char* s, Py_ssize_t n):
    """A cell as messages quote it."""
    return s[:min(n, 60)].decode("utf-8", "replace") + ("..." if n > 60 else "")


@cython.final
cdef class Delimited(Records):
    """Takes bytes piece by piece and turns whole records into the cells of a block.

    `failed(line, column, message)` is called for each record that cannot be read; when it returns, the record is left
    out. `words(text)` gives the counts of a text cell, `dates(column, text, time)` the features of a date in a row of
    that time. A record of more than `longest` bytes cannot be read;
    `too_long` is the message about it. With `unlabelled` a record without a label has the code -1.
    """

    cdef readonly Py_ssize_t rows, cells
    cdef readonly list extras             # one tuple per row, when there are EXTRA columns
    cdef readonly set revised             # numeric columns that turned out to hold strings too
    cdef char decimal
    cdef Vocabulary vocabulary
    cdef Labels labels
    cdef object failed, words, dates
    cdef str too_long
    cdef Py_ssize_t longest
    cdef frozenset absent
    cdef bint empty_absent, unlabelled
    cdef uint8_t[256] absent_first        # whether some absent text begins with this byte
    cdef Py_ssize_t absent_longest
    cdef Py_ssize_t width, row_room, cell_room
    cdef Py_ssize_t time                  # place of the column that holds the rows' time, -1 without one
    cdef Py_ssize_t key                   # place of the column that must not be empty, -1 without one
    cdef list names, caches               # per column; a cache gives the feature id of a level or word
    cdef uint8_t* role
    cdef int32_t* fixed                   # feature id of a numeric column, 0 before its first number
    cdef int32_t* idx
    cdef double* val
    cdef int64_t* ends
    cdef int32_t* codes
    cdef double* weights
    cdef bint has_weights, has_extras
    cdef dict label_cache
    cdef Quick quick
    cdef Py_ssize_t pause                 # rows to read one by one before the quick way is tried again
    cdef public object before_new         # called before a name, a level, a label or a problem is added, or None

    def __cinit__(self, Vocabulary vocabulary, Labels labels, sep, absent, failed, words, quote='"', decimal=".",
                  Py_ssize_t longest=1 << 26, too_long="longer than 64 MB", bint unlabelled=False):
        self.sep = <char> ord(sep)
        self.quote = <char> ord(quote)
        self.decimal = <char> ord(decimal)
        self.vocabulary = vocabulary
        self.labels = labels
        self.failed = failed
        self.words = words
        self.longest = longest
        self.too_long = too_long
        self.unlabelled = unlabelled
        self.absent = frozenset(token.encode() for token in absent)
        self.absent_longest = max([len(token) for token in self.absent], default=-1)
        self.empty_absent = b"" in self.absent
        memset(self.absent_first, 0, 256)
        for token in self.absent:
            if token:
                self.absent_first[<uint8_t> token[0]] = 1
        self.label_cache = {}
        self.quick.sep, self.quick.quote, self.quick.decimal = self.sep, self.quote, self.decimal
        self.quick.longest, self.quick.empty_absent = longest, self.empty_absent
        self.quick.absent_first = self.absent_first
        resize(<void**> &self.quick.texts, PLACES * sizeof(Text))
        memset(self.quick.texts, 0, PLACES * sizeof(Text))
        self.revised = set()
        self.extras = []

    def __dealloc__(self):
        PyMem_Free(self.role); PyMem_Free(self.fixed)
        PyMem_Free(self.idx); PyMem_Free(self.val); PyMem_Free(self.ends)
        PyMem_Free(self.codes); PyMem_Free(self.weights)
        PyMem_Free(self.quick.texts)

    def set_columns(self, names, roles, dates=None, time=None, key=None):
        """What the columns are called and what each becomes; which hold the time and the key of the rows."""
        cdef Py_ssize_t j
        resize(<void**> &self.role, len(names) + 1)
        resize(<void**> &self.fixed, (len(names) + 1) * sizeof(int32_t))
        self.names = list(names)
        self.caches = [{} for _ in names]
        self.width = len(names)
        for j in range(self.width):
            self.role[j] = roles[j]
            self.fixed[j] = 0
        self.has_weights = WEIGHT in roles
        self.dates = dates
        self.time = self.names.index(time) if time in self.names else -1
        self.key = self.names.index(key) if key in self.names else -1
        self.has_extras = EXTRA in roles or self.time >= 0
        self.quick.width, self.quick.role, self.quick.fixed = self.width, self.role, self.fixed
        self.quick.possible = LITTLE and self.key < 0 and not self.has_extras and not {TEXT, EXTRA, DATE} & set(roles)
        for c in b"0123456789-" + bytes([self.decimal]):
            if self.absent_first[<uint8_t> c]:
                self.quick.possible = False  # a number may mean "not observed"

    def feed(self, bytes data, Py_ssize_t start, bint final, Py_ssize_t most_rows, Py_ssize_t most_cells):
        """Read records from `start` until a bound is reached or no whole one is left; returns where it stopped."""
        cdef Py_ssize_t p = start, before, n = len(data), slow = 0
        cdef const char* s = data
        if not self.labels.values:
            forget_texts(&self.quick)  # the labels were emptied: they are numbers to predict
        while self.rows < most_rows and self.cells < most_cells:
            if self.quick.possible and slow == 0:
                before = p
                p = self.feed_quick(s, p, n, most_rows, most_cells)
                self.pause = 0 if p > before else min(2 * self.pause + 1, 255)
                slow = self.pause + 1
                continue
            slow = max(slow - 1, 0)
            if not self.feed_record(s, n, &p, final):
                break
        return p

    cdef Py_ssize_t feed_quick(self, const char* s, Py_ssize_t p, Py_ssize_t n, Py_ssize_t most_rows,
                               Py_ssize_t most_cells) except -1:
        """Read rows while they need no Python; returns where the first other one begins."""
        cdef Py_ssize_t after = 0
        cdef int32_t code
        while after >= 0 and self.rows < most_rows and self.cells < most_cells:
            self.reserve(self.cells + self.width)
            self.quick.idx, self.quick.val = self.idx, self.val
            with nogil:
                while (self.rows < most_rows and self.cells < most_cells and self.rows + 1 < self.row_room
                       and self.cells + self.width <= self.cell_room):
                    self.quick.cells = self.cells
                    after = quick_row(&self.quick, s, p, n)
                    if after < 0 or self.quick.code == NEW_LABEL:
                        break
                    self.keep_quick(self.quick.code)
                    p = after
            if after >= 0 and self.quick.code == NEW_LABEL:
                try:
                    code = self.label_code(PyBytes_FromStringAndSize(s + self.quick.label, self.quick.label_length))
                except (DataError, UnicodeDecodeError):
                    return p  # whoever reads the record alone says what is wrong with it
                self.keep_quick(code)
                self.quick.code = code
                p = after
        return p

    cdef inline void keep_quick(self, int32_t code) noexcept nogil:
        """Keep the row that was read last."""
        self.cells = self.quick.cells
        self.codes[self.rows] = code
        self.weights[self.rows] = self.quick.weight
        self.ends[self.rows] = self.cells
        self.rows += 1
        self.line += 1

    cdef bint feed_record(self, const char* s, Py_ssize_t n, Py_ssize_t* place, bint final) except -1:
        """Read the record at `place`, which moves behind it; False when it is not whole."""
        cdef Py_ssize_t first = place[0], count
        cdef int64_t lines = 0
        count = self.split(s, n, place, &lines, final)
        if count == NOT_WHOLE:
            return False
        if count == OPEN_QUOTE:
            # leave this one line out and go on after it
            self.report(None, "a quote is opened here and never closed, or closed inside another cell")
            while place[0] < n and s[place[0]] != 10:
                place[0] += 1
            place[0] = min(place[0] + 1, n)
            self.line += 1
            return True
        if place[0] - first > self.longest:
            self.report(None, self.too_long)
        elif count == self.width:
            self.add_row(s)
        elif count > 0:
            self.report(None, f"{count} cells where the header has {self.width}; mend the row, or leave such rows out "
                              "by --on-error skip")
        self.line += lines
        return True

    cdef int report(self, object column, str message) except -1:
        """The record at hand cannot be read."""
        self.wait()
        self.failed(self.line, column, message)
        return 0

    cdef int wait(self) except -1:
        """Before anything is added that others see: names, labels, problems."""
        if self.before_new is not None:
            self.before_new()
        return 0

    cdef int add_row(self, const char* s) except -1:
        """The record just split as the next row; a bad cell leaves the row out."""
        cdef Py_ssize_t before = self.cells, j = 0
        cdef list kept = [] if self.has_extras else None
        self.reserve(self.cells + self.width)
        self.codes[self.rows] = -1
        self.weights[self.rows] = 1.0
        try:
            for j in range(self.width):
                self.add_cell(s, j, kept)
        except UnicodeDecodeError as error:
            self.cells = before
            byte = error.object[error.start]
            self.report(self.names[j], f"byte 0x{byte:02x} is not UTF-8; name the encoding, such as --encoding latin-1")
            return 0
        except (DataError, FeatureNameError) as error:
            self.cells = before
            self.report(self.names[j], str(error))
            return 0
        self.rows += 1
        self.ends[self.rows - 1] = self.cells
        if self.has_extras:
            self.extras.append(tuple(kept))
        return 0

    cdef inline int add_cell(self, const char* s, Py_ssize_t j, list kept) except -1:
        """Cell j as its column's role has it."""
        cdef Py_ssize_t a = self.begin[j], n = self.end[j] - self.begin[j]
        cdef int role = self.role[j]
        if role == AS_IGNORED:
            return 0
        if self.is_absent(s, a, n):
            if role == AS_TARGET and not self.unlabelled:
                raise DataError("no label here; fill it in, or leave such rows out by --on-error skip")
            if j == self.key:
                raise DataError("no key here; fill it in, or leave such rows out by --on-error skip")
            if role == AS_EXTRA or j == self.time:
                kept.append(None)
        elif role == AS_NUMBER:
            self.add_number(s, j, a, n)
        elif role == AS_CATEGORY:
            self.add_level(s, j)
        elif role == AS_TEXT:
            self.add_words(s, j)
        elif role == AS_TARGET:
            self.codes[self.rows] = self.label_code(self.cell(s, j))
            if not self.quoted[j]:
                remember(&self.quick, s + a, n, j, self.codes[self.rows])
        elif role == AS_WEIGHT:
            self.set_weight(s, j, a, n)
        elif role == AS_DATE:
            self.add_date(s, j)
            if j == self.time:
                kept.append(self.cell(s, j).decode())
        else:
            kept.append(self.cell(s, j).decode())
        return 0

    cdef inline bint is_absent(self, const char* s, Py_ssize_t a, Py_ssize_t n) except -1:
        if n == 0:
            return self.empty_absent
        if n > self.absent_longest or not self.absent_first[<uint8_t> s[a]]:
            return False
        return PyBytes_FromStringAndSize(s + a, n) in self.absent

    cdef inline int add_number(self, const char* s, Py_ssize_t j, Py_ssize_t a, Py_ssize_t n) except -1:
        """A number; a string in a numeric column is a category of that column."""
        cdef double x = 0.0
        if not read_number(s + a, n, self.decimal, &x):
            self.add_level(s, j)
            self.revised.add(self.names[j])
        elif isinf(x):
            raise DataError(f"{shown(s + a, n)!r} is infinite as a number; leave the cell empty")
        elif not isnan(x):
            if self.fixed[j] == 0:
                self.wait()
                self.fixed[j] = self.vocabulary.add(self.names[j])
            self.put(self.fixed[j], x)
        return 0

    cdef int add_level(self, const char* s, Py_ssize_t j) except -1:
        """A category: an indicator of the value 1."""
        cdef bytes text = self.cell(s, j)
        cdef dict cache = <dict> self.caches[j]
        found = cache.get(text)
        if found is None:
            self.wait()
            found = self.vocabulary.add_level(self.names[j], text.decode())
            cache[text] = found
        self.put(found, 1.0)
        if not self.quoted[j] and self.role[j] == AS_CATEGORY:
            remember(&self.quick, s + self.begin[j], self.end[j] - self.begin[j], j, found)
        return 0

    cdef int add_words(self, const char* s, Py_ssize_t j) except -1:
        """A text: one feature per word, its value the count."""
        cdef dict cache = <dict> self.caches[j]
        cdef dict counts = self.words(self.cell(s, j).decode())
        self.reserve(self.cells + len(counts) + self.width)
        for word, count in counts.items():
            found = cache.get(word)
            if found is None:
                self.wait()
                found = self.vocabulary.add(f"{self.names[j]}:{word}")
                cache[word] = found
            self.put(found, count)
        return 0

    cdef int add_date(self, const char* s, Py_ssize_t j) except -1:
        """A point in time: its parts, numbers and categories."""
        cdef Py_ssize_t t = self.time
        at = None
        if t >= 0 and not self.is_absent(s, self.begin[t], self.end[t] - self.begin[t]):
            at = self.cell(s, t).decode()
        cdef dict parts = self.dates(self.names[j], self.cell(s, j).decode(), at)
        self.reserve(self.cells + len(parts) + self.width)
        self.wait()
        for name, value in parts.items():
            if isinstance(value, str):
                self.put(self.vocabulary.add_level(name, value), 1.0)
            else:
                self.put(self.vocabulary.add(name), value)
        return 0

    cdef int32_t label_code(self, bytes text) except -1:
        if not self.labels.values:
            self.label_cache.clear()  # the labels were emptied: they are numbers to predict
        code = self.label_cache.get(text)
        if code is None:
            self.wait()
            code = self.labels.code(label_of(text))
            self.label_cache[text] = code
        return code

    cdef int set_weight(self, const char* s, Py_ssize_t j, Py_ssize_t a, Py_ssize_t n) except -1:
        cdef double x = 0.0
        if not read_number(s + a, n, self.decimal, &x) or not 0 <= x < INFINITY:
            raise DataError(f"the weight {shown(s + a, n)!r} is no number >= 0")
        self.weights[self.rows] = x
        return 0

    cdef inline void put(self, int32_t i, double x) noexcept:
        self.idx[self.cells] = i
        self.val[self.cells] = x
        self.cells += 1

    cdef inline int reserve(self, Py_ssize_t cells) except -1:
        """Room for so many cells in all, and for one more row."""
        cdef Py_ssize_t room
        if cells > self.cell_room:
            room = max(2 * self.cell_room, cells + 1024)
            resize(<void**> &self.idx, room * sizeof(int32_t))
            resize(<void**> &self.val, room * sizeof(double))
            self.cell_room = room
        if self.rows + 1 >= self.row_room:
            room = max(2 * self.row_room, 1024)
            resize(<void**> &self.ends, room * sizeof(int64_t))
            resize(<void**> &self.codes, room * sizeof(int32_t))
            resize(<void**> &self.weights, room * sizeof(double))
            self.row_room = room
        return 0

    def finish(self):
        """(indptr, indices, values, codes, weights or None, extras) of the rows so far; reading goes on with none."""
        cdef Py_ssize_t n = self.rows, m = self.cells
        indptr = np.zeros(n + 1, dtype=np.int64)
        indices, values, codes = np.empty(m, dtype=np.int32), np.empty(m), np.empty(n, dtype=np.int32)
        weights = np.empty(n) if n and self.has_weights else None
        cdef int64_t[::1] ends = indptr
        cdef int32_t[::1] into
        cdef double[::1] numbers
        if n:
            memcpy(&ends[1], self.ends, n * sizeof(int64_t))
            into = codes
            memcpy(&into[0], self.codes, n * sizeof(int32_t))
            if weights is not None:
                numbers = weights
                memcpy(&numbers[0], self.weights, n * sizeof(double))
        if m:
            into, numbers = indices, values
            with nogil:     # whoever works on the batch before is not to wait for it
                memcpy(&into[0], self.idx, m * sizeof(int32_t))
                memcpy(&numbers[0], self.val, m * sizeof(double))
        extras, self.extras = self.extras, []
        self.rows = self.cells = 0
        return indptr, indices, values, codes, weights, extras
