"""Prequential evaluation in plain Python, one instance at a time."""

import math
from collections import Counter

from sklearn.metrics import average_precision_score, roc_auc_score


def evaluate(learner, pairs, delays=None, scored_from=0, positive=None):
    """Evaluate a learner (dict API) on (x, y) pairs; y None is unlabelled, one delay per pair (None: never).

    A learner with memos judges the predictions that it issued.
    """
    delays = [0] * len(pairs) if delays is None else delays
    due = sorted((t + d, t) for t, d in enumerate(delays) if d is not None and pairs[t][1] is not None)
    learned = Counter()
    order = []  # labels in order of first occurrence
    rows, memos = [], []
    for t, (x, y) in enumerate(pairs):
        if y is not None and y not in order:
            order.append(y)
        memos.append({"memo": learner.memo_one(x)} if hasattr(learner, "memo_one") else {})
        proba = learner.predict_proba_one(x)
        prediction = learner.predict_one(x)
        best = max(learned.values(), default=0)
        majority = next((c for c in order if learned[c] == best), None) if best else None
        if y is not None and t >= scored_from:
            rows.append((y, prediction, proba, majority, learned[y] > 0))
        while due and due[0][0] < t + 1:
            _, i = due.pop(0)
            learner.learn_one(*pairs[i], **memos[i])
            learned[pairs[i][1]] += 1
    for _, i in due:
        learner.learn_one(*pairs[i], **memos[i])
    labels = [c for c in order if any(y == c for _, y in pairs)]
    return metrics(rows, labels, positive or minority(pairs, labels))


def minority(pairs, labels):
    counts = Counter(y for _, y in pairs)
    return min(reversed(labels), key=lambda c: counts[c]) if len(labels) <= 2 else None


def metrics(rows, labels, positive):
    n = len(rows)
    rated = [(y, a, p) for y, a, p, _, met in rows if met and a is not None]
    f1s, recalls = {}, []
    for c in labels:
        true = sum(y == c for y, *_ in rows)
        predicted = sum(a == c for _, a, *_ in rows)
        hit = sum(y == c == a for y, a, *_ in rows)
        if true + predicted:
            f1s[c] = 2 * hit / (true + predicted)
        if true:
            recalls.append(hit / true)
    bins = {}
    for y, a, p in rated:
        bins.setdefault(min(int(p[a] * 15), 14), []).append((p[a], y == a))
    spread = sum(abs(sum(c for c, _ in b) - sum(h for _, h in b)) for b in bins.values())
    brier = sum(sum((p.get(c, 0.0) - (c == y)) ** 2 for c in labels) for y, _, p in rated)
    return {
        "cer": sum(y != a for y, a, *_ in rows) / n,
        "f1": f1s.get(positive, 0.0) if positive is not None else sum(f1s.values()) / len(f1s),
        "balanced_accuracy": sum(recalls) / len(recalls),
        "majority_cer": sum(y != m for y, _, _, m, _ in rows) / n,
        "log_loss": sum(-math.log(min(max(p.get(y, 0.0), 1e-15), 1)) for y, _, p in rated) / len(rated),
        "brier": brier / len(rated) * (0.5 if len(labels) <= 2 else 1),
        "calibration_error": spread / len(rated),
        **areas(rated, labels, positive),
    }


def areas(rated, labels, positive):
    """Return the areas of the positive label, or their one-versus-rest means over the labels."""
    shown = (
        [positive] if positive is not None else [c for c in labels if 0 < sum(y == c for y, *_ in rated) < len(rated)]
    )
    found = {"auroc": 0.0, "auprc": 0.0}
    for c in shown:
        truth, scores = [y == c for y, *_ in rated], [p.get(c, 0.0) for *_, p in rated]
        found["auroc"] += roc_auc_score(truth, scores) / len(shown)
        found["auprc"] += average_precision_score(truth, scores) / len(shown)
    return found
