"""The door for JSON text: a line's names and numbers go to the intake without a dict in between.

The state, the answers and the errors are those of json.loads() and the door for dicts. Lines as programs write them are
read here. Whatever is odd (a name twice, nested values, infinities, text that is no JSON, ...) makes tokenize() return
False; the caller then takes the line through json.loads(), which also says what is wrong with it.
"""

import json

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport NAN
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from varifold._engine.admission cimport Admission
from varifold._engine.guard cimport claim, release
from varifold._engine.json_names cimport JsonNames, decoded, hash_text
from varifold._engine.json_text cimport (
    BACKSLASH, CLOSE, COLON, COMMA, MINUS, OPEN, QUOTE, ZERO, Spelled, number_value, read_number, skip_space,
    string_end,
)
from varifold._engine.names cimport INDICATOR, NUMERIC
from varifold._engine.reading cimport LARGEST, plain_dict
from varifold._numeric.memory cimport resize_zeroed

from varifold.errors import ParameterError

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL

cdef enum:
    LONGEST_NAME = 1 << 20


cdef inline bint is_word(const char* p, const char* end, const char* word, Py_ssize_t n) noexcept:
    return end - p >= n and memcmp(p, word, n) == 0


cdef bint is_plain(const char* p, Py_ssize_t n) noexcept:
    """Whether the text stands between quotes as it is."""
    cdef Py_ssize_t i
    for i in range(n):
        if p[i] == QUOTE or p[i] == BACKSLASH or 0 <= p[i] < 32:
            return False
    return True


