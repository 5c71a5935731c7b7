"""Parse delimited text into the arrays of a block in one pass: numbers, categories, texts, dates, labels, targets."""

cimport cython
import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.math cimport INFINITY, NAN, isinf, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from varifold._engine.names.vocabulary cimport Labels, Vocabulary
from varifold.errors import DataError, FeatureNameError
from varifold.streams.readers._numbers import label_of
from varifold.streams.readers._numbers cimport read_number
from varifold.streams.readers._quick cimport (
    AS_CATEGORY, AS_DATE, AS_EXTRA, AS_IGNORED, AS_NUMBER, AS_TARGET, AS_TEXT, AS_WEIGHT, LITTLE_ENDIAN, NEW_LABEL, PLACES,
    QuickRow, Text, quick_row, remember,
)

# Roles of columns.
NUMERIC = AS_NUMBER
CATEGORY = AS_CATEGORY
TEXT = AS_TEXT
TARGET = AS_TARGET
WEIGHT = AS_WEIGHT
EXTRA = AS_EXTRA            # kept as text: id, time
DATE = AS_DATE              # becomes features of a date
IGNORED = AS_IGNORED

cdef enum:
    INCOMPLETE = -1         # the text ends before the record does
    OPEN_QUOTE = -2         # a quote is never closed

cdef enum Quoting:
    PLAIN, QUOTED, DOUBLED  # DOUBLED: quoted, with doubled quotes inside


cdef int resize(void** array, size_t size) except -1:
    """Reallocate *array to another size; if that fails, leave it unchanged."""
    cdef void* moved = PyMem_Realloc(array[0], size)
    if moved == NULL:
        raise MemoryError
    array[0] = moved
    return 0


cdef inline bint is_space(char c) noexcept nogil:
    return c == 32 or c == 9


cdef inline bint ends_cell(char c, char sep) noexcept nogil:
    return c == sep or c == 10 or c == 13


cdef str shown(const char* s, Py_ssize_t n):
    """Quote a cell for a message."""
    return s[:min(n, 60)].decode("utf-8", "replace") + ("..." if n > 60 else "")


