"""The monitor's drift test in plain Python: bins, conformal p-values, bets, CUSUM."""

import math

import numpy as np

STAKES = (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)


class Drift:
    """Follows one column of independent values; `update` takes the values of one check."""

    def __init__(self, threshold, offset):
        self.threshold, self.offset = threshold, offset
        self.past = None
        self.warm = []

    def update(self, ties, values):
        """Return the wealth after a check; None while the bins are not made."""
        if self.past is None:
            self.warm += list(values)
            if len(self.warm) >= 256:
                self.edges = sorted(set(np.quantile(self.warm, np.linspace(0, 1, 33), method="inverted_cdf").tolist()))
                self.past = [self.bin(v) for v in self.warm]
                self.wealth = {(kind, stake): 1.0 for kind in range(2) for stake in STAKES}
            return None
        now = [self.bin(v) for v in values]
        for tie, place in zip(ties, now, strict=True):
            below = sum(p < place for p in self.past)
            equal = sum(p == place for p in self.past)
            u = (below + (tie + self.offset) % 1.0 * (equal + 1)) / (len(self.past) + 1)
            for kind, stake in self.wealth:
                bet = 2 * u - 1 if kind == 0 else 4 * abs(u - 0.5) - 1
                self.wealth[kind, stake] *= 1 + stake * bet
        self.past += now
        total = sum(self.wealth.values()) / len(self.wealth)
        if total < self.threshold:
            restart = total < 1.0
            for key, wealth in self.wealth.items():
                self.wealth[key] = 1.0 if restart else wealth + 0.02 * (total - wealth)
        return total

    def bin(self, value):
        """Return an even number between two edges, an odd one at an edge."""
        below = sum(edge < value for edge in self.edges)
        return 2 * below + (value in self.edges)


def spacing(values):
    """Return the distance at which consecutive values correlate by a twentieth."""
    ranks = np.array([sum(other < v for other in values) for v in values], dtype=float)
    ranks -= ranks.mean()
    power = (ranks**2).sum()
    correlation = (ranks[1:] * ranks[:-1]).sum() / power if power else 0.0
    if correlation < 0.15:
        return 1
    return min(400, math.ceil(math.log(0.05) / math.log(min(correlation, 0.995))))
