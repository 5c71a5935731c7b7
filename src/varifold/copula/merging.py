"""Merge Gaussian copulas of several parts of a stream, approximately.

Each part has its own nodes (the features under the copula) and its own reference level for each string column. The
merged copula covers the most active features overall. Its windows interleave the values of all parts. Its correlations
are averages over the parts that know both features, weighted by the expected number of instances with both. Rows that
wait for the next M-step are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold._engine.merging import INDICATOR, Arrays, Floats, Ints, Part

LEAST_EIGENVALUE = 1e-4


def merged_copula(parts: Sequence[Part], window: int, most: int, memory: float) -> Arrays:
    """Return the arrays of a copula merged from those of the parts.

    `window` values are kept per feature, `most` features are nodes, and activity fades within `memory` instances.
    """
    views = [_View(part) for part in parts]
    active, learned = _activity(views, memory)
    references = _references(views, active)
    nodes = _nodes(views, references, active, most)
    windows = [_window(views, slot, window) for slot in nodes]
    by_slot, by_node = _links(parts[0], nodes, references)
    return {
        "slots": by_slot,
        "active": active,
        "unit": np.array([1.0, learned]),
        "nodes": by_node,
        "updates": np.sum([view.arrays["updates"] for view in views], axis=0),
        "sigma": _correlation(views, nodes),
        "batch_weights": np.zeros(0),
        "batch": np.zeros((0, 4)),
        "window_counts": np.array([len(values) for values in windows], dtype=np.int64),
        "window_values": np.concatenate([np.zeros(0), *windows]),
    }


class _View:
    """One part's copula in terms of the united slots."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.arrays = part.arrays
        self.to = part.united_slots
        self.seen = part.seen
        unit = self.arrays["unit"]
        self.learned = float(unit[1] / unit[0])
        self.active: Floats = np.zeros(part.union.size)
        known = np.flatnonzero(self.to >= 0)
        self.active[self.to[known]] = self.arrays["active"][known] / unit[0]
        own = self.arrays["nodes"][:, 0]
        self.node_of = {int(self.to[slot]): node for node, slot in enumerate(own.tolist()) if slot}
        self.reference_of = {
            int(self.to[column]): int(self.to[slot])
            for column, slot in enumerate(self.arrays["slots"][:, 2].tolist())
            if slot and self.to[column] >= 0
        }
        ends = np.cumsum(self.arrays["window_counts"])
        self._windows = np.split(self.arrays["window_values"], ends[:-1]) if len(ends) else []

    def window(self, slot: int) -> Floats:
        """Return the values of a feature's window, oldest first; empty if it is no node."""
        return self._windows[self.node_of[slot]] if slot in self.node_of else np.zeros(0)

    def reference_window(self, column: int, slot: int) -> Floats:
        """Return the window of a reference level: a one wherever no other level of its column occurred."""
        columns = self.part.union.columns
        others = [s for s in self.node_of if columns[s] == column]
        size = min((len(self.window(s)) for s in others), default=min(int(self.seen[slot]), 1))
        rest = np.ones(size)
        for other in others:
            rest -= self.window(other)[len(self.window(other)) - size :]
        return np.maximum(rest, 0.0)


def _activity(views: Sequence[_View], memory: float) -> tuple[Floats, float]:
    """Return the activity of each slot and the number of instances behind it, capped at that of a long stream."""
    active: Floats = np.sum([view.active for view in views], axis=0)
    learned = sum(view.learned for view in views)
    most = 1.0 / -np.expm1(-1.0 / memory)
    shrink = min(1.0, most / learned) if learned > 0.0 else 1.0
    return active * shrink, learned * shrink


def _references(views: Sequence[_View], active: Floats) -> dict[int, int]:
    """Return the reference level of each string column: the one of most parts, weighted by instances."""
    votes: dict[int, dict[int, float]] = {}
    for view in views:
        for column, slot in view.reference_of.items():
            of_column = votes.setdefault(column, {})
            of_column[slot] = of_column.get(slot, 0.0) + float(view.seen[column])
    return {column: max(counts, key=lambda slot: (counts[slot], active[slot])) for column, counts in votes.items()}