@cython.final
cdef class Delimited:
    """Parser of delimited text: accepts bytes in pieces and collects the cells of complete records.

    `failed(line, column, message)` is called for each record that cannot be read; if it returns, the record is skipped.
    `words(text)` returns the word counts of a text cell, `dates(column, text, time)` the features of a date in a row of
    that time. A record longer than `longest` bytes cannot be read; `too_long` is the message. With `unlabelled`, a
    record without a label gets the code -1 (the target NaN).
    """

    cdef public int64_t line              # of the next record
    cdef readonly Py_ssize_t rows, cells
    cdef readonly list extras             # one tuple per row if there are EXTRA columns
    cdef readonly set revised             # numeric columns that also contain strings
    cdef public object before_new         # called before a name, level, label or problem is added, or None
    cdef public bint numeric_target       # whether the target is parsed as a number instead of a label
    cdef char sep, quote
    cdef Vocabulary vocabulary
    cdef Labels labels
    cdef object failed, words, dates
    cdef str too_long
    cdef Py_ssize_t longest
    cdef frozenset absent
    cdef bint empty_absent, unlabelled
    cdef uint8_t[256] absent_first        # whether some absent text begins with this byte
    cdef Py_ssize_t absent_longest
    cdef Py_ssize_t time                  # position of the column that holds the rows' time, -1 without one
    cdef Py_ssize_t key                   # position of the column that must not be empty, -1 without one
    # the columns
    cdef Py_ssize_t width
    cdef list names, caches               # a cache maps a level or word to its feature id
    cdef uint8_t* role
    cdef int32_t* fixed                   # feature id of a numeric column, 0 before its first number
    cdef char* decimal                    # separators of decimals and of thousands (0: none)
    cdef char* thousands
    cdef list units                       # by column, the unit of its numbers; "" if they have none
    cdef object only_unit                 # removes it from a text; an error for another unit
    cdef object label_notation            # separators of decimals and of thousands of the target
    cdef object label_unit
    # the cells of the record that was split last: s[begin[j]:end[j]]
    cdef Py_ssize_t split_capacity
    cdef Py_ssize_t* begin
    cdef Py_ssize_t* end
    cdef uint8_t* quoted
    # the rows parsed since finish()
    cdef Py_ssize_t row_capacity, cell_capacity
    cdef int32_t* idx
    cdef double* val
    cdef int64_t* ends
    cdef int32_t* codes
    cdef double* targets
    cdef double* weights
    cdef bint has_weights, has_extras
    cdef dict label_cache
    cdef QuickRow quick
    cdef Py_ssize_t pause                 # rows to parse one by one before the quick path is tried again

    def __cinit__(self, Vocabulary vocabulary, Labels labels, sep, absent, failed, words, quote='"',
                  Py_ssize_t longest=1 << 26, too_long="longer than 64 MB", bint unlabelled=False):
        self.line = 1
        self.sep = <char> ord(sep)
        self.quote = <char> ord(quote)
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
        self.quick.sep, self.quick.quote = self.sep, self.quote
        self.quick.longest, self.quick.empty_absent = longest, self.empty_absent
        self.quick.absent_first = self.absent_first
        resize(<void**> &self.quick.texts, PLACES * sizeof(Text))
        memset(self.quick.texts, 0, PLACES * sizeof(Text))
        self.grow_split()
        self.revised = set()
        self.extras = []

    def __dealloc__(self):
        PyMem_Free(self.begin); PyMem_Free(self.end); PyMem_Free(self.quoted)
        PyMem_Free(self.role); PyMem_Free(self.fixed); PyMem_Free(self.decimal); PyMem_Free(self.thousands)
        PyMem_Free(self.idx); PyMem_Free(self.val); PyMem_Free(self.ends)
        PyMem_Free(self.codes); PyMem_Free(self.targets); PyMem_Free(self.weights)
        PyMem_Free(self.quick.texts)

    def set_columns(self, names, roles, dates=None, time=None, key=None, notations=None,
                    only_unit=None):
        """Set the names and roles of the columns, and which hold the time and the key of the rows.

        `notations` has the separators of decimals and of thousands and the unit ("": none) of each column;
        `only_unit` removes the unit from a text.
        """
        cdef Py_ssize_t j
        notations = [(".", "")] * len(names) if notations is None else notations
        resize(<void**> &self.decimal, len(names) + 1)
        resize(<void**> &self.thousands, len(names) + 1)
        resize(<void**> &self.role, len(names) + 1)
        resize(<void**> &self.fixed, (len(names) + 1) * sizeof(int32_t))
        self.names = list(names)
        self.caches = [{} for _ in names]
        self.width = len(names)
        for j in range(self.width):
            self.role[j] = roles[j]
            self.fixed[j] = 0
            self.decimal[j] = <char> ord(notations[j][0])
            self.thousands[j] = <char> ord(notations[j][1]) if notations[j][1] else 0
        self.units = [n[2] if len(n) > 2 else "" for n in notations]
        self.only_unit = only_unit
        self.label_unit = next((unit for unit, role in zip(self.units, roles) if role == TARGET), "")
        self.label_notation = next((n[:2] for n, role in zip(notations, roles) if role == TARGET), (".", ""))
        used = {n[:2] for n, role in zip(notations, roles) if role in (NUMERIC, WEIGHT, TARGET)} or {(".", "")}
        quick = next(iter(used))
        self.quick.decimal = <char> ord(quick[0])
        self.has_weights = WEIGHT in roles
        self.dates = dates
        self.time = self.names.index(time) if time in self.names else -1
        self.key = self.names.index(key) if key in self.names else -1
        self.has_extras = EXTRA in roles or self.time >= 0
        self.quick.width, self.quick.role, self.quick.fixed = self.width, self.role, self.fixed
        self.quick.possible = (
            LITTLE_ENDIAN and self.key < 0 and not self.has_extras and not {TEXT, EXTRA, DATE} & set(roles)
            and len(used) == 1 and not quick[1]
        )
        for c in b"0123456789-" + bytes([self.quick.decimal]):
            if self.absent_first[<uint8_t> c]:
                self.quick.possible = False  # a number may mean "not observed"

    # ------------------------------------------------------------------ splitting records into cells

    def records(self, bytes data, Py_ssize_t most, bint final):
        """Return (line, cells as str, end) of the first complete records, for looking ahead; nothing is collected."""
        cdef Py_ssize_t p = 0, count, j
        cdef int64_t lines = 0, line = self.line
        cdef const char* s = data
        records = []
        while len(records) < most:
            count = self.split(s, len(data), &p, &lines, final)
            if count < 0:
                break
            if count > 0:
                cells = [self.cell(s, j).decode("utf-8", "surrogateescape") for j in range(count)]
                records.append((line, cells, p))
            line += lines
        return records

    cdef Py_ssize_t split(self, const char* s, Py_ssize_t n, Py_ssize_t* place, int64_t* lines, bint final) except -3:
        """Split the record at `place` and move `place` behind it; count its lines in `lines`.

        Return the number of cells, 0 for a blank line, INCOMPLETE or OPEN_QUOTE.
        """
        cdef Py_ssize_t p = place[0], count = 0
        lines[0] = 1
        if p >= n:
            return INCOMPLETE
        if s[p] == 10 or (s[p] == 13 and (p + 1 < n or final)):
            place[0] = p + (2 if s[p] == 13 and p + 1 < n and s[p + 1] == 10 else 1)
            return 0
        while True:
            if count == self.split_capacity:
                self.grow_split()
            while p < n and is_space(s[p]) and s[p] != self.sep:
                p += 1
            if p < n and s[p] == self.quote:
                p = self.split_quoted(s, n, p, count, lines, final)
                if p < 0:
                    return p
            else:
                p = self.split_plain(s, n, p, count)
            if p >= n and not final:
                return INCOMPLETE
            count += 1
            if p < n and s[p] == self.sep:
                p += 1
                continue
            if p < n and s[p] == 13:
                if p + 1 >= n and not final:
                    return INCOMPLETE
                p += 1
                if p < n and s[p] == 10:
                    p += 1
            elif p < n:
                p += 1
            place[0] = p
            return count

    cdef inline Py_ssize_t split_plain(self, const char* s, Py_ssize_t n, Py_ssize_t p, Py_ssize_t j) noexcept nogil:
        """Read cell j, which begins at p, without the spaces at its end; return the position of the next separator."""
        cdef char sep = self.sep
        cdef Py_ssize_t end
        self.begin[j] = p
        while p < n and not ends_cell(s[p], sep):
            p += 1
        end = p
        while end > self.begin[j] and is_space(s[end - 1]):
            end -= 1
        self.end[j] = end
        self.quoted[j] = PLAIN
        return p

    cdef Py_ssize_t split_quoted(
        self, const char* s, Py_ssize_t n, Py_ssize_t p, Py_ssize_t j, int64_t* lines, bint final
    ) noexcept nogil:
        """Read cell j, whose opening quote is at p; return the position of the separator, INCOMPLETE or OPEN_QUOTE."""
        cdef char sep = self.sep, quote = self.quote
        cdef int64_t before = lines[0]
        p += 1
        self.begin[j] = p
        self.quoted[j] = QUOTED
        while True:
            while p < n and s[p] != quote:
                lines[0] += s[p] == 10
                p += 1
            if not (p + 1 < n and s[p + 1] == quote):
                break
            self.quoted[j] = DOUBLED
            p += 2
        if p >= n or (p + 1 >= n and not final):
            if p >= n and final:
                lines[0] = 1
                return OPEN_QUOTE
            return INCOMPLETE
        self.end[j] = p
        p += 1
        while p < n and is_space(s[p]) and s[p] != sep:
            p += 1
        if p < n and not ends_cell(s[p], sep):
            if lines[0] > before:
                return OPEN_QUOTE
            # text follows a closing quote on the same line: the quotes were part of the text
            self.quoted[j] = PLAIN
            self.begin[j] -= 1
            while p < n and not ends_cell(s[p], sep):
                p += 1
            self.end[j] = p
        return p

    cdef int grow_split(self) except -1:
        cdef Py_ssize_t capacity = max(16, 2 * self.split_capacity)
        resize(<void**> &self.begin, capacity * sizeof(Py_ssize_t))
        resize(<void**> &self.end, capacity * sizeof(Py_ssize_t))
        resize(<void**> &self.quoted, capacity)
        self.split_capacity = capacity
        return 0

    cdef bytes cell(self, const char* s, Py_ssize_t j):
        """Return cell j of the record split last, without enclosing quotes; doubled quotes become single."""
        cdef bytes text = PyBytes_FromStringAndSize(s + self.begin[j], self.end[j] - self.begin[j])
        if self.quoted[j] == DOUBLED:
            mark = bytes([self.quote])
            text = text.replace(mark + mark, mark)
        return text

    # ------------------------------------------------------------------ records to rows

    def feed(self, bytes data, Py_ssize_t start, bint final, Py_ssize_t most_rows, Py_ssize_t most_cells):
        """Parse records from `start` until a bound is reached or none is complete; return the position of the rest."""
        cdef Py_ssize_t p = start, before, n = len(data), slow = 0
        cdef const char* s = data
        self.quick.numeric_target = self.numeric_target
        while self.rows < most_rows and self.cells < most_cells:
            if self.quick.possible and slow == 0:
                before = p
                p = self.feed_quick(s, p, n, most_rows, most_cells)
                # rows that are not quick come in runs: try the quick path less and less often
                self.pause = 0 if p > before else min(2 * self.pause + 1, 255)
                slow = self.pause + 1
                continue
            slow = max(slow - 1, 0)
            if not self.feed_record(s, n, &p, final):
                break
        return p

    cdef Py_ssize_t feed_quick(self, const char* s, Py_ssize_t p, Py_ssize_t n, Py_ssize_t most_rows,
                               Py_ssize_t most_cells) except -1:
        """Parse rows as long as they need no Python; return the beginning of the first one that does."""
        cdef Py_ssize_t after = 0
        cdef int32_t code
        while after >= 0 and self.rows < most_rows and self.cells < most_cells:
            self.reserve(self.cells + self.width)
            self.quick.idx, self.quick.val = self.idx, self.val
            with nogil:
                while (self.rows < most_rows and self.cells < most_cells and self.rows + 1 < self.row_capacity
                       and self.cells + self.width <= self.cell_capacity):
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
                    return p  # feed_record() reports the error
                self.keep_quick(code)
                self.quick.code = code
                p = after
        return p

    cdef inline void keep_quick(self, int32_t code) noexcept nogil:
        """Append the row that was parsed last."""
        self.cells = self.quick.cells
        self.codes[self.rows] = code
        self.targets[self.rows] = self.quick.target
        self.weights[self.rows] = self.quick.weight
        self.ends[self.rows] = self.cells
        self.rows += 1
        self.line += 1

    cdef bint feed_record(self, const char* s, Py_ssize_t n, Py_ssize_t* place, bint final) except -1:
        """Parse the record at `place` and move `place` behind it; return False if it is incomplete."""
        cdef Py_ssize_t first = place[0], count
        cdef int64_t lines = 0
        count = self.split(s, n, place, &lines, final)
        if count == INCOMPLETE:
            return False
        if count == OPEN_QUOTE:
            # leave out this line and continue after it
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
            self.report(None, f"{count} cells where the header has {self.width}; fix the row, or leave such rows out with "
                              "--on-error skip")
        self.line += lines
        return True

    cdef int report(self, object column, str message) except -1:
        """Report that the current record cannot be read."""
        self.announce()
        self.failed(self.line, column, message)
        return 0

    cdef int announce(self) except -1:
        """Call `before_new` before names, labels or problems are added, which other threads see."""
        if self.before_new is not None:
            self.before_new()
        return 0

    cdef int add_row(self, const char* s) except -1:
        """Append the record that was just split as a row; if a cell is bad, report it and leave the row out."""
        cdef Py_ssize_t before = self.cells, j = 0
        cdef list extras = [] if self.has_extras else None
        self.reserve(self.cells + self.width)
        self.codes[self.rows] = -1
        self.targets[self.rows] = NAN
        self.weights[self.rows] = 1.0
        try:
            for j in range(self.width):
                self.add_cell(s, j, extras)
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
            self.extras.append(tuple(extras))
        return 0

    cdef inline int add_cell(self, const char* s, Py_ssize_t j, list extras) except -1:
        """Convert cell j by the role of its column."""
        cdef Py_ssize_t a = self.begin[j], n = self.end[j] - self.begin[j]
        cdef int role = self.role[j]
        if role == AS_IGNORED:
            return 0
        if self.is_absent(s, a, n):
            if role == AS_TARGET and not self.unlabelled:
                raise DataError("no label here; fill it in, or leave such rows out with --on-error skip")
            if j == self.key:
                raise DataError("no key here; fill it in, or leave such rows out with --on-error skip")
            if role == AS_EXTRA or j == self.time:
                extras.append(None)
        elif role == AS_NUMBER:
            self.add_number(s, j, a, n)
        elif role == AS_CATEGORY:
            self.add_level(s, j)
        elif role == AS_TEXT:
            self.add_words(s, j)
        elif role == AS_TARGET:
            self.set_target(s, j, a, n)
        elif role == AS_WEIGHT:
            self.set_weight(s, j, a, n)
        elif role == AS_DATE:
            self.add_date(s, j)
            if j == self.time:
                extras.append(self.cell(s, j).decode())
        else:
            extras.append(self.cell(s, j).decode())
        return 0

    cdef inline bint is_absent(self, const char* s, Py_ssize_t a, Py_ssize_t n) except -1:
        if n == 0:
            return self.empty_absent
        if n > self.absent_longest or not self.absent_first[<uint8_t> s[a]]:
            return False
        return PyBytes_FromStringAndSize(s + a, n) in self.absent

    cdef inline int add_number(self, const char* s, Py_ssize_t j, Py_ssize_t a, Py_ssize_t n) except -1:
        """Add a number; a string in a numeric column becomes a category of that column."""
        cdef double x = 0.0
        if not self.read_quantity(s, j, a, n, &x):
            self.add_level(s, j)
            self.revised.add(self.names[j])
        elif isinf(x):
            raise DataError(f"{shown(s + a, n)!r} is infinite as a number; leave the cell empty")
        elif not isnan(x):
            if self.fixed[j] == 0:
                self.announce()
                self.fixed[j] = self.vocabulary.add(self.names[j])
            self.put(self.fixed[j], x)
        return 0

    cdef inline int read_quantity(self, const char* s, Py_ssize_t j, Py_ssize_t a, Py_ssize_t n, double* x) except -1:
        """Read the number of a cell, with the column's unit or without."""
        cdef bytes bare
        if read_number(s + a, n, self.decimal[j], self.thousands[j], x):
            return 1
        if not self.units[j]:
            return 0
        bare = self.only_unit(self.cell(s, j).decode(), self.units[j]).encode()
        return read_number(bare, len(bare), self.decimal[j], self.thousands[j], x)

    cdef int add_level(self, const char* s, Py_ssize_t j) except -1:
        """Add a category as an indicator with the value 1."""
        cdef bytes text = self.cell(s, j)
        cdef dict cache = <dict> self.caches[j]
        feature = cache.get(text)
        if feature is None:
            self.announce()
            feature = self.vocabulary.add_level(self.names[j], text.decode())
            cache[text] = feature
        self.put(feature, 1.0)
        if self.quoted[j] == PLAIN and self.role[j] == AS_CATEGORY:
            remember(&self.quick, s + self.begin[j], self.end[j] - self.begin[j], j, feature)
        return 0

    cdef int add_words(self, const char* s, Py_ssize_t j) except -1:
        """Add a text as one feature per word, whose value is the count."""
        cdef dict cache = <dict> self.caches[j]
        cdef dict counts = self.words(self.cell(s, j).decode())
        self.reserve(self.cells + len(counts) + self.width)
        for word, count in counts.items():
            feature = cache.get(word)
            if feature is None:
                self.announce()
                feature = self.vocabulary.add(f"{self.names[j]}:{word}")
                cache[word] = feature
            self.put(feature, count)
        return 0

    cdef int add_date(self, const char* s, Py_ssize_t j) except -1:
        """Add the features of a date: numbers and categories."""
        cdef Py_ssize_t t = self.time
        at = None
        if t >= 0 and not self.is_absent(s, self.begin[t], self.end[t] - self.begin[t]):
            at = self.cell(s, t).decode()
        cdef dict parts = self.dates(self.names[j], self.cell(s, j).decode(), at)
        self.reserve(self.cells + len(parts) + self.width)
        self.announce()
        for name, value in parts.items():
            if isinstance(value, str):
                self.put(self.vocabulary.add_level(name, value), 1.0)
            else:
                self.put(self.vocabulary.add(name), value)
        return 0

    cdef int set_target(self, const char* s, Py_ssize_t j, Py_ssize_t a, Py_ssize_t n) except -1:
        """Set the row's label, or its number to predict."""
        cdef double x = 0.0
        if self.numeric_target:
            if not self.read_quantity(s, j, a, n, &x) or isinf(x) or isnan(x):
                raise DataError(f"{shown(s + a, n)!r} is not a finite number")
            self.targets[self.rows] = x
            return 0
        self.codes[self.rows] = self.label_code(self.cell(s, j))
        if self.quoted[j] == PLAIN:
            remember(&self.quick, s + a, n, j, self.codes[self.rows])
        return 0

    cdef int32_t label_code(self, bytes text) except -1:
        code = self.label_cache.get(text)
        if code is None:
            self.announce()
            bare = self.only_unit(text.decode(), self.label_unit).encode() if self.label_unit else text
            code = self.labels.code(label_of(bare, *self.label_notation))
            self.label_cache[text] = code
        return code

    cdef int set_weight(self, const char* s, Py_ssize_t j, Py_ssize_t a, Py_ssize_t n) except -1:
        cdef double x = 0.0
        if not read_number(s + a, n, self.decimal[j], self.thousands[j], &x) or not 0 <= x < INFINITY:
            raise DataError(f"the weight {shown(s + a, n)!r} is not a number >= 0")
        self.weights[self.rows] = x
        return 0

    cdef inline void put(self, int32_t i, double x) noexcept:
        self.idx[self.cells] = i
        self.val[self.cells] = x
        self.cells += 1

    cdef inline int reserve(self, Py_ssize_t cells) except -1:
        """Reserve memory for this number of cells and for one more row."""
        cdef Py_ssize_t capacity
        if cells > self.cell_capacity:
            capacity = max(2 * self.cell_capacity, cells + 1024)
            resize(<void**> &self.idx, capacity * sizeof(int32_t))
            resize(<void**> &self.val, capacity * sizeof(double))
            self.cell_capacity = capacity
        if self.rows + 1 >= self.row_capacity:
            capacity = max(2 * self.row_capacity, 1024)
            resize(<void**> &self.ends, capacity * sizeof(int64_t))
            resize(<void**> &self.codes, capacity * sizeof(int32_t))
            resize(<void**> &self.targets, capacity * sizeof(double))
            resize(<void**> &self.weights, capacity * sizeof(double))
            self.row_capacity = capacity
        return 0

    def finish(self):
        """Return the rows so far and start again with none.

        They are (indptr, indices, values, codes, targets, weights, extras); targets are None unless `numeric_target`,
        weights None without a column of weights.
        """
        cdef Py_ssize_t n = self.rows, m = self.cells
        indptr = np.zeros(n + 1, dtype=np.int64)
        indices, values, codes = np.empty(m, dtype=np.int32), np.empty(m), np.empty(n, dtype=np.int32)
        targets = np.empty(n) if self.numeric_target else None
        weights = np.empty(n) if n and self.has_weights else None
        cdef int64_t[::1] ends = indptr
        cdef int32_t[::1] ints
        cdef double[::1] doubles
        if n:
            memcpy(&ends[1], self.ends, n * sizeof(int64_t))
            ints = codes
            memcpy(&ints[0], self.codes, n * sizeof(int32_t))
            if targets is not None:
                doubles = targets
                memcpy(&doubles[0], self.targets, n * sizeof(double))
            if weights is not None:
                doubles = weights
                memcpy(&doubles[0], self.weights, n * sizeof(double))
        if m:
            ints, doubles = indices, values
            with nogil:     # the consumer of the previous batch must not wait for this
                memcpy(&ints[0], self.idx, m * sizeof(int32_t))
                memcpy(&doubles[0], self.val, m * sizeof(double))
        extras, self.extras = self.extras, []
        self.rows = self.cells = 0
        return indptr, indices, values, codes, targets, weights, extras
