from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold._engine.state cimport State

cdef class Members:
    cdef State records                # one entry per member, oldest first
    cdef State entries                # one entry per member and feature, member after member
    cdef readonly Py_ssize_t most     # maximum number of members
    cdef readonly Py_ssize_t span     # predictions over which accuracy is measured
    cdef readonly Py_ssize_t n        # number of members
    cdef readonly Py_ssize_t used     # number of entries
    # by member
    cdef int32_t* size                # number of features
    cdef int64_t* age                 # instances learned
    cdef int32_t* marks               # consecutive judgements below the threshold
    cdef uint8_t* right               # [member][span]: ring of flags, whether its last predictions were correct
    cdef int32_t* rights              # number of ones in that ring
    cdef double* counts               # [member][class]: weight learned
    # by entry
    cdef int32_t* slot                # slot of the feature, ascending within a member
    cdef double* present              # [entry][class]: weight of the class's instances that had the feature

    cdef int reserve(self, Py_ssize_t features) except -1
    cdef int reserve_classes(self, Py_ssize_t classes) except -1
    cdef double accuracy(self, Py_ssize_t j) noexcept nogil
    cdef void judge(self, Py_ssize_t j, bint right) noexcept nogil
    cdef void absorb(self, const uint8_t* here, int y, double w) noexcept nogil
    cdef void add(self, const int32_t* slots, Py_ssize_t size, const uint8_t* here, int y, double w) noexcept nogil
    cdef void remove(self, Py_ssize_t j) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
