"""The vectorised evaluation against the plain one, for both kinds of learner and every kind of stream."""

from itertools import pairwise

import numpy as np
import pytest
from river import compose, linear_model, naive_bayes, preprocessing
from river.multiclass import OneVsRestClassifier

import varifold
from tests.oracles.prequential import evaluate as plain
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.evaluate import prequential


def made(n=600, labels=("a", "b"), seed=0, missing=0.4, unlabelled=0.0):
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        k = int(rng.choice(len(labels), p=np.arange(1, len(labels) + 1) / sum(range(1, len(labels) + 1))))
        x = {f"f{j}": float(rng.normal(k if j % len(labels) == k else 0.0)) for j in range(6)}
        x["city"] = ["rome", "oslo"][int(rng.random() < 0.2 + 0.5 * (k == 0))]
        x = {name: v for name, v in x.items() if rng.random() > missing}
        pairs.append((x, None if rng.random() < unlabelled else labels[k]))
    return pairs


def as_block(pairs):
    return varifold.Block.from_dicts([x for x, _ in pairs], [y for _, y in pairs])


class Stream:
    """Blocks of uneven size over one vocabulary, as a reader gives them."""

    def __init__(self, pairs, sizes=(1, 7, 100, 3)):
        self.pairs, self.sizes = pairs, sizes

    def blocks(self):
        vocabulary, labels = varifold.Vocabulary(), varifold.base.Labels()
        lo, k = 0, 0
        while lo < len(self.pairs):
            part = self.pairs[lo : lo + self.sizes[k % len(self.sizes)]]
            yield unlabelled_block(part, vocabulary, labels)
            lo, k = lo + len(part), k + 1


def unlabelled_block(pairs, vocabulary=None, labels=None):
    vocabulary = varifold.Vocabulary() if vocabulary is None else vocabulary
    labels = varifold.base.Labels() if labels is None else labels
    block = varifold.Block.from_dicts([x for x, _ in pairs], vocabulary=vocabulary)
    codes = [-1 if y is None else labels.code(y) for _, y in pairs]
    return varifold.Block(vocabulary, block.indptr, block.indices, block.values, codes, labels)


def agree(result, expected):
    for name, value in expected.items():
        assert getattr(result, name) == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("labels", [("a", "b"), ("x", "y", "z"), (False, True), (1, 2, 3, 4)])
@pytest.mark.parametrize("form", ["pairs", "iterator", "block", "stream"])
def test_equals_the_plain_loop(form, labels):
    pairs = made(labels=labels)
    stream = {"pairs": pairs, "iterator": iter(pairs), "block": as_block(pairs), "stream": Stream(pairs)}[form]
    agree(prequential(varifold.OLVF(), stream), plain(varifold.OLVF(), pairs))


@pytest.mark.parametrize("delay", [0, 1, 5, 50, 10_000])
@pytest.mark.parametrize("form", ["pairs", "block", "stream"])
def test_late_labels(form, delay):
    pairs = made(labels=("x", "y", "z"))
    stream = {"pairs": pairs, "block": as_block(pairs), "stream": Stream(pairs)}[form]
    learner, other = varifold.AROW(), varifold.AROW()
    result = prequential(learner, stream, delay=delay)
    if delay < len(pairs):
        agree(result, plain(other, pairs, [delay] * len(pairs)))
        assert learner.__getstate__()["engine"][2]["step"] == len(pairs)
        for name, array in learner.__getstate__()["engine"][2].items():
            np.testing.assert_array_equal(array, other.__getstate__()["engine"][2][name], err_msg=name)
    else:
        assert result.cer == 1.0
        assert np.isnan(result.log_loss)
    assert learner.steps == len(pairs)


def test_delay_by_function_and_by_field():
    pairs = made(300)
    rng = np.random.default_rng(5)
    delays = [None if rng.random() < 0.1 else float(rng.integers(0, 40)) for _ in pairs]
    expected = plain(varifold.OLVF(), pairs, delays)
    known = dict(zip(map(id, (x for x, _ in pairs)), delays, strict=True))
    agree(prequential(varifold.OLVF(), pairs, delay=lambda x, y: known[id(x)]), expected)
    held = [({**x, "wait": d}, y) for (x, y), d in zip(pairs, delays, strict=True)]
    learner = varifold.OLVF()
    agree(prequential(learner, held, delay="wait"), expected)
    assert "wait" not in learner.features
    agree(prequential(varifold.OLVF(), Stream(held, (64, 9)), delay="wait"), expected)


