"""Rows as clients send them, split into fields without reading the features: those stay text for the learner.

Only what orjson would take, and the checks of bodies.py would let pass, is split here. For anything else the answer is
None, and the full parser says what is wrong.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from varifold._engine.json_names cimport JsonNames, decoded, hash_text
from varifold._engine.json_text cimport (
    CLOSE, COLON, COMMA, OPEN, QUOTE, Spelled, number_value, read_number, skip_space, string_end,
)

cdef dict FIELDS = {name.encode(): name for name in ("x", "y", "w", "id", "key", "keep", "predict")}
cdef object X = "x"

cdef enum:
    EQUALS = 61        # the character =
    SPELLINGS = 1000   # names whose spelling is held


cdef inline bint is_word(const char* p, const char* end, const char* word, Py_ssize_t n) noexcept:
    return end - p >= n and memcmp(p, word, n) == 0


cdef bint is_utf8(bytes line):
    """Whether the bytes are UTF-8; nearly all are ASCII, which is seen eight at a time."""
    cdef const char* p = PyBytes_AS_STRING(line)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(line)
    cdef uint64_t word = 0
    while n >= 8:
        memcpy(&word, p, 8)
        if word & 0x8080808080808080ULL:
            break
        p += 8
        n -= 8
    while n > 0 and <unsigned char> p[0] < 128:
        p += 1
        n -= 1
    if n == 0:
        return True
    try:
        PyUnicode_DecodeUTF8(p, n, NULL)
    except UnicodeDecodeError:
        return False
    return True


cdef inline const char* plain_string(const char* p, const char* end) noexcept nogil:
    """What follows the string whose opening quote stands at p; NULL when there is none, or it has escapes."""
    cdef bint escaped = False
    if p == end or p[0] != QUOTE:
        return NULL
    p = string_end(p + 1, end, &escaped)
    return NULL if p == NULL or escaped else p + 1


cdef const char* skip_value(const char* p, const char* end) noexcept:
    """What follows a feature's value: a number that is finite, a string, true, false or null; NULL for anything else."""
    cdef Spelled spelled
    if p == end:
        return NULL
    if p[0] == QUOTE:
        return plain_string(p, end)
    if is_word(p, end, b"null", 4) or is_word(p, end, b"true", 4):
        return p + 4
    if is_word(p, end, b"false", 5):
        return p + 5
    p = read_number(p, end, &spelled)
    return NULL if p == NULL or spelled.exponent > 280 else p


cdef const char* next_pair(const char* p, const char* end, bint* more) noexcept:
    """What follows a pair: at the next name, or behind the object; NULL for anything but a comma or its end."""
    p = skip_space(p, end)
    if p == end:
        return NULL
    more[0] = p[0] == COMMA
    if p[0] == CLOSE:
        return p + 1
    return skip_space(p + 1, end) if more[0] else NULL


cdef const char* pair_value(const char* p, const char* end) noexcept:
    """The value behind a name that ends at p; NULL without a colon."""
    p = skip_space(p, end)
    return NULL if p == end or p[0] != COLON else skip_space(p + 1, end)


cdef const char* skip_features(const char* p, const char* end) noexcept:
    """What follows the object of features at p; NULL when it is none."""
    cdef bint more = True
    if p == end or p[0] != OPEN:
        return NULL
    p = skip_space(p + 1, end)
    if p < end and p[0] == CLOSE:
        return p + 1
    while more:
        p = plain_string(p, end)
        if p == NULL:
            return NULL
        p = pair_value(p, end)
        if p == NULL:
            return NULL
        p = skip_value(p, end)
        if p == NULL:
            return NULL
        p = next_pair(p, end, &more)
        if p == NULL:
            return NULL
    return p


cdef object scalar(const char* p, const char* q):
    """The value of a field, which skip_value() found between p and q; None for null and for what orjson reads else."""
    cdef Spelled spelled
    cdef double number = 0.0
    if p[0] == QUOTE:
        return PyUnicode_DecodeUTF8(p + 1, q - p - 2, NULL)
    if p[0] == b"t":
        return True
    if p[0] == b"f":
        return False
    if p[0] == b"n":
        return None
    read_number(p, q, &spelled)
    if spelled.whole:
        if spelled.negative:
            return None if spelled.m >> 63 else -<object> spelled.m
        return spelled.m
    return number if number_value(&spelled, &number) else None


