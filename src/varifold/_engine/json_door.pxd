from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t

from varifold._engine.admission cimport Admission
from varifold._engine.json_names cimport JsonNames


cdef class JsonDoor(Admission):
    cdef JsonNames json_names
    cdef uint32_t* line_of        # slot -> the last line that named it
    cdef Py_ssize_t lines_room
    cdef uint32_t line
    # what the line has besides known pairs
    cdef dict unknown             # name -> value where the space does not know the name, or the string value
    cdef object target            # the field to take out, None for none
    cdef const char* wanted       # its spelling, NULL when that needs escapes
    cdef Py_ssize_t n_wanted
    cdef object taken             # its value, None without one
    # the pair at hand
    cdef object name              # only where the slot is not known
    cdef int32_t slot             # -1 unknown, 0 the target
    cdef object scalar

    cdef bint tokenize(self, object data, object target) except -1
    cdef int begin_line(self, object target) except -1
    cdef bint read_object(self, const char* p, const char* end) except -1
    cdef const char* read_pair(self, const char* p, const char* end) except? NULL
    cdef const char* read_name(self, const char* p, const char* end) except? NULL
    cdef const char* read_new_name(self, const char* p, const char* q, bint escaped) except? NULL
    cdef const char* read_known(self, const char* p, const char* end) except? NULL
    cdef const char* read_scalar(self, const char* p, const char* end) except? NULL
    cdef list gather_unknown(self)
    cdef object loaded(self, object data, object target)
