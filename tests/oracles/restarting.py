"""`RestartingModel` in plain Python: copies of a learner, one of them on trial after drift, three kept."""

import math

from tests.oracles.adwin import Adwin


class Restarting:
    """`make()` makes a learner with ``predict(x)`` and ``learn(x, y)``, which returns whether it was wrong before."""

    def __init__(self, make):
        self.make = make
        self.active, self.trial, self.kept = make(), None, []
        self.errors = Adwin(0.5, 4)
        self.since = None
        self.wanted = False
        self.scores = {}
        self.restarts = []

    def predict(self, x):
        return self.active.predict(x)

    def learn(self, x, y, step):
        starts = self.wanted  # a new copy begins one step after the alarm
        wrong = self.active.learn(x, y)
        self.detect(wrong, step)
        if self.since is None:
            return
        if starts and self.wanted:
            self.trial, self.wanted = self.make(), False
        self.compared += 1
        self.count(self.active, wrong, wrong)
        if self.trial is not None:
            self.count(self.trial, self.trial.learn(x, y), wrong)
        for old in self.kept:
            self.count(old, old.predict(x) != y, wrong)
        self.decide(step)

    def detect(self, wrong, step):
        """Begin a trial if ADWIN finds a rise, unless a copy on trial is ahead."""
        window = self.errors.numbers()
        before = sum(window) / len(window) if window else 0.0
        cut = self.errors.update(float(wrong))
        window = self.errors.numbers()
        if not cut or sum(window) / len(window) <= before:
            return
        if self.trial is not None and self.scores.get(id(self.trial), [0])[0] > 0:
            return
        self.trial, self.wanted = None, True
        self.since, self.before, self.compared, self.scores = step, before, 0, {}

    def count(self, copy, wrong, active_wrong):
        """Count lead, differing instances and errors; a lead below -2 starts again."""
        score = self.scores.setdefault(id(copy), [0, 0, 0])
        score[0] += int(active_wrong) - int(wrong)
        score[1] += wrong != active_wrong
        score[2] += wrong
        if score[0] < -2:
            score[:2] = [0, 0]

    def decide(self, step):
        """Sequential sign test: replace the active copy, end the trial, or continue."""
        rivals = [copy for copy in [*self.kept, self.trial] if copy is not None]
        leads = {id(copy): self.scores.get(id(copy), [0, 0, 0]) for copy in rivals}
        winners = [c for c in rivals if leads[id(c)][0] > 1.5 * math.sqrt(leads[id(c)][1]) + 1]
        if winners:
            best = max(winners, key=lambda c: leads[id(c)][0])
            errors = [self.scores[id(c)][2] / self.compared for c in (self.active, best)]
            self.restarts.append((step + 1, self.since + 1, best in self.kept, self.compared, self.before, *errors))
            self.kept = [*(c for c in self.kept if c is not best), self.active][-3:]
            self.active, self.errors = best, Adwin(0.5, 4)
            self.end()
        elif self.compared >= 2000 or (self.compared >= 300 and (self.trial is None or leads[id(self.trial)][0] <= 0)):
            self.end()

    def end(self):
        self.trial, self.since, self.wanted = None, None, False