def test_delay_is_rejected_when_negative_or_unknown():
    pairs = made(20)
    for bad in (-1, float("nan"), [1]):
        with pytest.raises(ParameterError, match="the delay is"):
            prequential(varifold.OLVF(), pairs, delay=bad)
    with pytest.raises(DataError, match="a delay of 'soon'"):
        prequential(varifold.OLVF(), pairs, delay=lambda x, y: "soon")
    with pytest.raises(DataError, match="'wait' has 'soon'"):
        prequential(varifold.OLVF(), [({**x, "wait": "soon"}, y) for x, y in pairs], delay="wait")
    with pytest.raises(DataError, match="delay is -2"):
        prequential(varifold.OLVF(), pairs, delay=lambda x, y: -2)
    with pytest.raises(UnknownNameError, match="'wait'"):
        prequential(varifold.OLVF(), pairs, delay="wait")


def test_a_field_of_delays_may_come_late():
    pairs = made(40)
    held = [({**x, "wait": 2.0} if t >= 20 else x, y) for t, (x, y) in enumerate(pairs)]
    delays = [2.0 if t >= 20 else None for t in range(40)]
    agree(prequential(varifold.OLVF(), Stream(held, (10,)), delay="wait"), plain(varifold.OLVF(), pairs, delays))


def test_pairs_may_have_no_label():
    pairs = made(300, unlabelled=0.3)
    result = prequential(varifold.OLVF(), pairs)
    agree(result, plain(varifold.OLVF(), pairs))
    assert result.unlabelled == sum(y is None for _, y in pairs) > 0
    missing = [(x, np.float32("nan") if y is None else y) for x, y in pairs]
    assert prequential(varifold.OLVF(), missing).cer == result.cer


def test_a_prediction_before_any_label_is_no_guess_at_a_renamed_one():
    pairs = [({"a": 1.0}, "only")] * 20
    assert prequential(linear_model.LogisticRegression(), pairs).errors == 1


def test_what_is_no_classifier_is_rejected():
    pairs = made(20)
    with pytest.raises(ParameterError, match=r"OLVF is a class; pass a learner, OLVF\(\)"):
        prequential(varifold.OLVF, pairs)
    for bad in ([("text", 1)], [1, 2], [({},)]):
        with pytest.raises(DataError, match="pairs"):
            prequential(varifold.OLVF(), bad)
    with pytest.raises(ParameterError, match="curve_points"):
        prequential(varifold.OLVF(), pairs, curve_points=1.5)


def test_unlabelled_instances_are_neither_scored_nor_learned():
    pairs = made(400, unlabelled=0.3)
    learner = varifold.OLVF()
    result = prequential(learner, Stream(pairs))
    missing = sum(y is None for _, y in pairs)
    assert (result.unlabelled, result.scored, learner.steps) == (missing, 400 - missing, 400 - missing)
    agree(result, plain(varifold.OLVF(), pairs))


def test_scored_from_counts_the_rest_only():
    pairs = made(300)
    result = prequential(varifold.AROW(), as_block(pairs), scored_from=120)
    assert (result.instances, result.scored, result.scored_from) == (300, 180, 120)
    agree(result, plain(varifold.AROW(), pairs, scored_from=120))
    assert np.isnan(result.curve.cer[0])
    assert result.curve.cer[-1] == pytest.approx(result.cer)


@pytest.mark.parametrize(
    "make",
    [
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        naive_bayes.GaussianNB,
        lambda: OneVsRestClassifier(linear_model.PAClassifier()),
    ],
)
@pytest.mark.parametrize("delay", [0, 7])
def test_river_classifiers_give_the_same_kind_of_result(make, delay):
    numeric = [({k: v for k, v in x.items() if k != "city"}, y) for x, y in made(labels=(False, True))]
    expected = plain(make(), numeric, [delay] * len(numeric))
    for stream in (numeric, as_block(numeric), Stream(numeric, (50, 9))):
        result = prequential(make(), stream, delay=delay)
        agree(result, expected)
        assert result.seconds > 0
        assert len(result.curve.at) > 1


def test_two_label_river_classifier_on_named_labels_and_strings():
    pairs = made(labels=("bad", "good"))
    result = prequential(linear_model.LogisticRegression(), as_block(pairs))
    assert result.labels == [pairs[0][1], next(y for _, y in pairs if y != pairs[0][1])]
    assert result.cer < 0.45
    with pytest.raises(DataError, match="OneVsRestClassifier"):
        prequential(linear_model.LogisticRegression(), as_block(made(labels=("a", "b", "c"))))


