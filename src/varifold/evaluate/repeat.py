"""`repeat`: the same evaluation on several permutations and masks of one data set."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from varifold.ask import AskPolicy
from varifold.base.params import AnyOf, Integer, validate
from varifold.errors import ParameterError, missing_extra
from varifold.evaluate.delayed_labels import Delay
from varifold.evaluate.prequential import prequential
from varifold.evaluate.result import Summary
from varifold.streams import prepare, zscore


def repeat(
    make_learner: Callable[[], Any],
    data: Any,
    *,
    scenario: str = "none",
    repeats: int = 10,
    seed: int = 0,
    shuffle: bool | None = None,
    scale: str | None = None,
    delay: Delay = None,
    positive: Hashable = None,
    quantile: float = 0.5,
    track: str | None = None,
    by: int | None = None,
    ask: AskPolicy | float | None = None,
    predictions: bool | Callable[[Any], None] = False,
    curve_points: int = 200,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Evaluate new learners on `repeats` streams made of one data set; repeat r uses the seed `seed + r`.

    Parameters
    ----------
    make_learner
        A class or function that makes a learner; called once per repeat.
    data
        The data set: a Block, or what ``datasets.load`` returns.
    scenario, shuffle
        The scenario, and whether rows are permuted: see `streams.prepare`. The same seed gives every learner the
        same stream.
    repeats, seed
        Number of streams, and the seed of the first.
    scale
        ``"paper"`` computes z-scores over the whole set before the stream starts. That looks ahead and is only for
        reproducing papers, with learners made with ``scale="none", fit_intercept=False``. None keeps the values.
    delay, positive, quantile, track, by, ask, curve_points
        See `prequential`.
    predictions
        See `prequential`; a function works with one repeat only.
    jobs
        Processes; -1 uses every core of the machine. More than one needs joblib.
    progress
        Called with the number of repeats done.

    """
    if not callable(make_learner):
        raise ParameterError(
            "make_learner is called once per repeat: pass a class or function that makes a learner (such as a "
            f"learner's clone). Got a {type(make_learner).__name__} instead."
        )
    validate(
        "repeat",
        {"repeats": Integer(1), "seed": Integer(0), "jobs": AnyOf(Integer(1), Integer(high=-1))},
        {"repeats": repeats, "seed": seed, "jobs": jobs},
    )
    if callable(predictions) and repeats > 1:
        raise ParameterError("predictions as a function work with one repeat only; True keeps those of every repeat")
    if scale not in (None, "paper"):
        raise ParameterError(f"scale must be 'paper' or None here. Got {scale!r} instead.")
    if scale == "paper":
        data = replace(data, block=zscore(data.block)) if hasattr(data, "block") else zscore(data)
    if positive is None:
        positive = getattr(data, "positive", None)
    seeds = [seed + r for r in range(repeats)]

    def one(number: int) -> tuple[Any, Any]:
        stream = prepare(data, scenario, seed=number, shuffle=shuffle)
        learner = make_learner()
        result = prequential(
            learner,
            stream,
            delay=delay,
            positive=positive,
            quantile=quantile,
            track=track,
            by=by,
            ask=ask,
            predictions=predictions,
            curve_points=curve_points,
        )
        return result, learner if number == seed else None

    done: list[tuple[Any, Any]] = []
    for outcome in map(one, seeds) if jobs == 1 else _parallel(one, seeds, jobs):
        done.append(outcome)
        if progress is not None:
            progress(len(done))
    return Summary([result for result, _ in done], seeds, done[0][1])


def _parallel(one: Callable[[int], tuple[Any, Any]], seeds: list[int], jobs: int) -> Any:
    try:
        import joblib
    except ImportError as error:
        raise missing_extra("jobs > 1 needs joblib", "bench") from error
    return joblib.Parallel(n_jobs=jobs, return_as="generator")(joblib.delayed(one)(number) for number in seeds)
