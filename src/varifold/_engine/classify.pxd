from varifold._engine.answers cimport Answers
from varifold._engine.block cimport Block


cdef class Engine(Answers):
    cdef int learn(self, object x, object y, double w) except -1
    cdef int ask(self, object x, bint probabilities) except -2
    cdef tuple explain(self, object x, int c)
    cdef int ready_row(self, int c, Py_ssize_t unknown) except -1 nogil
    cdef tuple walk(self, Block block, schedule, bint planned, bint learn, bint predict, bint probabilities)