cdef class JsonDoor(Admission):
    """Space, scaler and model in step, with lines of JSON as instances."""

    def __dealloc__(self):
        free(self.line_of)

    cdef object loaded(self, object data, object target):
        """(x, value of the target) by json.loads, for a line that tokenize() left."""
        x = json.loads(data)
        if target is None:
            return x, None
        if type(x) is not dict:
            plain_dict(x, self.step + 1)   # raises: there is no mapping to take the target from
        return x, x.pop(target, None)

    # ---------------------------------------------------------------- one line

    def check_json(self, data):
        """check() for the object in a line."""
        cdef list pending
        claim(self)
        try:
            pending = self.gather_unknown() if self.tokenize(data, None) else self.gather(json.loads(data))
            if pending is not None:
                self.check_pending(pending)
        finally:
            release(self)

    cdef bint tokenize(self, object data, object target) except -1:
        """Known pairs into scratch, the rest into `unknown` and `taken`; False for a line to be read by json.loads."""
        cdef const char* p
        cdef Py_ssize_t n = 0
        if PyBytes_CheckExact(data):
            p = PyBytes_AS_STRING(data)
            n = PyBytes_GET_SIZE(data)
        elif PyUnicode_CheckExact(data):
            try:
                p = PyUnicode_AsUTF8AndSize(data, &n)
            except UnicodeEncodeError:   # half of a surrogate pair
                return False
        else:
            return False
        self.begin_line(target)
        try:
            return self.read_object(p, p + n)
        finally:
            self.target = self.name = self.scalar = None

    cdef int begin_line(self, object target) except -1:
        """Nothing is gathered yet; room for the stamps and spellings of all known names."""
        if self.json_names is None:
            self.json_names = JsonNames()
        self.json_names.prepare(self.space.size)
        self.json_names.start()
        if self.lines_room < self.space.capacity:
            if resize_zeroed(<void**> &self.line_of, self.lines_room * sizeof(uint32_t),
                             self.space.capacity * sizeof(uint32_t)) < 0:
                raise MemoryError
            self.lines_room = self.space.capacity
        self.line += 1
        if self.line == 0:
            memset(self.line_of, 0, self.lines_room * sizeof(uint32_t))
            self.line = 1
        self.n = 0
        self.n_indicator_columns = 0
        self.ordered = False
        self.unknown = None
        self.taken = None
        self.wanted = NULL
        self.target = target
        if target is not None:
            if not PyUnicode_CheckExact(target):
                raise ParameterError(f"the target is {target!r}; give the name of a field, a str")
            self.wanted = PyUnicode_AsUTF8AndSize(target, &self.n_wanted)
            if not is_plain(self.wanted, self.n_wanted):
                self.wanted = NULL
        return 0

    cdef bint read_object(self, const char* p, const char* end) except -1:
        """A whole line: an object, and white space around it."""
        p = skip_space(p, end)
        if p == end or p[0] != OPEN:
            return False
        p = skip_space(p + 1, end)
        if p < end and p[0] == CLOSE:
            return skip_space(p + 1, end) == end
        while True:
            if p == end or p[0] != QUOTE:
                return False
            p = self.read_pair(p + 1, end)
            if p == NULL:
                return False
            p = skip_space(p, end)
            if p == end:
                return False
            if p[0] == CLOSE:
                return skip_space(p + 1, end) == end
            if p[0] != COMMA:
                return False
            p = skip_space(p + 1, end)

    cdef const char* read_pair(self, const char* p, const char* end) except? NULL:
        """One name, whose opening quote stands before p, and its value; NULL for anything odd."""
        p = self.read_name(p, end)
        if p == NULL:
            return NULL
        p = skip_space(p, end)
        if p == end or p[0] != COLON:
            return NULL
        p = skip_space(p + 1, end)
        if self.slot > 0:
            if self.line_of[self.slot] == self.line:   # a name for the second time: json.loads keeps the last value
                return NULL
            self.line_of[self.slot] = self.line
            return self.read_known(p, end)
        p = self.read_scalar(p, end)
        if p == NULL:
            return NULL
        if self.slot == 0:
            self.taken = self.scalar
            return p
        if self.unknown is None:
            self.unknown = {}
        self.unknown[self.name] = self.scalar
        return p

    # ---------------------------------------------------------------- names

    cdef const char* read_name(self, const char* p, const char* end) except? NULL:
        """The slot of the name at p, or the name itself; returns what follows its closing quote."""
        cdef JsonNames names = self.json_names
        cdef const char* q
        cdef bint escaped = False
        cdef int32_t e
        if self.wanted != NULL and end - p > self.n_wanted and p[self.n_wanted] == QUOTE:
            if memcmp(p, self.wanted, self.n_wanted) == 0:
                self.slot = 0
                return p + self.n_wanted + 1
        e = names.guess(p, end)
        if e >= 0:
            q = p + names.entry[e].length
        else:
            q = string_end(p, end, &escaped)
            if q == NULL or q - p > LONGEST_NAME:
                return NULL
            e = names.find(p, <uint32_t> (q - p), hash_text(p, q - p))
            if e < 0:
                return self.read_new_name(p, q, escaped)
        names.follow(e)
        if names.entry[e].escaped and self.target == <object> names.entry[e].key:
            self.slot = 0
            return q + 1
        self.slot = names.slot_of(e, self.space)
        if self.slot < 0:
            self.name = <object> names.entry[e].key
        return q + 1

    cdef const char* read_new_name(self, const char* p, const char* q, bint escaped) except? NULL:
        """A spelling that is not held: one of the target, of a known name, or an unknown name."""
        cdef int32_t e
        try:
            name = decoded(p, q - p, escaped)
        except ValueError:
            return NULL
        if self.target is not None and name == self.target:
            self.slot = 0
            return q + 1
        self.slot = self.space.find(<PyObject*> name)
        if self.slot < 0:
            self.name = name
            return q + 1
        e = self.json_names.add(p, <uint32_t> (q - p), escaped, <object> self.space.key[self.slot], self.slot)
        if e >= 0:
            self.json_names.follow(e)
        return q + 1

    # ---------------------------------------------------------------- values

    cdef const char* read_known(self, const char* p, const char* end) except? NULL:
        """The value of a known name into scratch; a level or kind of value that is new to it goes to `unknown`."""
        cdef int32_t s = self.slot, i
        cdef uint8_t kind = self.space.kind[s]
        cdef double number = 0.0
        cdef Spelled spelled
        cdef const char* q
        if self.n + 2 > self.room:
            self.reserve(2 * self.n)
        if kind & NUMERIC and p < end and (p[0] == MINUS or ZERO <= p[0] <= 57):
            # the usual case in line
            q = read_number(p, end, &spelled)
            if q != NULL and number_value(&spelled, &number) and -LARGEST <= number <= LARGEST:
                self.n += 1
                self.slots[self.n] = s
                self.vals[self.n] = number
                return q
        q = self.read_scalar(p, end)
        if q == NULL or self.scalar is None or self.scalar != self.scalar:
            return q
        if kind & INDICATOR:
            return NULL
        if PyUnicode_CheckExact(self.scalar):
            i = self.space.find_level(s, self.scalar)
            if i >= 0:
                self.append(i, 1.0)
                return q
        elif kind & NUMERIC:
            self.append(s, self.scalar)
            return q
        if self.unknown is None:
            self.unknown = {}
        self.unknown[<object> self.space.key[s]] = self.scalar
        return q

    cdef const char* read_scalar(self, const char* p, const char* end) except? NULL:
        """A value as Python has it, into `scalar`; returns where it ends, NULL for one that is none or is odd."""
        cdef Spelled spelled
        cdef bint escaped = False
        cdef double number = 0.0
        cdef const char* q
        if p < end and p[0] == QUOTE:
            q = string_end(p + 1, end, &escaped)
            if q == NULL:
                return NULL
            try:
                self.scalar = decoded(p + 1, q - p - 1, escaped)
            except ValueError:
                return NULL
            return q + 1
        if is_word(p, end, b"null", 4):
            self.scalar = None
            return p + 4
        if is_word(p, end, b"NaN", 3):
            self.scalar = NAN
            return p + 3
        if is_word(p, end, b"true", 4):
            self.scalar = True
            return p + 4
        if is_word(p, end, b"false", 5):
            self.scalar = False
            return p + 5
        q = read_number(p, end, &spelled)
        if q == NULL:
            return NULL
        if spelled.whole:
            self.scalar = -<object> spelled.m if spelled.negative else spelled.m
            return q
        if not number_value(&spelled, &number):
            number = float(PyBytes_FromStringAndSize(p, q - p))
        if not -LARGEST <= number <= LARGEST:
            return NULL
        self.scalar = number
        return q

    cdef list gather_unknown(self):
        """What gather() gives for the pairs in `unknown`: (name, column, level, value) of each, or None."""
        cdef list pending = None
        if self.unknown is None:
            return None
        self.reserve(self.n + len(self.unknown))
        for name, value in self.unknown.items():
            pending = self.gather_pair(<PyObject*> name, <PyObject*> value, pending)
        return pending