def split_row(bytes line not None):
    """The fields of a row by name, with the text of the features as ``x``; None for a row that needs the full parser."""
    cdef const char* p = PyBytes_AS_STRING(line)
    cdef const char* end = p + PyBytes_GET_SIZE(line)
    cdef const char* q
    cdef bint more = True
    cdef dict found = {}
    p = skip_space(p, end)
    if p == end or p[0] != OPEN or not is_utf8(line):
        return None
    p = skip_space(p + 1, end)
    while more:
        q = plain_string(p, end)
        if q == NULL or q - p > 9:
            return None
        field = FIELDS.get(PyBytes_FromStringAndSize(p + 1, q - p - 2))
        if field is None or field in found:
            return None
        p = pair_value(q, end)
        if p == NULL:
            return None
        q = skip_features(p, end) if field is X else skip_value(p, end)
        if q == NULL:
            return None
        value = PyBytes_FromStringAndSize(p, q - p) if field is X else scalar(p, q)
        if value is None:
            return None
        found[field] = value
        p = next_pair(q, end, &more)
        if p == NULL:
            return None
    return found if skip_space(p, end) == end else None


def may_be_refused(bytes text not None):
    """Whether a learner could refuse these features, which split_row() found: only names can clash with each other.

    A name clashes as "column=value", so there is a string among the values, or a name with "=". A colon before a quote
    is taken for a string; it may also end a name, and then the answer is a needless yes.
    """
    cdef const char* p = PyBytes_AS_STRING(text)
    cdef const char* end = p + PyBytes_GET_SIZE(text)
    while p < end:
        if p[0] == EQUALS:
            return True
        p += 1
        if p[-1] == COLON:
            p = skip_space(p, end)
            if p < end and p[0] == QUOTE:
                return True
    return False


cdef class NameReader:
    """The names in texts of features, the same str for the same name: most lines of a stream name the same ones."""

    cdef JsonNames held
    cdef object name

    def __cinit__(self):
        self.held = JsonNames()

    def names(self, bytes text not None):
        """The names that have a value, in their order; None for a text that split_row() would not have split."""
        cdef const char* p = PyBytes_AS_STRING(text)
        cdef const char* end = p + PyBytes_GET_SIZE(text)
        cdef bint more = True
        cdef list found = []
        self.held.prepare(SPELLINGS)
        self.held.start()
        if p == end or p[0] != OPEN:
            return None
        p = skip_space(p + 1, end)
        if p < end and p[0] == CLOSE:
            return ()
        while more:
            p = self.read_name(p, end)
            if p == NULL:
                return None
            p = pair_value(p, end)
            if p == NULL:
                return None
            if not is_word(p, end, b"null", 4):
                found.append(self.name)
            p = skip_value(p, end)
            if p == NULL:
                return None
            p = next_pair(p, end, &more)
            if p == NULL:
                return None
        return tuple(found)

    cdef const char* read_name(self, const char* p, const char* end) except? NULL:
        """The name at p into `name`; returns what follows it, NULL for none."""
        cdef const char* q
        cdef Py_ssize_t n
        cdef int32_t e
        if p == end or p[0] != QUOTE:
            return NULL
        e = self.held.guess(p + 1, end)
        if e >= 0:
            self.held.follow(e)
            self.name = <object> self.held.entry[e].key
            return p + self.held.entry[e].length + 2
        q = plain_string(p, end)
        if q == NULL:
            return NULL
        p += 1
        n = q - p - 1
        e = self.held.find(p, <uint32_t> n, hash_text(p, n))
        if e < 0:
            try:
                self.name = decoded(p, n, False)
            except UnicodeDecodeError:
                return NULL
            e = self.held.add(p, <uint32_t> n, False, self.name, 0)
        if e >= 0:
            self.held.follow(e)
            self.name = <object> self.held.entry[e].key
        return q
