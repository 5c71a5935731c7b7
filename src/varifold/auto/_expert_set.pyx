"""Experts of a mixture: their models, what each sees of an instance, and their exponential weights.

`ClassificationMixture` and `RegressionMixture` hold one. It makes the models of a table (see `experts.Expert`), which
are the components of the mixture, and keeps the weights of the experts and, last, of the stacks that combine them.
"""

import numpy as np

from libc.math cimport log

from varifold._engine.models.model cimport Components
from varifold._engine.state cimport State
from varifold._engine.view cimport View
from varifold._numeric.hedge cimport (
    FIXED as FIXED_RATE, experts_dump, experts_fill, experts_free, experts_make, experts_size, experts_weights,
)
from varifold.auto._history cimport WeightHistory
from varifold.auto._views cimport as_columns, views_free, views_reserve

from varifold._engine.state import checked_array, fixed

SEES = ("everything", "columns", "bounded")    # the names of Sees


cdef class ExpertSet:
    """Models of these experts, with exponential weights of this rate.

    `share` is the part of all weight that is redistributed evenly after each instance (fixed share), `trust` the weight
    of a stack at the start, as a multiple of an expert's.
    """

    def __cinit__(self, experts, double rate, double share, double trust, int stacks):
        cdef int e
        self.names = [expert.name for expert in experts]
        self.components = Components()
        for e, expert in enumerate(experts):
            self.components.add(f"{e}.", expert.model())
        self.models = self.components.models
        self.count = self.components.count
        self.stacks = stacks
        self.history = WeightHistory(self.count + stacks)
        self.arrays = State()
        self.arrays.declare("disabled", &self.disabled, fixed(self.count, low=0, high=1))
        self.arrays.scratch(&self.sees, fixed(self.count))
        self.arrays.scratch(&self.max_columns, fixed(self.count))
        self.arrays.scratch(&self.portion, fixed(self.count + stacks))
        self.components.disabled = self.disabled
        if experts_make(&self.weights, self.count + stacks, FIXED_RATE, rate, share) < 0:
            raise MemoryError
        for e, expert in enumerate(experts):
            self.sees[e] = SEES.index(expert.sees)
            self.max_columns[e] = expert.max_columns or 0
            self.weights.held[e] = -log(trust)

    def __dealloc__(self):
        experts_free(&self.weights)
        views_free(&self.views)

    cdef int reserve_views(self, Py_ssize_t capacity) except -1:
        """Reserve memory for instances over this many slots."""
        if views_reserve(&self.views, capacity + 1) < 0:
            raise MemoryError
        return 0

    cdef View* columns_of(self, View* v) noexcept nogil:
        """Return the instance as experts see it that see columns only."""
        return as_columns(&self.views, v)

    cdef void update_portions(self) noexcept nogil:
        experts_weights(&self.weights, self.portion)

    def dump(self):
        """Return what is known about the experts as arrays; the mixture dumps their models."""
        cdef double[::1] weights = np.zeros(experts_size(&self.weights))
        experts_dump(&self.weights, &weights[0])
        return {**self.arrays.dump(0, 0), "weights": np.asarray(weights), **self.history.dump()}

    def fill(self, dict arrays):
        """Restore what dump() returned."""
        cdef double[::1] weights = checked_array(arrays, "weights", "f", (None,))
        if weights.shape[0] != experts_size(&self.weights):
            raise ValueError(f"the arrays belong to other experts than {', '.join(self.names)}")
        self.arrays.fill(arrays, -1, 0, 0)
        experts_fill(&self.weights, &weights[0])
        self.history.fill(arrays)
