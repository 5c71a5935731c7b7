"""A model that restarts after drift: it is replaced by a new copy, or by an earlier one, that predicts better.

ADWIN watches the errors of the active copy. When they rise, a trial begins: a new copy learns from then on, and the
copies that were active before are evaluated again. The first copy that is right significantly more often (a sign test
on the instances on which only one of the two is right) becomes the active one, and the old one is kept for concepts
that recur. A new copy that does not win is dropped. Outside of trials there is one copy, and the detector is the
only cost.
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax
from varifold._numeric.adwin cimport adwin_dump, adwin_fill, adwin_mean, adwin_start, adwin_update

from varifold._engine.state import checked_array, fixed, per_class

cdef double CONFIDENCE = 0.5       # delta of ADWIN: a false alarm costs no more than a trial
cdef int64_t CLOCK = 4             # instances between two tests of ADWIN
cdef double DEVIATIONS = 1.5       # a copy wins if it leads by this many standard deviations
cdef double CLEAR = 1.0            # and by this many instances more
cdef double LOWEST = -2.0          # a lead below this starts again from 0
cdef int64_t SHORT = 300           # instances after which a trial ends if the new copy does not lead,
cdef int64_t LONGEST = 2000        # and after which it ends anyway

STEPS = ("step", "since", "revived", "instances")    # the fields of Record, as they are saved
ERRORS = ("before", "error", "successor")


cdef void set_prediction(RestartingModel m, int c) noexcept nogil:
    """Pass the class that the model has just predicted for the instance it learns next, to save predicting again."""
    m.predicted = c


cdef int64_t restarted_at(RestartingModel m) noexcept nogil:
    """Return the step of the latest replacement, -1 for none."""
    return m.trial.last


cdef class RestartingModel(Model):
    """Copies of the model that `make()` creates; all new ones must be equal."""

    def __cinit__(self, make):
        self.make = make
        self.hold("0.", make())
        for i in range(1, COPIES):
            self.components.add(f"{i}.", None)
        self.copies = self.components.models
        self.sees_empty = self.copies[0].sees_empty
        self.wants_columns = self.copies[0].wants_columns
        self.prepares = True
        self.learns_unlabelled = self.copies[0].learns_unlabelled
        self.arrays.declare("role", &self.role, fixed(COPIES, low=UNUSED, high=KEPT))
        self.arrays.declare("last_active", &self.last_active, fixed(COPIES, low=0, high=1 << 53))
        self.arrays.declare("trial.scores", <double**> &self.score, fixed(COPIES, width=3))
        self.arrays.declare("trial.counters", <int64_t**> &self.trial, fixed(6, low=-1, high=1 << 53))
        self.arrays.declare("trial.error_before", &self.error_before, fixed(1, low=0, high=1))
        self.arrays.scratch(&self.class_score, per_class())
        self.role[0] = ACTIVE
        self.trial.since = self.trial.last = -1
        self.predicted = self.spare = -1
        adwin_start(&self.errors, CONFIDENCE, CLOCK, 5, 10)

    # ---------------------------------------------------------------- memory

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Prepare the copies that learn; make the new copy of a trial, as learn() allocates nothing."""
        cdef int i
        if self.discarded or (self.trial.wanted and self.spare < 0):
            with gil:
                self.release_unused()
                if self.trial.wanted and self.spare < 0:
                    self.make_spare()
        for i in range(COPIES):
            if self.role[i] == ACTIVE or self.role[i] == TRIAL or i == self.spare:
                self.components.prepare_component(i, slots, n, n_new, y)
        return 0

    cdef int release_unused(self) except -1:
        """Release copies that are no longer used."""
        cdef int i
        for i in range(COPIES):
            if self.role[i] == UNUSED and i != self.spare:
                self.components.put(i, None)
        self.discarded = False
        return 0

    cdef void discard(self, int i) noexcept nogil:
        """Mark a copy as unused; prepare() releases it."""
        self.role[i] = UNUSED
        self.discarded = True

    cdef int unused_copy(self) noexcept nogil:
        """Return a free position for a new copy; there always is one."""
        cdef int i = 0
        while self.role[i] != UNUSED:
            i += 1
        return i

    cdef int make_spare(self) except -1:
        """Make a copy that knows the classes and nothing else; learn() puts it on trial."""
        cdef int c, i = self.unused_copy()
        cdef Model model = self.make()
        model.attach(self.space)
        for c in range(self.classes):
            model.reserve_class()
            model.add_class()
        model.reserve_class()    # the instance at hand may have a new label, for which the others have reserved already
        self.components.put(i, model)
        self.spare = i
        return 0

    # ---------------------------------------------------------------- predicting: the active copy

    cdef void scores(self, View* v, double* out) noexcept nogil:
        self.components.scores(self.trial.active, v, out)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        self.components.proba(self.trial.active, scores, out)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.components.magnitude(self.trial.active, slot)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        self.components.contributions(self.trial.active, v, label, out)

    cdef dict absent_contributions(self, View* v, int label):
        return (<Model> self.copies[self.trial.active]).absent_contributions(v, label)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef bint wrong = self.predicted != y
        if self.predicted < 0:
            wrong = self.learn_copy(<int> self.trial.active, v, y, w)
        else:
            self.components.learn(self.trial.active, v, y, w)
        self.predicted = -1
        if self.classes < 2:
            return
        self.detect(wrong, v.step)
        if self.trial.since >= 0:
            self.compare(v, y, w, wrong)

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Let the active copy and one on trial learn."""
        cdef int i
        for i in range(COPIES):
            if self.role[i] == ACTIVE or self.role[i] == TRIAL:
                self.components.learn_unlabelled(i, v, w)

    cdef bint learn_copy(self, int i, View* v, int y, double w) noexcept nogil:
        """Let a copy learn; return whether it had predicted another label."""
        self.components.learn_scored(i, v, y, w, self.class_score, NULL)
        return argmax(self.classes, self.class_score) != y

    cdef void detect(self, bint wrong, int64_t step) noexcept nogil:
        """Count an error of the active copy; if errors rise begin a trial, or a new one if its copy is behind."""
        cdef double before = adwin_mean(&self.errors)
        cdef int i
        if not adwin_update(&self.errors, wrong) or adwin_mean(&self.errors) <= before:
            return
        i = self.copy_on_trial()
        if i >= 0 and self.score[i].lead > 0.0:
            return
        if i >= 0:
            self.discard(i)
        self.begin_trial(before, step)

    cdef int copy_on_trial(self) noexcept nogil:
        """Return the copy on trial, -1 for none."""
        cdef int i
        for i in range(COPIES):
            if self.role[i] == TRIAL:
                return i
        return -1

    cdef void begin_trial(self, double before, int64_t step) noexcept nogil:
        self.trial.since = step
        self.trial.compared = 0
        self.trial.wanted = True
        self.error_before[0] = before
        memset(self.score, 0, COPIES * sizeof(Score))

    cdef void compare(self, View* v, int y, double w, bint wrong) noexcept nogil:
        """Compare the copies on this instance; replace the active one if another wins, or end the trial."""
        cdef int i
        if self.spare >= 0:
            self.role[self.spare] = TRIAL
            self.spare = -1
            self.trial.wanted = False
        self.trial.compared += 1
        self.score[self.trial.active].wrong += wrong
        for i in range(COPIES):
            if self.role[i] == TRIAL:
                self.count(i, self.learn_copy(i, v, y, w), wrong)
            elif self.role[i] == KEPT:
                self.components.scores(i, v, self.class_score)
                self.count(i, argmax(self.classes, self.class_score) != y, wrong)
        i = self.winner()
        if i >= 0:
            self.replace(i, v.step)
            return
        i = self.copy_on_trial()
        if self.trial.compared >= LONGEST or (self.trial.compared >= SHORT and (i < 0 or self.score[i].lead <= 0.0)):
            self.end_trial()

    cdef void count(self, int i, bint wrong, bint active_wrong) noexcept nogil:
        """Count a prediction of a copy against that of the active one."""
        cdef Score* s = &self.score[i]
        s.wrong += wrong
        s.differing += wrong != active_wrong
        s.lead += <int> active_wrong - <int> wrong
        if s.lead < LOWEST:
            s.lead = s.differing = 0.0

    cdef int winner(self) noexcept nogil:
        """Return the copy with the largest significant lead, -1 for none; the lead of equals varies as their number."""
        cdef int i, best = -1
        cdef Score* s
        for i in range(COPIES):
            s = &self.score[i]
            if (self.role[i] == TRIAL or self.role[i] == KEPT) and s.lead > DEVIATIONS * sqrt(s.differing) + CLEAR:
                if best < 0 or s.lead > self.score[best].lead:
                    best = i
        return best

    cdef void replace(self, int i, int64_t step) noexcept nogil:
        """Make a copy the active one, keep the old one, and record it."""
        cdef Record* r = &self.record[self.trial.restarts % MOST_RECORDS]
        cdef int old = <int> self.trial.active
        r.step = step + 1
        r.since = self.trial.since + 1
        r.revived = self.role[i] == KEPT
        r.instances = self.trial.compared
        r.before = self.error_before[0]
        r.error = self.score[old].wrong / self.trial.compared
        r.successor = self.score[i].wrong / self.trial.compared
        self.trial.restarts += 1
        self.trial.last = step
        self.role[i] = ACTIVE
        self.end_trial()
        self.keep(old, step)
        self.trial.active = i
        adwin_start(&self.errors, CONFIDENCE, CLOCK, 5, 10)

    cdef void keep(self, int i, int64_t step) noexcept nogil:
        """Keep a copy that was active; of more than MOST_KEPT discard the one that was active longest ago."""
        cdef int j, kept = 0, oldest = i
        self.role[i] = KEPT
        self.last_active[i] = step
        for j in range(COPIES):
            if self.role[j] == KEPT:
                kept += 1
                if self.last_active[j] < self.last_active[oldest]:
                    oldest = j
        if kept > MOST_KEPT:
            self.discard(oldest)

    cdef void end_trial(self) noexcept nogil:
        """End the trial; discard its copy, unless that has won."""
        cdef int i = self.copy_on_trial()
        if i >= 0:
            self.discard(i)
        self.trial.since = -1
        self.trial.wanted = False

    # ---------------------------------------------------------------- looking inside

    @property
    def restarts(self):
        """Number of replacements so far."""
        return self.trial.restarts

    def restart_records(self):
        """Return the latest replacements as dicts with the fields of Record, the oldest first."""
        cdef int64_t i, n = self.trial.restarts, kept = min(n, <int64_t> MOST_RECORDS)
        return [self.record[i % MOST_RECORDS] for i in range(n - kept, n)]

    def notes(self):
        return self.copies[self.trial.active].notes()

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef int i
        records = self.restart_records()
        arrays = {
            "classes": np.array([self.classes], dtype=np.int64),
            **self.arrays.dump(size, self.classes),
            "detector": adwin_dump(&self.errors),
            "restarts.steps": np.array([[r[name] for name in STEPS] for r in records], dtype=np.int64).reshape(-1, 4),
            "restarts.errors": np.array([[r[name] for name in ERRORS] for r in records]).reshape(-1, 3),
        }
        for i in range(COPIES):
            if self.role[i] != UNUSED:
                arrays.update({f"{i}.{key}": array for key, array in self.copies[i].dump(size).items()})
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef int i
        cdef Model model
        self.classes = int(checked_array(arrays, "classes", "i", (1,), 0)[0])
        self.arrays.fill(arrays, -1, capacity, self.classes)
        self.check_roles()
        adwin_fill(&self.errors, checked_array(arrays, "detector", "f", (None,)))
        self.fill_records(arrays)
        for i in range(COPIES):
            self.components.put(i, None)
            if self.role[i] == UNUSED:
                continue
            model = self.make()
            self.components.put(i, model)
            model.attach(self.space)
            model.fill(self.components.saved(i, arrays), capacity)
            if model.classes != self.classes:
                raise ValueError(f"copy {i} knows {model.classes} labels of {self.classes}")
        self.grow(capacity)

    def check_roles(self):
        """Reject roles and counters that no sequence of trials can produce."""
        cdef int i
        cdef Trial* t = self.trial
        roles = [self.role[i] for i in range(COPIES)]
        if (not 0 <= t.active < COPIES or roles[t.active] != ACTIVE or roles.count(ACTIVE) != 1
                or roles.count(TRIAL) > 1 or roles.count(KEPT) > MOST_KEPT
                or min(t.compared, t.wanted, t.restarts) < 0):
            raise ValueError(f"copies with the roles {roles}, of which {t.active} is the active one")

    def fill_records(self, dict arrays):
        """Restore the records of replacements."""
        cdef int64_t i, at, n = self.trial.restarts, kept = min(n, <int64_t> MOST_RECORDS)
        steps = checked_array(arrays, "restarts.steps", "i", (kept, 4), 0, 1 << 53).tolist()
        errors = checked_array(arrays, "restarts.errors", "f", (kept, 3), 0).tolist()
        for i in range(kept):
            at = (n - kept + i) % MOST_RECORDS
            self.record[at] = {**dict(zip(STEPS, steps[i])), **dict(zip(ERRORS, errors[i]))}
