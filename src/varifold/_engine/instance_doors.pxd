from varifold._engine.answers cimport Answers


cdef class InstanceDoors(Answers):
    cdef object new_label         # of the instance that is being learned

    cdef int class_of(self, object y, double w) except -2
    cdef int learn_gathered(self, list pending, int c, double w) except -1
    cdef int learn(self, object x, object y, double w) except -1
    cdef int ask(self, object x, bint probabilities) except -2
    cdef int ask_gathered(self, bint probabilities) except -2
    cdef tuple explain(self, object x, int c)
