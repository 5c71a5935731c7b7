from cpython.pythread cimport PyThread_get_thread_ident


cdef class Guard:
    cdef bint busy                # inside a call
    cdef unsigned long holder     # the thread inside a `with`, 0 when there is none
    cdef int depth                # how many `with` of it

    cdef int refuse(self) except -1


cdef inline int claim(Guard guard) except -1:
    """Begin a call; another one at the same time is refused. End it with release()."""
    if guard.busy or (guard.holder != 0 and guard.holder != <unsigned long> PyThread_get_thread_ident()):
        guard.refuse()
    guard.busy = True
    return 0


cdef inline void release(Guard guard) noexcept:
    guard.busy = False
