"""A river classifier as a model: each instance goes to it as a dict, so the interpreter stands between instances."""

import inspect

from libc.math cimport log

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

from varifold.errors import DataError


cdef class ForeignModel(Model):
    """Scores are logarithms of the classifier's probabilities.

    What the classifier raises is kept and told by pending_error(): the compiled loop cannot pass it on. Its state is a Python
    object of its own, which dump() leaves out; whoever copies the learner copies it.
    """

    def __cinit__(self, learner):
        self.learner = learner

    cdef dict instance(self, View* v):
        """By name and as given; a string value is its indicator, which every classifier can take."""
        cdef Py_ssize_t i
        return {<object> self.space.key[v.slot[i]]: v.raw[i] for i in range(v.n) if v.slot[i] != 0}

    cdef void ask(self, View* v, double* out) noexcept with gil:
        cdef int c
        for c in range(self.classes):
            out[c] = 0.0
        if self.failed is not None:
            return
        try:
            found = self.learner.predict_proba_one(self.instance(v))
            for c in range(self.classes):
                out[c] = log(max(float(found.get(c, 0.0)), 1e-12))
        except Exception as error:
            self.failed = error

    cdef void teach(self, View* v, int y, double w) noexcept with gil:
        if self.failed is not None:
            return
        try:
            if w == 1.0:
                self.learner.learn_one(self.instance(v), y)
            elif "w" in inspect.signature(self.learner.learn_one).parameters:
                self.learner.learn_one(self.instance(v), y, w=w)
            else:
                raise DataError(f"{type(self.learner).__name__} takes no sample weights; leave them out")
        except Exception as error:
            self.failed = error

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.ask(v, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.teach(v, y, w)

    def calls_python(self):
        return True

    def pending_error(self):
        error, self.failed = self.failed, None
        return error

    def replace(self, learner):
        """Go on with this classifier's state."""
        self.learner = learner
