"""Scenarios against what they say, cell by cell."""

import io
import math

import numpy as np
import pytest

from varifold import OLVF, Block, datasets, evaluate, streams
from varifold._engine.data.block import concatenate
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.streams.scenarios import _apply_mask
from varifold.streams.scenarios import _masks as masks
from varifold.streams.scenarios.columns import Columns


def table(n=400, d=9, nominal=(), seed=0):
    """n rows of d columns, some of strings; the label is 'no' in two rows of three."""
    draw = np.random.default_rng(seed)
    rows = [{f"c{j}": (f"v{i % 3}" if j in nominal else float(draw.normal())) for j in range(d)} for i in range(n)]
    return Block.from_dicts(rows, ["no" if i % 3 else "yes" for i in range(n)])


def shown(block, width):
    """Rows x columns, true where the column has a value."""
    columns = Columns(block)
    names = {name: int(str(name)[1:]) for name in columns.names}
    out = np.zeros((len(block), width), dtype=bool)
    for i, row in enumerate(block.rows()):
        out[i, [names[name] for name in row]] = True
    return out


def same(a, b):
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in ("indptr", "indices", "values", "codes"))


@pytest.mark.parametrize(
    "spec",
    ["none", "vfs:0.5", "vfs:0.5,mode=exact", "trapezoidal", "capricious", "capricious:mode=pairs", "informative",
     "capricious:mode=atmost", "mixed:bins=text", "informative+absences",
     "stretch:40+vfs:0.5", "uninformative", "balanced", "mixed", "balanced+informative", "mixed+capricious:mode=pairs"],
)  # fmt: skip
def test_same_seed_same_stream_other_seed_another(spec):
    block = table()
    first = streams.prepare(block, spec, seed=3).block
    assert same(first, streams.prepare(block, spec, seed=3).block)
    assert not same(first, streams.prepare(block, spec, seed=4).block)


def test_none_is_a_permutation_and_unshuffled_the_block_itself():
    block = table()
    assert same(streams.prepare(block, shuffle=False).block, block)
    taken = streams.prepare(block, seed=1).block
    assert sorted(map(repr, zip(taken.rows(), taken.y, strict=True))) == sorted(
        map(repr, zip(block.rows(), block.y, strict=True))
    )
    assert not same(taken, block)


def test_permutation_is_the_same_in_every_scenario():
    block = table()
    plain = streams.prepare(block, "none", seed=5).block
    assert np.array_equal(plain.codes, streams.prepare(block, "vfs:0.5", seed=5).block.codes)
    assert np.array_equal(plain.codes, streams.prepare(block, "trapezoidal", seed=5).block.codes)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 0.75, 1.0])
def test_vfs_hides_each_column_at_the_ratio(ratio):
    prepared = streams.prepare(table(4000), f"vfs:{ratio}", seed=2)
    rates = 1 - shown(prepared.block, 9).mean(axis=0)
    assert rates == pytest.approx(np.full(9, ratio), abs=4 * math.sqrt(0.25 / 4000))
    assert prepared.empty == np.count_nonzero(np.diff(prepared.block.indptr) == 0)


def test_vfs_cells_are_independent():
    seen = shown(streams.prepare(table(4000), "vfs:0.5", seed=2).block, 9).astype(float)
    correlation = np.corrcoef(seen.T) - np.eye(9)
    assert np.abs(correlation).max() < 0.08
    along = [np.corrcoef(seen[:-1, j], seen[1:, j])[0, 1] for j in range(9)]
    assert np.abs(along).max() < 0.08


@pytest.mark.parametrize(("ratio", "hidden"), [(0.25, 2), (0.5, 4), (0.75, 7), (1.0, 9)])
def test_vfs_exact_hides_the_same_number_in_every_row(ratio, hidden):
    seen = shown(streams.prepare(table(3000), f"vfs:{ratio},mode=exact", seed=2).block, 9)
    assert set(seen.sum(axis=1)) == {9 - hidden}
    assert 1 - seen.mean(axis=0) == pytest.approx(np.full(9, hidden / 9), abs=0.05)


