"""Compare the evolving family with the figures of the CWFE paper, and measure what the papers do not.

    python -m benchmarks.evolving_tables table2              accuracy and F-measure after the switch, 15 methods, 8 sets
    python -m benchmarks.evolving_tables detection           are switches found, and only switches?
    python -m benchmarks.evolving_tables switches            three in a row: is the last as easy as the first?
    python -m benchmarks.evolving_tables cost                time of a round after the switch, d1 = 60, d2 = 42
    python -m benchmarks.evolving_tables picture --out switch.png

Streams come from seeds --seed, --seed + 1, ... (--repeats of them). The original data sets are read from the folder
that VARIFOLD_DATA names; the published values from the package.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from importlib.resources import files

import numpy as np

import varifold
from varifold import datasets, streams
from varifold.streams.scenarios.columns import Columns

SETS = {
    "Australian": "australian-onehot",
    "Credit-a": "credit-a-complete",
    "Credit-g": "credit-g",
    "Diabetes": "diabetes",
    "German": "german-onehot",
    "Kr-vs-kp": "kr-vs-kp",
    "Splice": "splice",
    "Svmguide3": "svmguide3",
}
# The label of the published F-measures follows from them: accuracy and F together give the share of true positives,
# and on australian and credit-a that is more than the minority class has; on kr-vs-kp the majority class would need
# a negative number of false positives. For splice this decides nothing (1 is the label +1 of the file).
POSITIVE = {
    "Australian": 0,
    "Credit-a": "-",
    "Credit-g": "bad",
    "Diabetes": 1,
    "German": "bad",
    "Kr-vs-kp": "nowin",
    "Splice": 1,
    "Svmguide3": 1,
}
METHODS = {
    "NOGD": ("fesl", {"part": "new"}),
    "NPA-d": ("pafe", {"part": "new"}),
    "NCW": ("cwfe", {"part": "new"}),
    "ROGD-u": ("fesl", {"part": "updated"}),
    "RPA-u": ("pafe", {"part": "updated"}),
    "RCW-u": ("cwfe", {"part": "updated"}),
    "ROGD-f": ("fesl", {"part": "frozen"}),
    "RPA-f": ("pafe", {"part": "frozen"}),
    "RCW-f": ("cwfe", {"part": "frozen"}),
    **{f"{name}-{c}": (name.lower(), {"combine": c}) for name in ("FESL", "PAFE", "CWFE") for c in "cs"},
}
PROTOCOLS = {
    "the paper's protocol: phases given, no scaling, no intercept, AROW with r = .1": "paper",
    "library defaults, phases given": "given",
    "library defaults, phases found by the learner": "found",
}


def made(method, prepared, overlap, protocol):
    """Make the learner of a method for a stream under a protocol."""
    kind, setting = METHODS[method]
    setting = dict(setting)
    if protocol != "found":
        setting |= {"switch": prepared.scored_from, "overlap": overlap}
        if "combine" in setting:
            setting["horizon"] = len(prepared.block) - prepared.scored_from
    if protocol == "paper":
        setting |= {"scale": "none", "fit_intercept": False}
        setting |= {"r": 0.1} if kind == "cwfe" else {}
    return varifold.models[kind](**setting)


def truth_and_predictions(model, block):
    """Return the true and the predicted labels."""
    codes, _ = model.run_block(block)
    predicted = np.array([*model.classes, None], dtype=object)[codes]
    return np.array(block.labels.values, dtype=object)[block.codes], predicted


def right(model, block):
    """Return whether each prediction is right."""
    truth, predicted = truth_and_predictions(model, block)
    return truth == predicted


def f_measure(truth, predicted, positive):
    hit = np.sum((truth == positive) & (predicted == positive))
    total = np.sum(truth == positive) + np.sum(predicted == positive)
    return 2 * hit / total if total else 0.0


# -------------------------------------------------------------------- Table 2


def published():
    table = defaultdict(dict)
    text = (files("varifold") / "bench" / "published" / "cwfe_table2.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        table[row["metric"], row["method"]][row["dataset"]] = float(row["mean"])
    return table


def measured(protocol, seeds, methods):
    """Return the mean over the seeds by (metric, method) and data set."""
    table = defaultdict(dict)
    for title, name in SETS.items():
        data = datasets.load(name)
        found = defaultdict(list)
        for seed in seeds:
            prepared = streams.prepare(data, "evolvable:overlap=10", seed=seed)
            start = prepared.scored_from
            for method in methods:
                truth, predicted = truth_and_predictions(made(method, prepared, 10, protocol), prepared.block)
                truth, predicted = truth[start:], predicted[start:]
                found["accuracy", method].append(np.mean(truth == predicted))
                found["F-measure", method].append(f_measure(truth, predicted, POSITIVE[title]))
        for key, values in found.items():
            table[key][title] = float(np.mean(values))
    return table


def left_out(X, y):
    """Return the leave-one-out accuracy (labels -1 and 1) of the best of four ridge regressions."""
    spread = X.std(axis=0)
    X = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)])
    best = 0.0
    for ridge in (1.0, 10.0, 100.0, 1000.0):
        inverse = np.linalg.inv(X.T @ X + ridge * np.diag([0.0] + [1.0] * (X.shape[1] - 1)))
        own = np.einsum("ij,jk,ik->i", X, inverse, X, optimize=True)
        best = max(best, float(np.mean((X @ (inverse @ (X.T @ y)) - own * y > 0) == (y > 0))))
    return best


def offline(seeds):
    """Bound the accuracy of linear models in the new space by data set: on rows after the switch, and on all rows."""
    table = {"after the switch": {}, "all rows": {}}
    for title, name in SETS.items():
        late, every = [], []
        for seed in seeds:
            data = datasets.load(name)
            start = streams.prepare(data, "evolvable:overlap=10", seed=seed).scored_from
            block = streams.prepare(data, f"evolvable:overlap={start}", seed=seed).block  # new features from the start
            X = Columns(block).dense()
            X = X[:, ~np.isnan(X[-1])]
            y = np.array([1.0 if block.labels.values[c] == POSITIVE[title] else -1.0 for c in block.codes])
            late.append(left_out(X[start:], y[start:]))
            every.append(left_out(X, y))
        table["after the switch"][title] = float(np.mean(late))
        table["all rows"][title] = float(np.mean(every))
    return table


def table2(arguments):
    printed = published()
    ceiling = offline(arguments.seeds)
    for words, protocol in PROTOCOLS.items():
        ours = measured(protocol, arguments.seeds, METHODS)
        print(f"\n## {words}; {len(arguments.seeds)} streams a set; ours/published")
        for metric in ("accuracy", "F-measure") if protocol != "given" else ():
            print(f"{metric:9}" + "".join(f"{title:>11}" for title in SETS) + f"{'mean':>11}")
            for method in METHODS:
                pairs = [(ours[metric, method][title], printed[metric, method][title]) for title in SETS]
                pairs.append(tuple(np.mean(pairs, axis=0)))
                print(f"{method:9}" + "".join(f"  {a:.3f}/{b:.3f}".replace("0.", ".") for a, b in pairs))
            for rows, found in ceiling.items() if metric == "accuracy" else ():
                shown = "".join(f"{found[title]:11.3f}".replace(" 0.", "  .") for title in SETS)
                print(f"{'ridge':9}{shown}   offline, leave-one-out, {rows}")
        verdict(ours, printed, ceiling)


def verdict(ours, printed, ceiling):
    """Print the requirements for Table 2, and whether they hold."""
    for method in ("CWFE-c", "CWFE-s"):
        gap = {t: ours["accuracy", method][t] - printed["accuracy", method][t] for t in SETS}
        low = {t: f"{d:+.3f}" for t, d in gap.items() if d < -0.05}
        near = {t: f"{gap[t]:+.3f}" for t in ("Credit-a", "Diabetes", "Splice")}
        print(f"{method}: at most .05 below published on {8 - len(low)} of 8 (required: 7) {low or ''}")
        print(f"{method}: minus published {near} (required: -.010 or more)")
        above = [t for t in SETS if printed["accuracy", method][t] > ceiling["all rows"][t]]
        print(f"{method}: published is above the offline ridge on all rows on {', '.join(above) or 'none'}")
    mine = {m: ours["accuracy", m] for m in METHODS}
    least = min(SETS, key=lambda t: mine["CWFE-c"][t] - max(mine["NCW"][t], mine["RCW-u"][t]))
    gap = mine["CWFE-c"][least] - max(mine["NCW"][least], mine["RCW-u"][least])
    print(f"CWFE-c minus the better of NCW and RCW-u: {gap:+.3f} at the least, on {least} (required: -.010 or more)")
    order = {m: f"{np.mean(list(mine[m].values())):.3f}" for m in METHODS if m[-2:] in ("-c", "-s")}
    print(f"mean accuracy {order} (required: CWFE above PAFE and FESL)", flush=True)


# -------------------------------------------------------------------- what the papers do not measure

WATCHED = [
    "australian",
    "credit-a-complete",
    "credit-g",
    "diabetes",
    "german",
    "ionosphere",
    "kr-vs-kp",
    "svmguide3",
    "wbc",
    "wdbc",
]
QUIET = ["vfs:0.25", "outage", "outage:share=0.6", "outage+vfs:0.1", "none"]


def detection(arguments):
    """Count switches detected within twice the overlap, and false detections on streams without a switch."""
    print("stream                        runs  in time  others  delay  given - found: mean  largest on a set")
    for overlap in (5, 10, 20, 50):
        scenario = f"evolvable:overlap={overlap}+vfs:0.1"
        delays, others, lost = [], 0, defaultdict(list)
        for name in WATCHED:
            data = datasets.load(name)
            for seed in arguments.seeds:
                prepared = streams.prepare(data, scenario, seed=seed)
                start = prepared.scored_from
                given = varifold.CWFE(switch=start, overlap=overlap)
                model = varifold.CWFE()
                better = [right(m, prepared.block)[start:].mean() for m in (given, model)]
                lost[name].append(better[0] - better[1])
                delay = [step - start for step in model.switches if 0 < step - start <= 2 * overlap]
                delays += delay[:1]
                others += len(model.switches) - bool(delay)
        runs = len(WATCHED) * len(arguments.seeds)
        means = {name: float(np.mean(values)) for name, values in lost.items()}
        worst = max(means, key=lambda name: means[name])
        print(
            f"{scenario:28} {runs:5} {len(delays):8} {others:7} {np.mean(delays):6.1f} "
            f"{np.mean(list(means.values())):19.4f}  {means[worst]:.4f} {worst}",
            flush=True,
        )
    for scenario in QUIET:
        false = 0
        for name in WATCHED:
            data = datasets.load(name)
            for seed in arguments.seeds:
                model = varifold.CWFE()
                model.learn_many(streams.prepare(data, scenario, seed=seed).block)
                false += len(model.switches)
        print(f"{scenario:28} {len(WATCHED) * len(arguments.seeds):5} {'':8} {false:7}", flush=True)


def scaled_table(data, seed):
    """Return complete rows of a set in a seeded order, strings as codes, columns scaled to [0, 1]; and their labels."""
    block = streams.prepare(data, "none", seed=seed).block
    table = Columns(block).dense()
    whole = ~np.isnan(table).any(axis=1)
    table = table[whole]
    low, high = table.min(axis=0), table.max(axis=0)
    labels = [block.labels.values[c] for c in block.codes[whole]]
    return (table - low) / np.where(high > low, high - low, 1.0), labels


def chained(data, seed, spaces=4, overlap=10):
    """Generate a block whose space is replaced repeatedly by a Gaussian mixture of the same columns; and its bounds."""
    table, labels = scaled_table(data, seed)
    rng = np.random.default_rng(seed)
    n, d = table.shape
    bounds = [n * k // spaces for k in range(spaces + 1)]
    views = []
    for k in range(spaces):
        view = table @ rng.standard_normal((d, int(0.7 * d)))
        view[: max(0, bounds[k] - overlap)] = np.nan
        view[bounds[k + 1] :] = np.nan
        views.append(view)
    return varifold.to_block(np.hstack(views), labels), bounds


def switches(arguments):
    """Print the error after each of three switches, and the last minus the first, run by run."""
    print("error after switch       1      2      3   third - first, mean +- SE   all three found")
    every = defaultdict(list)
    for name in WATCHED:
        data = datasets.load(name)
        errors, found = defaultdict(list), 0
        for seed in arguments.seeds:
            block, bounds = chained(data, seed)
            for method, part in (("cwfe", "both"), ("ncw", "new")):
                model = varifold.CWFE(part=part)
                wrong = ~right(model, block)
                errors[method].append([wrong[bounds[k] : bounds[k + 1]].mean() for k in (1, 2, 3)])
                found += method == "cwfe" and len(model.switches) == 3
        for method, rows in errors.items():
            every[method] += rows
            print(
                after(f"{name} {method}", rows) + (f"  {found} of {len(rows)}" if method == "cwfe" else ""), flush=True
            )
    for method, rows in every.items():
        print(after(f"all {method}", rows))
    print(after("all cwfe - ncw", np.subtract(every["cwfe"], every["ncw"])))


def after(name, rows):
    change = [row[2] - row[0] for row in rows]
    error = np.std(change, ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
    means = " ".join(f"{e:6.3f}" for e in np.mean(rows, axis=0))
    return f"{name:22}{means}   {np.mean(change):+.4f} +- {error:.4f}"


def cost(arguments):
    """Time a prequential round after the switch at d1 = 60, d2 = 42; best of several runs."""
    prepared = streams.prepare(datasets.load("splice"), "evolvable:overlap=10", seed=0)
    start = prepared.scored_from
    before = prepared.block.take(np.arange(start))
    after = prepared.block.take(np.arange(start, len(prepared.block)))
    times = defaultdict(lambda: np.inf)
    for _ in arguments.seeds:
        for method in METHODS:
            model = made(method, prepared, 10, "given")
            model.learn_many(before)
            begun = time.process_time()
            model.run_block(after)
            times[method] = min(times[method], (time.process_time() - begun) / len(after))
    print("method    us a round  instances/s  ratio to FESL-c")
    for method, seconds in times.items():
        print(f"{method:9} {1e6 * seconds:10.2f} {1 / seconds:12,.0f} {seconds / times['FESL-c']:16.2f}")


PICTURED = {"credit-a-complete": "credit-a", "kr-vs-kp": "kr-vs-kp"}


def picture(arguments):
    """Draw the error around the switch, with phases detected by the learners, to the file of --out."""
    from benchmarks.switch_plot import Switch, plot_switches

    panels = []
    for name, title in PICTURED.items():
        data = datasets.load(name)
        wrong = defaultdict(list)
        for seed in arguments.seeds:
            prepared = streams.prepare(data, "evolvable:overlap=10", seed=seed)
            for method in ("CWFE-c", "NCW", "RCW-u", "RCW-f"):
                wrong[method].append(~right(made(method, prepared, 10, "found"), prepared.block))
        panels.append(Switch(f"{title}, mean of {len(arguments.seeds)} streams", wrong, prepared.scored_from, 10))
    plot_switches(panels, arguments.out)


TABLES = {"table2": (table2, 10), "detection": (detection, 10), "switches": (switches, 100), "cost": (cost, 20)}
TABLES["picture"] = (picture, 40)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--repeats", type=int, help="streams per set (default: 10; switches 100, cost 20, picture 40)")
    parser.add_argument("--seed", type=int, default=0, help="of the first stream")
    parser.add_argument("--out", default="switch.png", help="file of the picture")
    arguments = parser.parse_args()
    show, usual = TABLES[arguments.table]
    arguments.seeds = range(arguments.seed, arguments.seed + (arguments.repeats or usual))
    show(arguments)