def test_learner_without_probabilities():
    class Last:
        last = None

        def learn_one(self, x, y):
            self.last = y

        def predict_one(self, x):
            return self.last

    pairs = made(100)
    result = prequential(Last(), pairs)
    labels = [y for _, y in pairs]
    assert result.errors == 1 + sum(a != b for a, b in pairwise(labels))
    assert np.isnan(result.log_loss)
    assert result.confusion[:, 0].sum() == 1


def test_what_is_not_a_learner_or_not_a_stream():
    with pytest.raises(ParameterError, match="predict_one"):
        prequential(preprocessing.StandardScaler(), made(10))
    with pytest.raises(DataError, match="int"):
        prequential(varifold.OLVF(), 3)
    with pytest.raises(DataError, match="pairs"):
        prequential(varifold.OLVF(), [1, 2, 3])


def test_learner_trained_before_on_other_labels():
    learner = varifold.OLVF()
    learner.learn_many([x for x, _ in made(50)], ["other"] * 50)
    pairs = made(200)
    result = prequential(learner, as_block(pairs))
    assert result.labels == list(dict.fromkeys(y for _, y in pairs))
    assert result.confusion[:, 0].sum() >= 1
    assert result.confusion.sum() == 200


def test_positive_label():
    pairs = made(300)
    minority = prequential(varifold.OLVF(), pairs)
    other = prequential(varifold.OLVF(), pairs, positive="b")
    assert (minority.positive, other.positive) == ("a", "b")
    assert other.f1 > minority.f1
    assert prequential(varifold.OLVF(), made(labels=("a", "b", "c"))).positive is None
    with pytest.raises(UnknownNameError, match="'q'"):
        prequential(varifold.OLVF(), pairs, positive="q")


def test_sample_weights_reach_the_learner():
    pairs = made(200)
    weights = np.random.default_rng(1).uniform(0, 2, 200)
    weights[3] = 0.0
    block = varifold.Block.from_dicts([x for x, _ in pairs], [y for _, y in pairs], weights)
    ours, expected = varifold.AROW(), varifold.AROW()
    result = prequential(ours, block)
    wrong = 0
    for (x, y), w in zip(pairs, weights, strict=True):
        wrong += expected.predict_one(x) != y
        expected.learn_one(x, y, w)
    assert result.errors == wrong
    assert prequential(naive_bayes.GaussianNB(), block[:0]).instances == 0
    with pytest.raises(DataError, match="weights"):
        prequential(naive_bayes.GaussianNB(), block)


def test_columns_count_a_string_column_once():
    pairs = made(100)
    for stream in (pairs, as_block(pairs), Stream(pairs)):
        result = prequential(varifold.OLVF(), stream)
        assert (result.columns, result.names) == (7, 8)


def test_empty_instances_and_empty_streams():
    pairs = made(100, missing=0.8)
    result = prequential(varifold.OLVF(), as_block(pairs))
    assert result.empty == sum(not x for x, _ in pairs) > 0
    for nothing in ([], as_block([])):
        result = prequential(varifold.OLVF(), nothing)
        assert result.instances == result.names == 0
        assert np.isnan(result.cer)


def test_pipeline_keeps_what_its_own_steps_do():
    pairs = [({"word": "spam" if i % 3 else "ham", "n": float(i)}, i % 3 > 0) for i in range(60)]
    model = compose.Select("word") | preprocessing.OneHotEncoder() | linear_model.LogisticRegression()
    assert prequential(model, pairs).cer < 0.2


@pytest.mark.parametrize("given", [-1, 1.5, "3"])
def test_the_first_scored_instance_is_a_whole_number(given):
    with pytest.raises(ParameterError, match="scored_from"):
        prequential(varifold.OLVF(), [({"a": 1.0}, 1)], scored_from=given)


def test_labels_learned_before_the_stream_are_known_from_its_first_row():
    first, second = made(300, seed=1), made(40, seed=2)
    learner = varifold.AROW()
    learner.learn_many([x for x, _ in first], [y for _, y in first])
    losses = []
    twin = varifold.base.from_bytes(learner.to_bytes())
    for x, y in second:
        losses.append(-np.log(twin.predict_proba_one(x)[y]))
        twin.learn_one(x, y)
    assert prequential(learner, as_block(second)).log_loss == pytest.approx(np.mean(losses), rel=1e-9)


def test_paths_and_frames_are_no_streams():
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0], "y": ["u"]})
    for source in ("jan.csv", frame):
        with pytest.raises(DataError, match=r"varifold\.streams\.read\(\.\.\., target=\.\.\.\)"):
            prequential(varifold.AROW(), source)
