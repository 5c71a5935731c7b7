"""The robust kind of scaling in plain Python, one object per feature."""

from __future__ import annotations

import math

BOUND, LEVEL = 3.0, 0.9


def splitmix64(step: int) -> int:
    """Return 64 random bits: a hash of the step."""
    z = (step + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def is_tracked(step: int) -> bool:
    """Draw one step in 32."""
    return splitmix64(step) % 32 == 0


class RobustScaler:
    """Statistics of one feature; `scale` adds a value to them and returns it scaled."""

    def __init__(self, clip: float = 3.0) -> None:
        self.clip = clip
        self.weight = self.mean = self.m2 = 0.0
        self.median = self.spread = self.mode = self.share = 0.0
        self.count = self.varied = self.restarts = self.restarted_at = 0
        self.run: list[float] = []
        self.near: list[float] = []
        self.reach = -1.0  # distance from the mean within which a value only updates mean and deviation
        self.unit: tuple[float, float] | None = None  # (1, width) of presence, (0, deviation) of a measurement
        self.settles_at = 64
        self.strays = 0.0

    def scale(self, x: float, step: int, w: float = 1.0) -> float:
        always_the_same = self.count > 0 and self.m2 == 0.0 and x == self.mode
        if always_the_same or (abs(x - self.mean) < self.reach and not is_tracked(step)):
            self.count += always_the_same
            self._add(x, w)
            return self._scaled(x)
        centre = self._track(x, step)
        bound = BOUND * self.spread
        if self.varied >= 10:
            x = max(min(x, centre + bound), centre - bound)
        self._add(x, w)
        if self.varied >= 10 and (abs(self.mean - centre) > bound or self.m2 / self.weight > bound**2):
            self.weight, self.mean, self.m2 = 4.0, centre, 4.0 * (self.spread / 1.645) ** 2
        self._settle(centre)
        return self._scaled(x)

    def _add(self, x: float, w: float) -> None:
        self.weight += w
        d = x - self.mean
        self.mean += d * (w / self.weight)
        self.m2 += d * w * (x - self.mean)

    def _has_settled(self) -> bool:
        return self.varied >= 16 and self.count >= self.settles_at

    def _track(self, x: float, step: int) -> float:
        """Update centre, quantile and runs; a settled feature tracks centre and quantile on every 32nd step only."""
        tracked = is_tracked(step) or not self._has_settled()
        if tracked:
            self.count += 1
            self._track_mode(x)
            self.strays = max(self.strays - 8.0, 0.0)
        centre = self.mode if self.share >= 0.5 else self.median
        if x == centre:
            return centre
        if self.varied >= 10 and self._is_new_unit(x, centre):
            self._restart(x, step)
            return self.median
        if tracked:
            self._track_spread(x, centre)
        elif abs(x - centre) > BOUND * self.spread:
            self.strays += 1.0
            if self.strays > 32:
                self.strays = 0.0
                self.settles_at = self.count + 64
        return centre

    def _settle(self, centre: float) -> None:
        self.reach = -1.0
        if self.m2 <= 0.0:
            return
        deviation = math.sqrt(self.m2 / self.weight)
        is_presence = self.share >= 0.7 and self.mode != 0.0
        self.unit = (1.0, math.hypot(deviation, self.mean - self.mode)) if is_presence else (0.0, deviation)
        if self._has_settled() and not self.run:
            self.reach = BOUND * self.spread - abs(self.mean - centre)

    def _scaled(self, x: float) -> float:
        if self.m2 <= 0.0:
            return float(x != 0.0 and (self.count > 1 or x == 1.0))
        assert self.unit is not None
        is_presence, width = self.unit
        z = 1.0 + (x - self.mode) / width if is_presence else (x - self.mean) / width
        return max(-self.clip, min(self.clip, z))

    def _track_mode(self, x: float) -> None:
        if self.count == 1:
            self.mode = self.median = x
            self.share = 1.0
            return
        self.share += ((x == self.mode) - self.share) / min(self.count, 100)
        if self.share < 0.25:
            self.mode, self.share = x, 0.25

    def _track_spread(self, x: float, centre: float) -> None:
        self.varied += 1
        distance = abs(x - centre)
        if self.varied == 1:
            self.spread = distance
        else:
            step = max(3.0 / (self.varied + 2), 0.03)
            self.spread *= math.exp(step * LEVEL if distance > self.spread else -step * (1.0 - LEVEL))
        self._shrink_spread(distance)
        step = min(max(1.0 / self.count, 0.01) * self.spread, abs(x - self.median))
        self.median += math.copysign(step, x - self.median)

    def _shrink_spread(self, distance: float) -> None:
        if distance >= 0.1 * self.spread:
            self.near = []
            return
        self.run = []
        self.near.append(distance)
        if len(self.near) >= (6 if self.varied < 50 else 16):
            self.spread = max(self.near)
            self.near = []

    def _is_new_unit(self, x: float, centre: float) -> bool:
        if abs(x - centre) <= self.spread:
            self.run = []
            return False
        self.near = []
        if self.run and (x > centre) != (self._run_mean() > centre):
            self.run = []
        self.run.append(x)
        length = 20 * 2 ** min(self.restarts, 20)
        if len(self.run) < length:
            return False
        deviation = self._run_deviation()
        if deviation > 0.0 and (abs(self._run_mean() - centre) > BOUND * self.spread or deviation < self.spread / 20.0):
            return True
        if len(self.run) >= 4 * length:
            self.run = []
        return False

    def _run_mean(self) -> float:
        return math.fsum(self.run) / len(self.run)

    def _run_deviation(self) -> float:
        mean = self._run_mean()
        return math.sqrt(math.fsum((v - mean) ** 2 for v in self.run) / len(self.run))

    def _restart(self, x: float, step: int) -> None:
        n, mean, deviation = len(self.run), self._run_mean(), self._run_deviation()
        self.weight, self.mean, self.m2 = float(n), mean, n * deviation**2
        self.median, self.spread = mean, 1.645 * deviation
        self.mode, self.share = x, 0.25
        self.restarts += 1
        self.restarted_at = step
        self.settles_at = self.count + 64
        self.strays = 0.0
        self.run = []
