"""A model and copies of it: one on trial after each warning, and a few of the past.

ADWIN watches the errors of the copy that answers. When they rise, a trial begins: a new copy learns beside it, and the
copies of the past are asked again. The first of them that is right significantly more often takes over (a sign test on
the instances on which only one of the two is right); the copy that answered is kept. A new copy that does not win is
given up. Without a warning there is one copy, and nothing of this costs anything but the detector.
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from varifold._engine.model cimport Model, model_calls
from varifold._engine.space cimport Space
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax
from varifold._numeric.adwin cimport adwin_dump, adwin_fill, adwin_mean, adwin_start, adwin_update

from varifold._engine.state import checked_array, per_class

cdef double WARNING = 0.5          # confidence of the detector: a false warning costs a trial
cdef int64_t CLOCK = 4             # instances between two tests
cdef double SIGNIFICANT = 1.5      # standard deviations by which a copy must lead,
cdef double CLEAR = 1.0            # and answers beyond that
cdef double LOWEST = -2.0          # a lead below this begins again from 0
cdef int64_t SHORT = 300           # instances after which a copy on trial that does not lead is given up,
cdef int64_t LONGEST = 2000        # or any

STEPS = ("step", "since", "revived", "instances")    # the fields of Change, as they are saved
ERRORS = ("before", "error", "successor")


cdef void call_learn_scored(Model m, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
    m.learn_scored(v, y, w, scores, probs)


cdef void set_answer(RenewedModel m, int c) noexcept nogil:
    """Tell the class that the model has just answered for the instance it learns next, so that it need not ask again."""
    m.answered = c


cdef int64_t changed_at(RenewedModel m) noexcept nogil:
    """The step at which the model was replaced last; -1 for never."""
    return m.changed


cdef class RenewedModel(Model):
    """`make()` gives a new model; all of its kind must be equal."""

    def __cinit__(self, make):
        self.make = make
        self.copies = [make(), *[None] * (COPIES - 1)]
        self.inner[0] = <void*> self.copies[0]
        self.purpose[0] = ANSWERS
        self.calls = model_calls()
        self.learn_scored_of = <learn_scored_call> call_learn_scored
        self.sees_empty = self.copies[0].sees_empty
        self.wants_columns = self.copies[0].wants_columns
        self.prepares = True
        self.answered = -1
        self.spare = -1
        self.since = -1
        self.changed = -1
        self.arrays.scratch(&self.score, per_class())
        adwin_start(&self.errors, WARNING, CLOCK, 5, 10)

    # ---------------------------------------------------------------- memory

    cdef int attach(self, Space space) except -1:
        for model in self.copies:
            if model is not None:
                (<Model> model).attach(space)
        return Model.attach(self, space)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        for model in self.copies:
            if model is not None:
                (<Model> model).grow(capacity)
        return Model.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        for model in self.copies:
            if model is not None:
                (<Model> model).reserve_class()
        return Model.reserve_class(self)

    cdef int add_class(self) except -1:
        for model in self.copies:
            if model is not None:
                (<Model> model).add_class()
        return Model.add_class(self)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Room for learning; a new copy is made here, as learn() takes no memory."""
        cdef int i
        if self.discarded or (self.wanted and self.spare < 0):
            with gil:
                self.release_unused()
                if self.wanted and self.spare < 0:
                    self.make_spare()
        for i in range(COPIES):
            if self.purpose[i] == ANSWERS or self.purpose[i] == TRIAL or i == self.spare:
                self.calls.prepare(self.inner[i], slots, n, n_new, y)
        return 0

    cdef int release_unused(self) except -1:
        """Give the memory of copies back that are no longer used."""
        cdef int i
        for i in range(COPIES):
            if self.purpose[i] == UNUSED and i != self.spare:
                self.inner[i] = NULL
                self.copies[i] = None
        self.discarded = False
        return 0

    cdef void discard(self, int i) noexcept nogil:
        """Use a copy no longer; prepare() gives its memory back."""
        self.purpose[i] = UNUSED
        self.discarded = True

    cdef int free_copy(self) noexcept nogil:
        """A place for a new copy: there is always one."""
        cdef int i = 0
        while self.purpose[i] != UNUSED:
            i += 1
        return i

    cdef int make_spare(self) except -1:
        """A new copy that knows the classes and nothing else; learn() puts it on trial."""
        cdef int c, i = self.free_copy()
        cdef Model model = self.make()
        model.attach(self.space)
        for c in range(self.classes):
            model.reserve_class()
            model.add_class()
        model.reserve_class()  # the instance at hand may bring a label, for which the others have room already
        self.copies[i] = model
        self.inner[i] = <void*> model
        self.spare = i
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int i
        for i in range(COPIES):
            if self.inner[i] != NULL:
                self.calls.forget(self.inner[i], slot)

    # ---------------------------------------------------------------- answering

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.calls.scores(self.inner[self.active], v, out)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        self.calls.proba(self.inner[self.active], scores, out)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.calls.magnitude(self.inner[self.active], slot)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        self.calls.contributions(self.inner[self.active], v, label, out)

    cdef dict absent_contributions(self, View* v, int label):
        return (<Model> self.copies[self.active]).absent_contributions(v, label)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef bint wrong = self.answered != y
        if self.answered < 0:
            wrong = self.teach(self.active, v, y, w)
        else:
            self.calls.learn(self.inner[self.active], v, y, w)
        self.answered = -1
        if self.classes < 2:
            return
        self.watch(wrong, v.step)
        if self.since >= 0:
            self.compare(v, y, w, wrong)

    cdef bint teach(self, int i, View* v, int y, double w) noexcept nogil:
        """Let a copy learn; whether its answer before that was wrong."""
        self.learn_scored_of(self.inner[i], v, y, w, self.score, NULL)
        return argmax(self.classes, self.score) != y

    cdef void watch(self, bint wrong, int64_t step) noexcept nogil:
        """Count an error; when errors become more frequent a trial begins, or a new copy takes the place of one that lags."""
        cdef double before = adwin_mean(&self.errors)
        cdef int i
        if not adwin_update(&self.errors, wrong) or adwin_mean(&self.errors) <= before:
            return
        i = self.trial_copy()
        if i >= 0 and self.record[i].lead > 0.0:
            return
        if i >= 0:
            self.discard(i)
        self.begin_trial(before, step)

    cdef int trial_copy(self) noexcept nogil:
        """The copy on trial, -1 for none."""
        cdef int i
        for i in range(COPIES):
            if self.purpose[i] == TRIAL:
                return i
        return -1

    cdef void begin_trial(self, double before, int64_t step) noexcept nogil:
        self.since = step
        self.before = before
        self.compared = 0
        self.wanted = True
        memset(self.record, 0, sizeof(self.record))

    cdef void compare(self, View* v, int y, double w, bint wrong) noexcept nogil:
        """Ask the copies of the past, let the one on trial learn, and see whether one of them should take over."""
        cdef int i
        if self.spare >= 0:
            self.purpose[self.spare] = TRIAL
            self.spare = -1
            self.wanted = False
        self.compared += 1
        self.record[self.active].wrong += wrong
        for i in range(COPIES):
            if self.purpose[i] == TRIAL:
                self.count(i, self.teach(i, v, y, w), wrong)
            elif self.purpose[i] == KEPT:
                self.calls.scores(self.inner[i], v, self.score)
                self.count(i, argmax(self.classes, self.score) != y, wrong)
        i = self.winner()
        if i >= 0:
            self.replace(i, v.step)
            return
        i = self.trial_copy()
        if self.compared >= LONGEST or (self.compared >= SHORT and (i < 0 or self.record[i].lead <= 0.0)):
            self.end_trial()

    cdef void count(self, int i, bint wrong, bint other) noexcept nogil:
        """Count an answer of a copy beside that of the one that answers."""
        cdef Score* r = &self.record[i]
        r.wrong += wrong
        r.apart += wrong != other
        r.lead += <int> other - <int> wrong
        if r.lead < LOWEST:
            r.lead = r.apart = 0.0

    cdef int winner(self) noexcept nogil:
        """The copy with the largest lead if that is significant, -1 for none."""
        cdef int i, best = -1
        cdef Score* r
        for i in range(COPIES):
            r = &self.record[i]
            if (self.purpose[i] == TRIAL or self.purpose[i] == KEPT) and r.lead > SIGNIFICANT * sqrt(r.apart) + CLEAR:
                if best < 0 or r.lead > self.record[best].lead:
                    best = i
        return best

    cdef void replace(self, int i, int64_t step) noexcept nogil:
        """Let a copy answer from now on; the one that answered is kept."""
        cdef Change* c = &self.change[self.changes % MOST_CHANGES]
        c.step = step + 1
        c.since = self.since + 1
        c.revived = self.purpose[i] == KEPT
        c.instances = self.compared
        c.before = self.before
        c.error = self.record[self.active].wrong / self.compared
        c.successor = self.record[i].wrong / self.compared
        self.changes += 1
        self.changed = step
        self.purpose[i] = ANSWERS
        self.end_trial()
        self.keep(self.active, step)
        self.active = i
        adwin_start(&self.errors, WARNING, CLOCK, 5, 10)

    cdef void keep(self, int i, int64_t step) noexcept nogil:
        """Keep a copy that answered; of too many the one that answered longest ago goes."""
        cdef int j, kept = 0, oldest = i
        self.purpose[i] = KEPT
        self.last[i] = step
        for j in range(COPIES):
            if self.purpose[j] == KEPT:
                kept += 1
                if self.last[j] < self.last[oldest]:
                    oldest = j
        if kept > MOST_KEPT:
            self.discard(oldest)

    cdef void end_trial(self) noexcept nogil:
        """Give the copy on trial up, if there still is one."""
        cdef int i = self.trial_copy()
        if i >= 0:
            self.discard(i)
        self.since = -1
        self.wanted = False

    # ---------------------------------------------------------------- looking inside

    def change_records(self):
        """The latest changes as dicts with the fields of `Change`, the oldest first."""
        cdef int64_t i, held = min(self.changes, <int64_t> MOST_CHANGES)
        return [self.change[i % MOST_CHANGES] for i in range(self.changes - held, self.changes)]

    def copies_kept(self):
        """How many copies of the past are kept."""
        cdef int i
        return sum(self.purpose[i] == KEPT for i in range(COPIES))

    def calls_python(self):
        return self.copies[self.active].calls_python()

    def pending_error(self):
        return self.copies[self.active].pending_error()

    def notes(self):
        return self.copies[self.active].notes()

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef int i
        counters = [self.active, self.since, self.compared, self.wanted, self.changes, self.changed]
        record = [[self.record[i].lead, self.record[i].apart, self.record[i].wrong] for i in range(COPIES)]
        changes = self.change_records()
        arrays = {
            **Model.dump(self, size),
            "role": np.array([self.purpose[i] for i in range(COPIES)], dtype=np.int64),
            "last_active": np.array([self.last[i] for i in range(COPIES)], dtype=np.int64),
            "trial.scores": np.array(record),
            "trial.counters": np.array(counters, dtype=np.int64),
            "trial.error_before": np.array([self.before]),
            "detector": adwin_dump(&self.errors),
            "changes.steps": np.array([[c[name] for name in STEPS] for c in changes], dtype=np.int64).reshape(-1, 4),
            "changes.errors": np.array([[c[name] for name in ERRORS] for c in changes]).reshape(-1, 3),
        }
        for i in range(COPIES):
            if self.purpose[i] != UNUSED:
                arrays.update({f"{i}.{key}": array for key, array in self.copies[i].dump(size).items()})
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int i
        Model.fill(self, arrays, capacity)
        purpose = checked_array(arrays, "role", "i", (COPIES,), UNUSED, KEPT).tolist()
        self.fill_trial(arrays, purpose)
        for i in range(COPIES):
            self.purpose[i] = purpose[i]
            self.copies[i] = None
            self.inner[i] = NULL
            if purpose[i] != UNUSED:
                self.copies[i] = self.make()
                self.inner[i] = <void*> self.copies[i]
                (<Model> self.copies[i]).attach(self.space)
                prefix = f"{i}."
                self.copies[i].fill({key[len(prefix):]: a for key, a in arrays.items() if key.startswith(prefix)},
                                    capacity)
                if self.copies[i].classes != self.classes:
                    raise ValueError(f"copy {i} knows {self.copies[i].classes} labels of {self.classes}")

    def fill_trial(self, dict arrays, list purpose):
        """Take the counts of the trial, the detector and the records."""
        cdef int i
        counters = checked_array(arrays, "trial.counters", "i", (6,), -1, 1 << 53).tolist()
        self.active, self.since, self.compared, self.wanted, self.changes, self.changed = counters
        if (not 0 <= self.active < COPIES or purpose[self.active] != ANSWERS or purpose.count(ANSWERS) != 1
                or purpose.count(TRIAL) > 1 or purpose.count(KEPT) > MOST_KEPT or min(counters[2:5]) < 0):
            raise ValueError(f"copies with the purposes {purpose}, of which {self.active} answers")
        self.before = checked_array(arrays, "trial.error_before", "f", (1,), 0, 1)[0]
        record = checked_array(arrays, "trial.scores", "f", (COPIES, 3)).tolist()
        last = checked_array(arrays, "last_active", "i", (COPIES,), 0, 1 << 53).tolist()
        for i in range(COPIES):
            self.record[i].lead, self.record[i].apart, self.record[i].wrong = record[i]
            self.last[i] = last[i]
        adwin_fill(&self.errors, checked_array(arrays, "detector", "f", (None,)))
        self.fill_changes(arrays)

    def fill_changes(self, dict arrays):
        """Take the records of changes."""
        cdef int64_t i, at, held = min(self.changes, <int64_t> MOST_CHANGES)
        steps = checked_array(arrays, "changes.steps", "i", (held, 4), 0, 1 << 53).tolist()
        errors = checked_array(arrays, "changes.errors", "f", (held, 3), 0).tolist()
        for i in range(held):
            at = (self.changes - held + i) % MOST_CHANGES
            self.change[at] = {**dict(zip(STEPS, steps[i])), **dict(zip(ERRORS, errors[i]))}

    def nbytes(self):
        return Model.nbytes(self) + sum(model.nbytes() for model in self.copies if model is not None)
