"""One call at a time: a second one is refused with an error instead of reading memory that is being changed.

The interpreter lock makes the test and the claim one step; the loops over blocks give the lock away and keep the claim.
"""

from cpython.pythread cimport PyThread_get_thread_ident

from varifold.errors import BusyLearnerError


cdef class Guard:
    """Base of whatever a second thread, or a value's own code, must not enter while it is in use.

    ``with guard:`` keeps other threads out over several calls of the same thread.
    """

    cdef int refuse(self) except -1:
        raise BusyLearnerError(
            "the learner is in use: a call on it, from another thread or from the code of a value it reads, has not "
            "returned yet; use it from one thread at a time, or give each thread a copy (copy.deepcopy)"
        )

    def __enter__(self):
        cdef unsigned long here = <unsigned long> PyThread_get_thread_ident()
        if self.busy or (self.holder != 0 and self.holder != here):
            self.refuse()
        self.holder = here
        self.depth += 1
        return self

    def __exit__(self, *_):
        self.depth -= 1
        if self.depth == 0:
            self.holder = 0
