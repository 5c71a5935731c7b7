"""OVFM, Fig. 1 to 4: garbled gradients, a space that changes, averaged cumulative gradients, error over time."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from varifold.bench.tables import find_table
from varifold.copula.buffer import BufferCopula
from varifold.datasets import load
from varifold.report.papers import Figure
from varifold.report.papers.runs import cells_of, curve_panels, mean_curve, run_cell
from varifold.report.style import BLUE, GREEN, GREY, ORANGE, headline, pyplot, write
from varifold.streams import prepare
from varifold.streams.scenarios.columns import Columns

__all__ = ["FIGURES"]

WINDOW, BATCH, LEVELS = 200, 20, 12
SETS = ("ionosphere", "wdbc", "australian", "credit-a", "wbc", "diabetes", "german")


def _descent(X: Any, y: Any, rate: float) -> Any:
    """Return the weights of a logistic learner after every stochastic step."""
    w = np.zeros(X.shape[1])
    path = [w.copy()]
    for x, label in zip(X, y, strict=True):
        w = w + rate * x * (label - 1 / (1 + np.exp(-(w @ x))))
        path.append(w.copy())
    return np.array(path)


def _risk(X: Any, y: Any, first: Any, second: Any) -> Any:
    """Compute the mean logistic loss over a grid of two weights."""
    f = first[..., None] * X[:, 0] + second[..., None] * X[:, 1]
    return np.logaddexp(0, np.where(y, -f, f)).mean(axis=-1)


def draw_descent(path: str, repeats: int) -> None:
    """Draw stochastic steps over the loss of two weights: a continuous and an ordinal feature, then two continuous."""
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], 120)
    y = z @ [1.2, 1.0] + rng.normal(0, 0.8, 120) > 0
    ordinal = np.column_stack([z[:, 0], 1.0 + np.digitize(z[:, 1], [-0.8, 0.0, 0.8, 1.6])])
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2))
    for ax, X, title in zip(axes, (ordinal, z), ("continuous and ordinal", "two continuous"), strict=True):
        steps = _descent(X, y, 0.25)
        low, high = steps.min(axis=0) - 0.6, steps.max(axis=0) + 0.6
        first, second = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 80))
        ax.contour(first, second, _risk(X, y, first, second), levels=14, colors=GREY, linewidths=0.6)
        ax.plot(*steps.T, color=ORANGE, linewidth=1.0)
        ax.plot(*steps[-1], "o", color=BLUE)
        ax.set_title(title, fontsize=10, color=GREY)
        ax.set_xlabel("first weight")
        ax.set_ylabel("second weight")
    headline(figure, "OVFM: stochastic steps over the loss; dot: the last one", y=1.02)
    write(figure, path)


def draw_change(path: str, repeats: int) -> None:
    """Draw a learner of two features, and the same points when a third feature replaces one of them."""
    rng = np.random.default_rng(1)
    y = np.repeat([True, False], 20)
    x2 = rng.normal(0, 1, 40)
    x1 = np.where(y, 1.0, -1.0) + 0.6 * x2 + rng.normal(0, 0.25, 40)
    x3 = np.where(y, -0.9, 0.9) + 0.5 * x2 + rng.normal(0, 0.3, 40)
    weights = np.linalg.lstsq(np.column_stack([x1, x2]), np.where(y, 1.0, -1.0), rcond=None)[0]
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2))
    for ax, first, name in zip(axes, (x1, x3), ("x1", "x3"), strict=True):
        used = weights[0] * first + weights[1] * x2 if name == "x1" else weights[1] * x2
        wrong = (used > 0) != y
        for label, colour in ((True, GREEN), (False, ORANGE)):
            ax.plot(first[y == label], x2[y == label], "o", color=colour, markersize=5)
        ax.plot(first[wrong], x2[wrong], "o", color="none", markeredgecolor=BLUE, markersize=10)
        ax.set_xlabel(name)
        ax.set_ylabel("x2")
        ax.set_title(
            f"({name}, x2) seen: {wrong.sum()} of 40 wrong{' (circled)' if wrong.any() else ''}",
            fontsize=10,
            color=GREY,
        )
    headline(figure, "OVFM: a learner of (x1, x2) that sees (x3, x2) instead", y=1.02)
    write(figure, path)


def _latent(table: Any) -> Any:
    """Compute the latent values of the copula: absent ones regressed, the copula fitted to the last rows as they come.

    EM makes one step of decaying size on the window every `BATCH` rows.
    """
    copula = BufferCopula(levels=LEVELS, sweeps=2, tolerance=0.0, iterations=1, c=5.0, gamma_min=0.05)
    window: deque[dict[int, float]] = deque(maxlen=WINDOW)
    scores = np.zeros(table.shape)
    for t, values in enumerate(table):
        row = {j: float(values[j]) for j in np.flatnonzero(~np.isnan(values)).tolist()}
        copula.admit(row)
        window.append(row)
        if t % BATCH == 0:
            copula.fit(list(window))
        z = copula.expect(copula.place(row))[0]
        for column, place in copula.index.items():
            scores[t, column] = z[place]
    return scores


def _gradients(X: Any, y: Any) -> Any:
    """Compute online convex programming's averaged cumulative gradient after each round, by feature."""
    w = np.zeros(X.shape[1])
    total = np.zeros(X.shape[1])
    found = []
    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        gradient = x * (1 / (1 + np.exp(-(w @ x))) - label)
        w -= gradient / np.sqrt(t)
        total += gradient
        found.append(total / t)
    return np.array(found)