def test_vfs_exact_takes_naturally_absent_cells_into_account():
    rows = [{f"c{j}": 1.0 for j in range(10) if (i + j) % 2} for i in range(4000)]
    seen = shown(streams.prepare(Block.from_dicts(rows), "vfs:0.3,mode=exact", shuffle=False).block, 10)
    assert seen.sum(axis=1).mean() == pytest.approx(3.5, abs=0.05)
    assert seen.sum(axis=1).min() >= 2


def test_vfs_min_keeps_that_many_columns():
    block = table(3000)
    assert streams.prepare(block, "vfs:0.9", seed=1).empty > 500
    prepared = streams.prepare(block, "vfs:0.9,min=2", seed=1)
    counts = shown(prepared.block, 9).sum(axis=1)
    assert prepared.empty == 0
    assert counts.min() == 2
    free = shown(streams.prepare(block, "vfs:0.9", seed=1).block, 9)
    assert np.all(shown(prepared.block, 9)[free])


def test_trapezoidal_shows_the_first_columns_in_file_order():
    n, d = 97, 9
    seen = shown(streams.prepare(table(n, d), "trapezoidal", seed=1).block, d)
    for i in range(n):
        width = max(1, math.ceil(d * (10 * i // n + 1) / 10))
        assert list(seen[i]) == [True] * width + [False] * (d - width)
    five = shown(streams.prepare(table(n, d), "trapezoidal:chunks=5", seed=1).block, d)
    assert five[0].sum() == 2
    assert five[-1].all()


def test_capricious_atmost_hides_any_number_up_to_half():
    seen = shown(streams.prepare(table(4000), "capricious:mode=atmost", seed=1).block, 9)
    hidden = 9 - seen.sum(axis=1)
    assert np.bincount(hidden, minlength=10)[5:].sum() == 0
    assert np.bincount(hidden)[:5] == pytest.approx(800, rel=0.15)
    assert seen.mean(axis=0) == pytest.approx(1 - 2 / 9, abs=0.03)


def test_mixed_by_the_text_cuts_at_the_median_and_at_the_mean():
    skewed = [0.0, 0.0, 0.0, 1.0, 9.0, 2.0]
    block = Block.from_dicts([{"a": v, "b": v, "c": v, "d": min(v, 1.0)} for v in skewed], list("ppqqpq"))
    rows = list(streams.prepare(block, "mixed:bins=text,order=bco", shuffle=False).block.rows())
    assert [x["a"] for x in rows] == [0, 0, 0, 1, 1, 1], "above the median, 0.5"
    assert [x["b"] for x in rows] == pytest.approx([v / 9 for v in skewed])
    assert [x["d"] for x in rows] == [0, 0, 0, 1, 1, 1]
    rows = list(streams.prepare(block, "mixed:bins=text,order=ocb", shuffle=False).block.rows())
    assert [x["a"] for x in rows] == [0, 0, 0, 0, 1, 0], "above the mean, 2"
    ones = Block.from_dicts([{"a": v, "b": v, "c": v} for v in (1.0, 1.0, 1.0, 0.0)], list("pqpq"))
    rows = list(streams.prepare(ones, "mixed:bins=text", shuffle=False).block.rows())
    assert [x["a"] for x in rows] == [1, 1, 1, 0], "nothing is above the median"


def test_absences_are_columns_once_the_column_was_seen():
    rows = [{"a": 1.0, "s": "u"}, {"b": 2.0}, {"a": 3.0, "b": 4.0, "s": "v"}, {}]
    block = streams.prepare(Block.from_dicts(rows, list("pqpq")), "absences", shuffle=False).block
    assert list(block.rows()) == [
        {"a": 1.0, "s": "u"},
        {"b": 2.0, "a (absent)": 1.0, "s (absent)": 1.0},
        {"a": 3.0, "b": 4.0, "s": "v"},
        {"a (absent)": 1.0, "b (absent)": 1.0, "s (absent)": 1.0},
    ]
    assert list(block.codes) == [0, 1, 0, 1]


def test_a_stretch_is_consecutive_and_drawn_by_the_seed():
    block = Block.from_dicts([{"a": float(i)} for i in range(100)], ["p", "q"] * 50)
    starts = set()
    for seed in range(30):
        part = streams.prepare(block, "stretch:90+labels:0.5", seed=seed, shuffle=False)
        values = [x["a"] for x in part.block.rows()]
        assert values == [values[0] + i for i in range(90)]
        assert list(part.block.codes) == list(block.codes[int(values[0]) : int(values[0]) + 90])
        starts.add(values[0])
    assert starts <= {float(i) for i in range(11)}
    assert len(starts) > 5
    shuffled = [x["a"] for x in streams.prepare(block, "stretch:60", seed=1).block.rows()]
    assert len(set(shuffled)) == 60
    assert shuffled != sorted(shuffled)
    assert same(streams.prepare(block, "stretch:100", shuffle=False).block, block)
    with pytest.raises(ParameterError, match=r"whole number >= 1\. Got 0"):
        streams.prepare(block, "stretch:0")


def test_capricious_pairs_hides_one_of_each_two_neighbours():
    seen = shown(streams.prepare(table(2000), "capricious:mode=pairs", seed=1).block, 9)
    assert np.all(seen[:, 0:8:2] != seen[:, 1:8:2])
    assert np.all(seen[:, 8])
    assert seen[:, 0:8:2].mean(axis=0) == pytest.approx(np.full(4, 0.5), abs=0.05)
    even = shown(streams.prepare(table(200, 8), "capricious:mode=pairs", seed=1).block, 8)
    assert np.all(even.sum(axis=1) == 4)


def test_informative_depends_on_the_label_in_half_of_the_columns():
    block = streams.prepare(table(9000, 8), "informative:0.2,0.6", seed=1).block
    seen = shown(block, 8)
    by_class = [1 - seen[block.codes == c].mean(axis=0) for c in (0, 1)]
    chosen = np.abs(by_class[0] - by_class[1]) > 0.2
    assert chosen.sum() == 4
    assert by_class[0][chosen] == pytest.approx(np.full(4, 0.2), abs=0.04)
    assert by_class[1][chosen] == pytest.approx(np.full(4, 0.6), abs=0.04)
    assert by_class[0][~chosen] == pytest.approx(np.full(4, 0.5), abs=0.04)
    assert not np.array_equal(
        chosen, _informative_half(streams.prepare(table(9000, 8), "informative:0.2,0.6", seed=2).block)
    )


def test_informative_in_the_first_half_of_the_columns():
    first = streams.prepare(table(9000, 8), "informative:0.6,0.2,half=first", seed=1).block
    assert _informative_half(first).tolist() == [True] * 4 + [False] * 4
    hidden = [1 - shown(first, 8)[first.codes == c].mean(axis=0)[:4] for c in (0, 1)]
    assert hidden[0] == pytest.approx(np.full(4, 0.6), abs=0.04)
    assert hidden[1] == pytest.approx(np.full(4, 0.2), abs=0.04)
    with pytest.raises(ParameterError, match="half must be one of random, first"):
        streams.prepare(table(10, 2), "informative:half=last")


def _informative_half(block):
    seen = shown(block, 8)
    return np.abs(seen[block.codes == 0].mean(axis=0) - seen[block.codes == 1].mean(axis=0)) > 0.2


@pytest.mark.parametrize("spec", ["vfs:0.5", "vfs:0.5,mode=exact", "capricious:mode=pairs", "trapezoidal"])
def test_indicators_of_a_column_go_together(spec):
    rows = [{"a": 1.0, "b=x": 1.0, "b=y": 0.0, "c": 2.0} for _ in range(500)]
    block = Block.from_dicts([{"a": 1.0, "b": "x"}, {"b": "y", "c": 1.0}])
    block = Block(
        block.vocabulary,
        np.arange(0, 2001, 4),
        np.tile([block.vocabulary.id_of(name) for name in rows[0]], 500),
        np.tile(list(rows[0].values()), 500),
    )
    kept = streams.prepare(block, spec, seed=1).block
    pairs = [("b=x" in row, "b=y" in row) for row in kept.rows(indicators=True)]
    assert {(True, True), (False, False)} == set(pairs)


def test_balanced_repeats_rows_of_the_smaller_class():
    block = table(399)
    result = streams.prepare(block, "balanced", seed=1).block
    assert np.bincount(result.codes).tolist() == [266, 266]
    originals = set(map(repr, block.rows()))
    assert set(map(repr, result.rows())) == originals
    other = streams.prepare(block, "balanced", seed=2).block
    assert sorted(map(repr, result.rows())) == sorted(map(repr, other.rows()))


def test_mixed_converts_thirds():
    block = table(500, 10)
    x = Columns(streams.prepare(block, "mixed", shuffle=False).block).dense()
    raw = Columns(block).dense()
    assert set(x[:, :3].ravel()) == {0.0, 1.0}
    assert np.array_equal(x[:, 0], raw[:, 0] > (raw[:, 0].min() + raw[:, 0].max()) / 2)
    assert x[:, 3:7].min(axis=0).tolist() == [0.0] * 4
    assert x[:, 3:7].max(axis=0).tolist() == [1.0] * 4
    assert set(x[:, 7:].ravel()) <= {0.0, 1.0, 2.0, 3.0, 4.0}
    assert (x[:, 8].min(), x[:, 8].max()) == (0.0, 4.0)
    continuous_first = Columns(streams.prepare(block, "mixed:order=cbo", shuffle=False).block).dense()
    assert set(continuous_first[:, 3:7].ravel()) == {0.0, 1.0}
    quantiles = Columns(streams.prepare(block, "mixed:bins=quantile", shuffle=False).block).dense()
    assert np.bincount(quantiles[:, 9].astype(int)).tolist() == [100] * 5
    assert same(streams.prepare(block, "mixed:order=none", shuffle=False).block, block)


def test_zscore_uses_observed_values_only():
    rows = [{"a": float(i), "b": 7.0, "s": "u"} if i % 2 else {"b": 7.0} for i in range(100)]
    out = list(streams.zscore(Block.from_dicts(rows)).rows())
    a = np.array([row["a"] for row in out if "a" in row])
    assert a.mean() == pytest.approx(0, abs=1e-12)
    assert a.std() == pytest.approx(1)
    assert {row["b"] for row in out} == {0.0}
    assert out[1]["s"] == "u"


def test_delay_is_passed_on():
    assert streams.prepare(table(10), "vfs:0.5+delay:7").delay == 7


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ("vsf:0.5", UnknownNameError, "did you mean vfs"),
        ("vfs", ParameterError, "needs ratio"),
        ("vfs:1.5", ParameterError, "between 0 and 1. Got 1.5"),
        ("vfs:half", ParameterError, "must be a number. Got 'half'"),
        ("vfs:0.5,mode=best", ParameterError, "bernoulli, exact"),
        ("vfs:0.5,colour=red", ParameterError, "no parameter 'colour'"),
        ("uninformative:3", ParameterError, "one value too many"),
        ("trapezoidal:0", ParameterError, ">= 1"),
        ("mixed:order=bbc", ParameterError, "order must be"),
        ("delay:-1", ParameterError, ">= 0"),
        ("balanced:seed=-1", ParameterError, "seed must be"),
    ],
)
def test_wrong_spellings_say_what_is_right(spec, error, words):
    with pytest.raises(error, match=words):
        streams.prepare(table(10), spec)


def test_seeds_are_not_negative():
    with pytest.raises(ParameterError, match=r"seed must be a whole number >= 0. Got -1"):
        streams.prepare(table(10), seed=-1)


def test_only_blocks_are_prepared():
    with pytest.raises(DataError, match="list"):
        streams.prepare([{"a": 1}])


def texts(n, words=3000):
    """Rows with few of many columns."""
    draw = np.random.default_rng(1)
    rows = [{f"c{j}": 1.0 for j in sorted(draw.choice(words, 30, replace=False).tolist())} for _ in range(n)]
    return Block.from_dicts(rows, ["no" if i % 3 else "yes" for i in range(n)])


@pytest.mark.parametrize("block", [table(300), table(300, nominal=(2, 5)), table(300, 150), texts(300)])
@pytest.mark.parametrize(
    "mask",
    [
        lambda start, n, d, seed: masks.Bernoulli(np.full((1, d), 0.6), np.zeros(n, dtype=np.int32), seed),
        lambda start, n, d, seed: masks.Bernoulli(np.full((1, d), 0.6), np.zeros(n, dtype=np.int32), seed, 2),
        lambda start, n, d, seed: masks.Bernoulli(np.linspace(0, 1, d)[None, :], np.zeros(n, dtype=np.int32), seed),
        lambda start, n, d, seed: masks.Exact(d, d // 3, n, seed, True),
        lambda start, n, d, seed: masks.Exact(d, d // 2, n, seed, True, True),
        lambda start, n, d, seed: masks.Pairs(d, seed),
        lambda start, n, d, seed: masks.Spans(
            np.arange(d) % 200, np.arange(d) % 200 + 100, np.full(d, 0.7), start, n, seed
        ),
    ],
)
def test_masks_do_not_depend_on_where_a_stream_is_cut_or_how_its_rows_lie(mask, block):
    columns = Columns(block)
    d = columns.width
    whole = _apply_mask.masked(block, mask(0, 300, d, 7), columns)
    starts = range(0, 300, 77)
    parts = [_apply_mask.masked(block[a : a + 77], mask(a, 77, d, 7), columns, None, a) for a in starts]
    assert same(concatenate(parts), whole)
    order = np.random.default_rng(0).permutation(300)
    assert same(_apply_mask.masked(block, mask(0, 300, d, 7), columns, order),
                _apply_mask.masked(block.take(order), mask(0, 300, d, 7), columns))  # fmt: skip


@pytest.mark.parametrize("spec", ["vfs:0.5", "vfs:0.9", "vfs:0.98", "bursts", "bursts:zipf=0.1"])
def test_shown_cells_keep_their_numbers_however_many_a_row_shows(spec):
    draw = np.random.default_rng(3)
    widths = np.where(np.arange(60) % 5 == 0, 3000, 40)
    ids = [1 + np.sort(draw.choice(30_000, width, replace=False)) for width in widths]
    vocabulary = Block.from_dicts([dict.fromkeys((f"c{j}" for j in range(30_000)), 1.0)]).vocabulary
    indptr = np.concatenate([[0], np.cumsum(widths)])
    block = Block(vocabulary, indptr, np.concatenate(ids), np.arange(indptr[-1]) + 0.5)
    masked = streams.prepare(block, spec, seed=4, shuffle=False).block
    assert 0 < len(masked.indices) < len(block.indices)
    for seen, whole in zip(masked.rows(), block.rows(), strict=True):
        assert seen.items() <= whole.items()


@pytest.mark.parametrize("unused", [[], [1], [7], [40], [1, 2, 3, 20, 39, 40]])
def test_occurring_marks_the_ids_that_are_stored(unused):
    vocabulary = Block.from_dicts([{f"c{j}": 1.0 for j in range(40)}]).vocabulary
    draw = np.random.default_rng(5)
    # the last id comes late, when all before it have been seen many times
    ids = np.append(draw.choice(np.setdiff1d(np.arange(1, 40), unused), 5000), sorted({30, 40} - set(unused)))
    block = Block(vocabulary, np.arange(len(ids) + 1), ids, np.ones(len(ids)))
    found = np.flatnonzero(_apply_mask.occurring(block, vocabulary.size))
    assert found.tolist() == sorted(set(range(1, 41)) - set(unused))
    assert not _apply_mask.occurring(block[:0], vocabulary.size).any()


@pytest.mark.parametrize("spec", ["vfs:0.5,mode=exact", "vfs:0.9,min=3", "capricious:mode=pairs", "informative",
                                  "rotating", "silent:rows=20", "bursts"])  # fmt: skip
@pytest.mark.parametrize("unused", [["b"], ["c1500x"], ["d"]])
@pytest.mark.parametrize("make", [table, texts])
def test_names_that_never_occur_change_no_mask(make, unused, spec):
    block = make(300)
    names = sorted({str(name) for name in Columns(block).names} | set(unused))
    with_unused = Block.from_dicts(
        [dict.fromkeys(names, 1.0), *block.rows()], ["no", *block.y]
    )[1:]  # fmt: skip
    ordered = Block.from_dicts([dict.fromkeys([n for n in names if n not in unused], 1.0), *block.rows()],
                               ["no", *block.y])[1:]  # fmt: skip
    assert with_unused.vocabulary.size == ordered.vocabulary.size + 1
    masked = [list(streams.prepare(b, spec, seed=2).block.rows()) for b in (with_unused, ordered)]
    assert masked[0] == masked[1]
    assert any(masked[0])


@pytest.mark.parametrize("make", [table, texts])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_rates_hold_for_rows_of_many_and_of_few_columns(make, share):
    block = make(3000)
    columns = Columns(block)
    shown = np.linspace(0, 1, columns.width)
    masked = _apply_mask.masked(block, masks.Bernoulli(shown[None, :], np.zeros(3000, np.int32), 3), columns)
    for low in (0.0, share):
        chosen = (shown >= low) & (shown <= low + 0.15)
        wanted = shown[columns.position[block.indices]][chosen[columns.position[block.indices]]]
        kept = np.count_nonzero(chosen[columns.position[masked.indices]])
        assert kept == pytest.approx(wanted.sum(), abs=4 * math.sqrt((wanted * (1 - wanted)).sum() + 1))


def test_exact_draws_every_subset_alike():
    block = table(20_000, 5)
    seen = shown(streams.prepare(block, "vfs:0.4,mode=exact", seed=1).block, 5)
    subsets, counts = np.unique(seen @ (1 << np.arange(5)), return_counts=True)
    assert len(subsets) == 10
    assert np.abs(counts - 2000).max() < 4.5 * math.sqrt(2000)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ParameterError, match="seed must be a whole number >= 0"):
        streams.prepare(table(10), "none", seed=seed)


def test_a_scenario_is_a_string():
    with pytest.raises(ParameterError, match="a scenario is a string"):
        streams.prepare(table(10), None)


def test_what_is_prepared_is_a_stream():
    prepared = streams.prepare(table(10), "delay:3")
    assert isinstance(prepared, streams.Stream)
    (block,) = prepared.blocks()
    assert list(block.rows()) == list(prepared.block.rows())
    assert (prepared.delay, prepared.scored_from, prepared.once) == (3, 0, False)


@pytest.mark.parametrize(
    "spec", ["trapezoidal:10000000000", "rotating:1,99999999999999999999", "bursts:inf", "bursts:0.5,nan", "bursts:nan"]
)
def test_parameters_without_bound_are_rejected(spec):
    with pytest.raises(ParameterError, match="must be"):
        streams.prepare(table(10), spec)


def test_more_chunks_than_rows_and_columns():
    prepared = streams.prepare(table(10), "trapezoidal:1000000", shuffle=False)
    assert [len(x) for x in prepared.block.rows()] == sorted(len(x) for x in prepared.block.rows())


@pytest.mark.parametrize("call", [streams.zscore, lambda given: datasets.export(given, io.StringIO()),
                                  lambda given: evaluate.repeat(OLVF, given, scale="paper")])  # fmt: skip
def test_what_takes_a_block_reports_it(call):
    with pytest.raises(DataError, match="needs a Block"):
        call(None)
