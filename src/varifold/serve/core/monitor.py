"""Monitor a model's stream: which features are here, silent, new or gone, the error over time, the rate of labels."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from varifold.serve.core.learners import Instance

BINS = 96
"""Most bins of a history; when all are full, neighbours are merged and each bin covers twice as much."""
TRACKED = 400
"""Most features tracked; beyond that, the least recently seen are dropped."""
EXACT = 20_000
"""Instances that are all counted; of later ones a quarter is, chosen by a hash to avoid periods of the stream."""
LONGEST = 200
"""Most characters of the name of a feature that is tracked; the names are part of every snapshot."""
REGULAR = 10
"""Instances with a feature from which it counts as regular, so that its silence is meaningful."""
_MOST_RECENT = 64
_FAST, _SLOW = 1.0 / 50.0, 1.0 / 1000.0

Presence = Literal["here", "silent", "new", "gone"]


class ErrorCurve:
    """Mean loss over the whole stream in at most `BINS` bins, and its recent level."""

    def __init__(self) -> None:
        self.width = 20
        self.bins: list[list[float]] = []  # instances seen at the end, scored, sum of losses
        self.scored = 0
        self.recent = 0.0
        self.usual = 0.0

    @property
    def mean(self) -> float:
        """Mean loss of all scored predictions."""
        return sum(one[2] for one in self.bins) / max(1, self.scored)

    def add(self, at: int, loss: float) -> None:
        """Add the loss of a prediction."""
        self.scored += 1
        self.recent += max(_FAST, 1.0 / self.scored) * (loss - self.recent)
        self.usual += max(_SLOW, 1.0 / self.scored) * (loss - self.usual)
        if not self.bins or self.bins[-1][1] >= self.width:
            if len(self.bins) == BINS:
                pairs = zip(self.bins[::2], self.bins[1::2], strict=True)
                self.bins = [[b[0], a[1] + b[1], a[2] + b[2]] for a, b in pairs]
                self.width *= 2
            self.bins.append([at, 0, 0.0])
        last = self.bins[-1]
        last[0], last[1], last[2] = at, last[1] + 1, last[2] + loss


class Monitor:
    """Monitors a stream in bounded memory, at about a microsecond per instance."""

    def __init__(self) -> None:
        self.instances = 0
        self.width = 16
        self.bins: list[tuple[int, dict[str, int]]] = []
        self.error = ErrorCurve()
        self.labels = 0
        self.label_rate = 0.0
        self.usual_label_rate = 0.0
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._count: Counter[str] = Counter()
        self._bin: Counter[str] = Counter()
        self._bin_size = 0
        self._recent: dict[tuple[str, ...], list[int]] = {}  # names of an instance -> instances not yet counted, last

    # ------------------------------------------------------------------ updates

    def observe(self, x: Instance) -> None:
        """Count an instance."""
        self.instances += 1
        self.label_rate *= 1.0 - _FAST
        self.usual_label_rate *= 1.0 - _SLOW
        if self.instances > EXACT and (self.instances * 2_654_435_761 & 0xFFFFFFFF) >> 30:
            return
        values = x.values()
        whole = all(values) or None not in values  # the first is ten times as fast, and often true
        names = tuple(x) if whole else tuple(k for k, v in x.items() if v is not None)
        if len(names) > TRACKED:
            names = self._most_tracked(names)
        recent = self._recent.get(names)
        if recent is None:
            names = tuple(name for name in names if len(name) <= LONGEST)
            recent = self._recent.setdefault(names, [0, 0])
            for name in names:
                self._first.setdefault(name, self.instances)
        recent[0] += 1
        recent[1] = self.instances
        self._bin_size += 1
        if self._bin_size >= self.width:
            self._close_bin()
        elif len(self._recent) > _MOST_RECENT:
            self._count_recent()

    def _count_recent(self) -> None:
        """Move the latest counts, which are kept by set of names, to the counts of each name."""
        for names, (count, last) in sorted(self._recent.items(), key=lambda item: item[1][1]):
            seen = dict.fromkeys(names, last)
            self._last.update(seen)
            for name in seen:
                self._bin[name] += count
        self._recent.clear()
        if len(self._last) > 2 * TRACKED:
            self._prune()

    def _most_tracked(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return as many names of a wide instance as can be tracked; those that already are come first."""
        return tuple(sorted(names, key=lambda name: name not in self._first)[:TRACKED])

    def labelled(self) -> None:
        """Count a label."""
        self.labels += 1
        self.label_rate += _FAST
        self.usual_label_rate += _SLOW

    def scored(self, loss: float) -> None:
        """Add the loss of a prediction whose label arrived: 0 or 1, or the absolute error of a number."""
        self.error.add(self.instances, loss)

    def _close_bin(self) -> None:
        self._count_recent()
        self._count.update(self._bin)
        self.bins.append((self._bin_size, dict(self._bin)))
        self._bin.clear()
        self._bin_size = 0
        if len(self._last) > TRACKED:
            self._prune()
        if len(self.bins) >= BINS:
            pairs = zip(self.bins[::2], self.bins[1::2], strict=True)
            self.bins = [(a + b, dict(Counter(left) + Counter(right))) for (a, left), (b, right) in pairs]
            self.width *= 2

    def _prune(self) -> None:
        """Drop names: first those that are not regular or gone for long, the least recently seen first."""
        order = sorted(self._last, key=lambda name: (self._is_kept(name), self._last[name]))
        dropped = order[: len(order) - TRACKED]
        binned = {name for name in dropped if name in self._count}  # others are in no closed bin
        for held in (self._last, self._first, self._count, self._bin):
            for name in dropped:
                held.pop(name, None)
        for _, counts in self.bins if binned else ():
            for name in binned & counts.keys():
                del counts[name]

    def _is_kept(self, name: str) -> bool:
        """Return whether a feature is regular and not gone."""
        return self._count[name] + self._bin[name] >= REGULAR and self._presence(name) != "gone"

    # ------------------------------------------------------------------ reports

    def presence(self, name: str) -> Presence:
        """Return whether a feature is here, new, silent (seen regularly, not now) or gone (silent for long)."""
        self._count_recent()
        return self._presence(name)

    def _presence(self, name: str) -> Presence:
        first = self._first[name]
        last = self._last[name]
        count = self._count[name] + self._bin[name]
        gap = (last - first) / max(1, count - 1)
        absent = (self.instances - last) / (4 if self.instances > EXACT else 1)  # one instance in four is counted
        if absent > max(200.0, 100.0 * gap):
            return "gone"
        if count >= REGULAR and absent > max(10.0, 10.0 * gap):
            return "silent"
        settled = self.instances > 100 and first > 50
        return "new" if settled and self.instances - first < max(100, self.instances // 20) else "here"

    def count(self, name: str) -> int:
        """Count the instances with a feature, among those counted."""
        self._count_recent()
        return self._count[name] + self._bin[name]

    def is_regular(self, name: str) -> bool:
        """Return whether a feature was seen often enough for its silence to deserve an alert."""
        return self.count(name) >= REGULAR

    def names(self) -> list[str]:
        """Return the tracked features, in order of their first appearance."""
        self._count_recent()
        return sorted(self._last, key=lambda name: (self._first[name], name))

    def features(self) -> list[dict[str, Any]]:
        """Describe every tracked feature, with its presence now and over the stream."""
        self._count_recent()
        bins = [*self.bins, (self._bin_size, self._bin)] if self._bin_size else self.bins
        return [
            {
                "name": name,
                "presence": self.presence(name),
                "first": self._first[name],
                "last": self._last[name],
                "count": self.count(name),
                "share": [round(counts.get(name, 0) / size, 3) for size, counts in bins],
            }
            for name in self.names()
        ]

    def curve(self) -> list[list[float]]:
        """Return (instances seen, mean loss) along the stream."""
        return [[at, total / scored] for at, scored, total in self.error.bins]

    # ------------------------------------------------------------------ storage

    def dump(self) -> dict[str, Any]:
        """Return the state as a dict that JSON can hold."""
        self._count_recent()
        return {
            "instances": self.instances,
            "width": self.width,
            "bins": self.bins,
            "error": vars(self.error),
            "labels": self.labels,
            "rates": [self.label_rate, self.usual_label_rate],
            "first": self._first,
            "last": self._last,
            "count": self._count,
            "bin": self._bin,
            "bin_size": self._bin_size,
        }

    def fill(self, state: dict[str, Any]) -> None:
        """Restore what dump() returned."""
        self.instances, self.width = state["instances"], state["width"]
        self.bins = [(size, counts) for size, counts in state["bins"]]
        vars(self.error).update(state["error"])
        self.labels = state["labels"]
        self.label_rate, self.usual_label_rate = state["rates"]
        self._first, self._last = state["first"], state["last"]
        self._count, self._bin = Counter(state["count"]), Counter(state["bin"])
        self._bin_size = state["bin_size"]