def draw_gradients(path: str, repeats: int) -> None:
    """Draw averaged cumulative gradients of original and latent values, signed, of discrete and continuous features.

    Of each kind the feature whose original gradient moves most is shown; the titles compare the summed movements of all
    features of the kind after the first tenth of the stream.
    """
    panels = {}
    for name in ("credit-a", "german"):
        block = prepare(load(name), "capricious:mode=atmost", seed=0).block
        columns = Columns(block)
        table = columns.dense()
        y = (block.codes == 1).astype(float)
        levels = np.array([len(np.unique(column[~np.isnan(column)])) for column in table.T])
        span = np.nanmax(table, axis=0) - np.nanmin(table, axis=0)
        raw = np.nan_to_num((table - np.nanmin(table, axis=0)) / np.where(span > 0, span, 1.0))
        found = {"original": _gradients(raw, y), "latent": _gradients(_latent(table), y)}
        at = np.arange(1, len(y) + 1, dtype=np.float64)
        moved = {k: np.abs(np.diff(g[len(y) // 10 :], axis=0)).sum(axis=0) for k, g in found.items()}
        for kind, chosen in (("discrete", levels <= LEVELS), ("continuous", levels > LEVELS)):
            feature = int(np.argmax(np.where(chosen, moved["original"], -1.0)))
            lines = {k: (at, g[:, feature]) for k, g in found.items()}
            ratio = moved["latent"][chosen].sum() / moved["original"][chosen].sum()
            panels[f"{name}, {columns.names[feature]}; {kind}: latent moves {ratio:.1f} times as much"] = lines
    title = "OVFM: averaged cumulative gradients, original and latent values"
    write(curve_panels(panels, "mean gradient so far", title, zero=True), path)


def draw_errors(path: str, repeats: int) -> None:
    """Draw the error so far on capricious streams of seven sets: FOBOS, OCDS, OVFM, and OVFM on latent values alone."""
    table = find_table("ovfm-2")
    setting = next(s for s in table.settings if s.name == "capricious")
    panels = {}
    for data in [d for d in table.data if d.name in SETS]:
        lines = {}
        for name, column in (("FOBOS", "paper"), ("OCDS", "paper"), ("OVFM", "paper"), ("OVFM", "OVFM-L")):
            cells = cells_of(table, setting, data, name, column, repeats)
            lines[name if column == "paper" else column] = mean_curve([run_cell(cell) for cell in cells], "cer")
        panels[data.name] = lines
    write(curve_panels(panels, "error so far", f"OVFM: error on capricious streams, {repeats} each"), path)


FIGURES = [
    Figure("1", "stochastic steps with an ordinal feature and without", draw_descent),
    Figure("2", "a learner whose feature space changes", draw_change),
    Figure("3", "averaged cumulative gradients", draw_gradients),
    Figure("4", "error over time on capricious streams", draw_errors),
]
