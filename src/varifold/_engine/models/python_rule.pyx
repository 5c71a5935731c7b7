"""Learners written in Python as models: each instance is passed to them as a dict.

`PythonModel` holds a river classifier inside another learner, `RuleModel` the methods of a `varifold.PythonRule`.
"""

import inspect
import json

import numpy as np

from libc.math cimport isfinite, log
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport FREE
from varifold._engine.view cimport View

from varifold._engine.state import checked_array
from varifold.errors import DataError

INTERCEPT = "(intercept)"


cdef class PythonCaller(Model):
    """Stores what the Python code raises, KeyboardInterrupt too, until the engine raises it at the end of the row.

    The compiled loop cannot raise an exception inside a model. After the first one the Python code is not called any
    more until the engine has raised it, so a block stops at that row.
    """

    cdef object failed               # what the Python code raised, until pending_error() returns it

    cdef void keep(self, object error, str call, View* v) noexcept:
        """Keep an exception, and note in it which call raised it and when."""
        error.add_note(f"raised in {call} at step {v.step + 1:,}" if v != NULL else f"raised in {call}")
        self.failed = error

    cdef void call_scores(self, View* v, double* out) noexcept with gil:
        """Call the Python code for scores()."""
        pass

    cdef void call_learn(self, View* v, int y, double w) noexcept with gil:
        """Call the Python code for learn()."""
        pass

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.call_scores(v, out)

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        self.call_learn(v, y, w)

    def calls_python(self):
        return True

    def pending_error(self):
        error, self.failed = self.failed, None
        return error


cdef class PythonModel(PythonCaller):
    """A river classifier, whose labels are class indices; scores are logarithms of its probabilities.

    Its state is a Python object, which dump() leaves out; whoever copies the learner copies it.
    """

    cdef readonly object learner     # a river classifier; its labels are class indices
    cdef bint takes_weight

    def __cinit__(self, learner):
        self.replace(learner)

    def replace(self, learner):
        """Continue with this classifier and its state."""
        self.learner = learner
        self.takes_weight = "w" in inspect.signature(learner.learn_one).parameters

    cdef dict instance(self, View* v):
        """Return the unscaled values by name; a string value is its indicator, which every classifier accepts."""
        cdef Py_ssize_t i
        return {<object> self.space.key[v.slot[i]]: v.raw[i] for i in range(v.n) if v.slot[i] != 0}

    cdef void call_scores(self, View* v, double* out) noexcept with gil:
        cdef int c
        memset(out, 0, self.classes * sizeof(double))
        if self.failed is not None:
            return
        try:
            found = self.learner.predict_proba_one(self.instance(v))
            for c in range(self.classes):
                out[c] = log(max(float(found.get(c, 0.0)), 1e-12))
        except BaseException as error:
            self.keep(error, f"{type(self.learner).__name__}.predict_proba_one()", v)

    cdef void call_learn(self, View* v, int y, double w) noexcept with gil:
        if self.failed is not None:
            return
        try:
            if w == 1.0:
                self.learner.learn_one(self.instance(v), y)
            elif self.takes_weight:
                self.learner.learn_one(self.instance(v), y, w=w)
            else:
                raise DataError(f"{type(self.learner).__name__} takes no sample weights; leave them out")
        except BaseException as error:
            self.keep(error, f"{type(self.learner).__name__}.learn_one()", v)


cdef class RuleModel(PythonCaller):
    """Methods of a PythonRule, which see names, scaled values and labels; the engine does the rest.

    The rule is its own learner: its state is attributes of it, which pickles and copies include. Only a rule that
    defines dump() and fill() has arrays here.
    """

    cdef object rule                 # a varifold.PythonRule

    def __cinit__(self, rule):
        self.rule = rule

    cdef dict instance(self, View* v):
        """Return scaled values by name, in the order of slots; the intercept first, if there is one."""
        cdef Py_ssize_t i
        return {INTERCEPT if v.slot[i] == 0 else <object> self.space.key[v.slot[i]]: v.x[i] for i in range(v.n)}

    # ---------------------------------------------------------------- calls into Python

    cdef void call_scores(self, View* v, double* out) noexcept with gil:
        cdef int c
        memset(out, 0, self.classes * sizeof(double))
        if self.failed is not None:
            return
        try:
            found = self.rule.scores(self.instance(v))
            labels = self.rule._engine.target.labels
            for c in range(self.classes):
                label = labels[c]
                out[c] = found.get(label, 0.0)
                if not isfinite(out[c]):
                    raise DataError(f"{type(self.rule).__name__}.scores() gave {out[c]} for the label {label!r}; "
                                    "scores must be finite")
        except BaseException as error:
            self.keep(error, f"{type(self.rule).__name__}.scores()", v)
            memset(out, 0, self.classes * sizeof(double))

    cdef void call_learn(self, View* v, int y, double w) noexcept with gil:
        if self.failed is not None:
            return
        try:
            self.rule.learn(self.instance(v), self.rule._engine.target.labels[y], w)
        except BaseException as error:
            self.keep(error, f"{type(self.rule).__name__}.learn()", v)

    cdef void call_forget(self, int32_t slot) noexcept with gil:
        if self.failed is not None or self.space.kind[slot] == FREE or self.space.key[slot] == NULL:
            return
        try:
            self.rule.forget(<object> self.space.key[slot])
        except BaseException as error:
            self.keep(error, f"{type(self.rule).__name__}.forget()", NULL)

    cdef double call_weight(self, int32_t slot) noexcept with gil:
        if self.failed is not None or slot == 0 or self.space.key[slot] == NULL:
            return 0.0
        try:
            return self.rule.weight(<object> self.space.key[slot])
        except BaseException as error:
            self.keep(error, f"{type(self.rule).__name__}.weight()", NULL)
            return 0.0

    cdef void call_explain(self, View* v, int label, double* out) noexcept with gil:
        cdef Py_ssize_t i
        memset(out, 0, v.n * sizeof(double))
        if self.failed is not None:
            return
        try:
            names = [INTERCEPT if v.slot[i] == 0 else <object> self.space.key[v.slot[i]] for i in range(v.n)]
            found = self.rule.explain(self.instance(v), self.rule._engine.target.labels[label])
            for i in range(v.n):
                out[i] = found.get(names[i], 0.0)
        except BaseException as error:
            self.keep(error, f"{type(self.rule).__name__}.explain()", v)

    # ---------------------------------------------------------------- called by the engine

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.call_forget(slot)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.call_weight(slot)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        self.call_explain(v, label, out)

    cdef dict absent_contributions(self, View* v, int label):
        """Return, as the intercept, the part of the score that explain() does not name."""
        cdef Py_ssize_t i
        cdef double[::1] parts = np.zeros(max(1, v.n))
        cdef double[::1] scores = np.zeros(self.classes)
        self.call_scores(v, &scores[0])
        self.call_explain(v, label, &parts[0])
        return {INTERCEPT: scores[label] - sum(parts[i] for i in range(v.n))}

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        arrays = Model.dump(self, size)
        if self.rule._saves():
            own, data = self.rule.dump()
            text = json.dumps(data, sort_keys=True, allow_nan=False).encode()
            arrays["json"] = np.frombuffer(text, dtype=np.uint8)
            for name, array in own.items():
                arrays["rule." + name] = np.ascontiguousarray(array)
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        Model.fill(self, arrays, capacity)
        if self.rule._saves():
            text = checked_array(arrays, "json", "i", (None,), 0, 255).tobytes()
            self.rule.fill({name[5:]: a for name, a in arrays.items() if name.startswith("rule.")}, json.loads(text))
