from varifold._engine.answers cimport Answers


cdef class InstanceDoors(Answers):
    cdef object new_label         # of the instance that is being learned

    cdef int class_of(self, object y, double w) except -2
    cdef int learn_gathered(self, list pending, int c, double w) except -1
    cdef int learn(self, object x, object y, double w) except -1
    cdef int ask(self, object x, bint probabilities) except -2
    cdef int ask_gathered(self, bint probabilities) except -2
    cdef int ask_json(self, object data, object target, bint probabilities) except -2
    cdef int walk_json(self, object data, object y, double w, object target, bint predict) except -2
    cdef bint one_pass(self, double w)
    cdef int learn_scored(self, int c) except -2
    cdef tuple explain(self, object x, int c)