def _nodes(views: Sequence[_View], references: dict[int, int], active: Floats, most: int) -> list[int]:
    """Return the slots that become nodes: up to `most`, the most active ones but reference levels, in slot order."""
    known = {slot for view in views for slot in (*view.node_of, *view.reference_of.values())}
    candidates = sorted(known - set(references.values()))
    return sorted(sorted(candidates, key=lambda slot: (-active[slot], slot))[:most])


def _window(views: Sequence[_View], slot: int, most: int) -> Floats:
    """Interleave the latest values of all parts, in proportion to their instances with the feature."""
    union = views[0].part.union
    column = union.columns[slot]
    held = []
    for view in views:
        is_reference = slot == view.reference_of.get(column)
        held.append((view.reference_window(column, slot) if is_reference else view.window(slot), view))
    weights = np.array([view.seen[column if union.kinds[slot] & INDICATOR else slot] for _, view in held])
    sizes = np.array([len(values) for values, _ in held])
    wanted = _shares(weights, sizes, most)
    places = np.concatenate([np.linspace(0.0, 1.0, n, endpoint=False) + 0.5 / max(n, 1) for n in wanted])
    values = np.concatenate([values[len(values) - n :] for (values, _), n in zip(held, wanted, strict=True)])
    return values[np.argsort(places, kind="stable")]


def _shares(weights: Floats, sizes: Ints, most: int) -> list[int]:
    """Return the number of values from each part: in proportion to its weight, at most its size, `most` in all."""
    if sizes.sum() <= most:
        return [int(size) for size in sizes]
    taken = np.zeros(len(sizes), dtype=np.int64)
    while taken.sum() < most:
        open_to = np.where(taken < sizes, np.maximum(weights, 1e-9), 0.0)
        more = np.minimum(np.ceil((most - taken.sum()) * open_to / open_to.sum()).astype(np.int64), sizes - taken)
        for i in np.argsort(-open_to, kind="stable"):
            taken[i] += min(int(more[i]), most - int(taken.sum()))
    return [int(n) for n in taken]


def _correlation(views: Sequence[_View], nodes: Sequence[int]) -> Floats:
    """Average the parts' correlations; make the result positive definite with a unit diagonal."""
    total: Floats = np.zeros((len(nodes), len(nodes)))
    weight: Floats = np.zeros_like(total)
    for view in views:
        here = [(place, view.node_of[slot]) for place, slot in enumerate(nodes) if slot in view.node_of]
        if not here:
            continue
        places, own = (np.array(numbers) for numbers in zip(*here, strict=True))
        seen = view.seen[np.array(nodes)[places]]
        both = np.outer(seen, seen) / max(1.0, view.part.steps)
        total[np.ix_(places, places)] += both * view.arrays["sigma"][np.ix_(own, own)]
        weight[np.ix_(places, places)] += both
    mean = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0.0)
    np.fill_diagonal(mean, 1.0)
    return _positive_definite((mean + mean.T) / 2.0)


def _positive_definite(matrix: Floats) -> Floats:
    """Bound the eigenvalues of the matrix from below and rescale it to a unit diagonal."""
    if not len(matrix):
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= LEAST_EIGENVALUE:
        return matrix
    bounded: Floats = (vectors * np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
    root = np.sqrt(np.diagonal(bounded))
    bounded /= np.outer(root, root)
    np.fill_diagonal(bounded, 1.0)
    return bounded


def _links(part: Part, nodes: Sequence[int], references: dict[int, int]) -> tuple[Any, Any]:
    """Map slots to nodes and back; the nodes of a column form a list, the latest first.

    By slot: its node + 1 (-1 for a reference level), of a column its latest node + 1, and its reference level. By node:
    its slot, and the column's node before it + 1.
    """
    union = part.union
    by_slot = np.zeros((union.size, 3), dtype=np.int64)
    by_node = np.zeros((len(nodes), 2), dtype=np.int64)
    for node, slot in enumerate(nodes):
        by_slot[slot, 0] = node + 1
        by_node[node, 0] = slot
        if union.kinds[slot] & INDICATOR:
            column = union.columns[slot]
            by_node[node, 1] = by_slot[column, 1]
            by_slot[column, 1] = node + 1
    for column, slot in references.items():
        by_slot[slot, 0] = -1
        by_slot[column, 2] = slot
    return by_slot, by_node
