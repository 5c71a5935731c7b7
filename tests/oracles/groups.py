"""Groups of columns that are near copies, in plain Python: by column its group, and one number per group."""

import numpy as np

MOST, SETTLE, TRIAL, LIKE = 32, 16, 32, 0.9


class Groups:
    """Columns join groups as their values correlate; values are given as the rule would see them."""

    def __init__(self):
        self.order = {}  # column -> place in the order first seen, new ones of an instance by name
        self.group = {}  # column -> (number of the group, sign); None: it stays alone
        self.values = {}  # candidate -> number of its values
        self.pairs = {}  # (candidate, group) -> values of both

    def present(self, x):
        """Return the mean of the values of each group that is present."""
        signed = {}
        for name, value in x.items():
            if self.group.get(name):
                number, sign = self.group[name]
                signed.setdefault(number, []).append(sign * value)
        return {number: float(np.mean(values)) for number, values in signed.items()}

    def seen(self, x):
        """Return what the rule sees: nothing as long as no two columns share a group."""
        numbers = [found[0] for found in self.group.values() if found]
        return dict(sorted(self.present(x).items())) if len(set(numbers)) < len(numbers) else {}

    def learn(self, x):
        """Compare the columns without a group, in the order in which they were first seen."""
        present, founded = self.present(x), False
        for name in sorted(x):
            self.order.setdefault(name, len(self.order))
        for name in sorted((name for name in x if name not in self.group), key=self.order.__getitem__):
            if name not in self.values:
                if len(self.values) < MOST:
                    self.values[name] = 0
                continue
            self.values[name] += 1
            if not self.joins(name, x[name], present) and not founded:
                founded = self.decides(name, present)

    def joins(self, name, value, present):
        if self.values[name] <= SETTLE:
            return False
        likeness = {}
        for number, mean in present.items():
            self.pairs.setdefault((name, number), []).append((value, mean))
            a, b = np.array(self.pairs[name, number]).T
            if len(a) >= TRIAL:
                likeness[number] = float(a @ b / np.sqrt((a @ a) * (b @ b)))
        best = max(likeness, key=lambda number: abs(likeness[number]), default=None)
        if best is None or abs(likeness[best]) < LIKE:
            return False
        self.end(name, (best, float(np.sign(likeness[best]))))
        return True

    def decides(self, name, present):
        if self.values[name] < SETTLE + TRIAL or any(len(self.pairs.get((name, g), ())) < TRIAL for g in present):
            return False
        numbers = {found[0] for found in self.group.values() if found}
        free = [number for number in range(1, MOST + 1) if number not in numbers]
        self.end(name, (free[0], 1.0) if free else None)
        if free:
            present.pop(free[0], None)
        return bool(free)

    def end(self, name, found):
        self.group[name] = found
        del self.values[name]
        self.pairs = {pair: held for pair, held in self.pairs.items() if pair[0] != name}
