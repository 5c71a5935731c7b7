"""Scenarios in which whole features come and go."""

import numpy as np
import pytest

from varifold import Block, streams
from varifold.errors import DataError, ParameterError


def table(n=200, d=9):
    rows = [{f"c{j}": float(10 * i + j + 1) for j in range(d)} for i in range(n)]
    return Block.from_dicts(rows, ["a" if i % 3 else "b" for i in range(n)])


def names_by_row(block):
    return [set(row) for row in block.rows()]


def test_evolvable_switches_from_one_space_to_a_linear_map_of_it():
    block = table(200, 9)
    prepared = streams.prepare(block, "evolvable:overlap=10,ratio=0.7", seed=1)
    seen = names_by_row(prepared.block)
    old, new = {f"c{j}" for j in range(9)}, {f"new{j}" for j in range(1, 7)}
    assert prepared.scored_from == 100
    assert all(names == old for names in seen[:90])
    assert all(names == old | new for names in seen[90:100])
    assert all(names == new for names in seen[100:])
    rows = list(prepared.block.rows())
    both = np.array([[row[name] for name in sorted(old)] for row in rows[90:100]])
    mapped = np.array([[row[name] for name in sorted(new)] for row in rows[90:100]])
    assert both.min() >= 0
    assert both.max() <= 1
    solution, *_ = np.linalg.lstsq(both, mapped, rcond=None)
    assert both @ solution == pytest.approx(mapped)
    other = streams.prepare(block, "evolvable", seed=2).block
    assert not np.array_equal(other.values, prepared.block.values)


def test_evolvable_without_the_old_space():
    rows = [{"a": float(i), "b": float(i % 3), "c": float(i % 7)} for i in range(40)]
    block = streams.prepare(Block.from_dicts(rows, [0, 1] * 20), "evolvable:overlap=20,show=new", shuffle=False).block
    both = streams.prepare(Block.from_dicts(rows, [0, 1] * 20), "evolvable:overlap=20", shuffle=False).block
    assert all(set(x) == {"new1", "new2"} for x in block.rows())
    new = [{name: v for name, v in x.items() if name.startswith("new")} for x in both.rows()]
    assert list(block.rows()) == new


@pytest.mark.parametrize(("scaling", "low", "high"), [("unit", 0.0, 1.0), ("symmetric", -1.0, 1.0)])
def test_evolvable_scales_to_a_range(scaling, low, high):
    rows = [{"a": float(t), "b": float(t * t % 17), "c": 5.0} for t in range(40)]
    block = streams.prepare(
        Block.from_dicts(rows, [0, 1] * 20), f"evolvable:overlap=20,scaling={scaling}", shuffle=False
    ).block
    values = [row["a"] for row in block[:20].rows()]
    assert values == pytest.approx([low + (high - low) * t / 39 for t in range(20)])
    assert {row["c"] for row in block[:20].rows()} == {low}


def test_evolvable_standardises_and_rejects_other_words():
    rows = [{"a": float(t), "c": 5.0} for t in range(40)]
    block = streams.prepare(Block.from_dicts(rows, [0, 1] * 20), "evolvable:scaling=standard", shuffle=False).block
    values = [row["a"] for row in block[:20].rows()]
    assert values == pytest.approx([(t - 19.5) / np.std(range(40)) for t in range(20)])
    assert {row["c"] for row in block[:20].rows()} == {0.0}
    with pytest.raises(ParameterError, match="scaling must be one of unit, symmetric, standard"):
        streams.prepare(Block.from_dicts(rows, [0, 1] * 20), "evolvable:scaling=other")


def test_evolvable_codes_strings_and_drops_incomplete_rows():
    rows = [{"s": level, "x": 1.0 * i} for i, level in enumerate(["red", "blue", "green"] * 10)] + [{"s": "red"}] * 3
    prepared = streams.prepare(Block.from_dicts(rows), "evolvable:overlap=0", shuffle=False)
    assert len(prepared.block) == 30
    assert [row["s"] for row in prepared.block[:3].rows()] == [1.0, 0.0, 0.5]
    with pytest.raises(DataError, match="complete rows"):
        streams.prepare(Block.from_dicts([{"a": 1.0}, {"b": 1.0}]), "evolvable")


def test_outage_takes_neighbours_away_and_brings_them_back():
    seen = names_by_row(streams.prepare(table(), "outage:share=0.3,start=0.25,stop=0.5", seed=1).block)
    full = {f"c{j}" for j in range(9)}
    gone = full - seen[60]
    places = sorted(int(name[1:]) for name in gone)
    assert len(places) == 3
    assert places[-1] - places[0] == 2
    assert all(names == (full - gone if 50 <= i < 100 else full) for i, names in enumerate(seen))


def test_rotating_spaces_are_disjoint_and_return():
    seen = names_by_row(streams.prepare(table(180), "rotating:spaces=3,rounds=2", seed=1).block)
    chunks = [seen[30 * c] for c in range(6)]
    assert all(names == chunks[i // 30] for i, names in enumerate(seen))
    assert chunks[:3] == chunks[3:]
    assert sorted(set().union(*chunks[:3])) == [f"c{j}" for j in range(9)]
    assert sum(map(len, chunks[:3])) == 9


def test_bursts_have_one_life_each_and_differ_in_popularity():
    block = streams.prepare(table(3000, 9), "bursts:life=0.5,zipf=0", seed=1).block
    shown = [[name in row for row in block.rows()] for name in (f"c{j}" for j in range(9))]
    for column in shown:
        assert np.count_nonzero(np.diff(np.concatenate([[0], column, [0]]))) <= 2
    assert len({sum(column) for column in shown}) > 5
    popular = streams.prepare(table(3000, 9), "bursts:life=1e6,zipf=1", seed=1).block
    counts = np.sort(np.bincount(popular.indices)[1:])[::-1]
    alive = counts / 3000
    assert alive == pytest.approx([1 / r for r in range(1, 10)], abs=0.04)


def test_steps_compose_from_left_to_right():
    prepared = streams.prepare(table(400), "outage+vfs:0.5+delay:3", seed=1)
    assert prepared.delay == 3
    single = names_by_row(streams.prepare(table(400), "outage", seed=1).block)
    both = names_by_row(prepared.block)
    assert all(b <= s for b, s in zip(both, single, strict=True))
    assert sum(map(len, both)) == pytest.approx(0.5 * sum(map(len, single)), rel=0.1)
    twice = streams.prepare(table(2000), "vfs:0.5+vfs:0.5", seed=1).block
    assert len(twice.indices) == pytest.approx(2000 * 9 / 4, rel=0.05)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("outage:share=0", "share"),
        ("outage:start=0.9,stop=0.1", "start=0.9"),
        ("rotating:spaces=20", "more than the number of columns, 9"),
        ("bursts:life=0", "life"),
        ("evolvable:ratio=2", "ratio"),
        ("evolvable:overlap=-1", "overlap"),
    ],
)
def test_wrong_parameters_are_named(spec, words):
    with pytest.raises(ParameterError, match=words):
        streams.prepare(table(20), spec)


def test_every_scenario_is_described():
    assert set(streams.scenarios()) >= {"vfs", "evolvable", "bursts", "none"}
    assert all(streams.scenarios().values())


def test_silent_groups_change_only_between_stretches():
    seen = names_by_row(streams.prepare(table(2000, 9), "silent:groups=3,share=0.4,rows=50", seed=2).block)
    stretches = [seen[i : i + 50] for i in range(0, 2000, 50)]
    assert all(names == stretch[0] for stretch in stretches for names in stretch)
    assert all(len(stretch[0]) in (3, 6, 9) for stretch in stretches)  # never all silent
    groups = {frozenset(stretch[0]) for stretch in stretches if len(stretch[0]) == 3}
    assert len(groups) == 3
    assert sum(map(len, groups)) == 9
    shown = np.mean([len(stretch[0]) / 9 for stretch in stretches])
    assert 0.5 < shown < 0.8
    assert all(names_by_row(streams.prepare(table(40, 2), "silent:groups=9", seed=1).block))


@pytest.mark.parametrize("spec", ["silent:groups=0", "silent:rows=0", "silent:share=2"])
def test_silent_rejects_what_it_cannot_do(spec):
    with pytest.raises(ParameterError, match="groups and rows must be >= 1 and share from 0 to 1"):
        streams.prepare(table(), spec)


def test_a_sample_keeps_shares_and_the_rare_label():
    labels = ["odd" if i < 30 else "usual" for i in range(1000)]
    block = Block.from_dicts([{"a": float(i)} for i in range(1000)], labels)
    one, again, other = (streams.prepare(block, "sample:200,least=10", seed=seed).block for seed in (1, 1, 2))
    assert len(one) == 200
    counts = {label: int((one.codes == one.labels.values.index(label)).sum()) for label in ("odd", "usual")}
    assert counts == {"odd": 10, "usual": 190}
    rows = [[x["a"] for x in each.rows()] for each in (one, again, other)]
    assert rows[0] == rows[1]
    assert set(rows[0]) != set(rows[2])
    assert len(set(rows[0])) == 200
    assert len(streams.prepare(block, "sample:2000").block) == 1000
    plenty = streams.prepare(block, "sample:500,least=0", seed=3).block
    assert int((plenty.codes == plenty.labels.values.index("odd")).sum()) == 15
    with pytest.raises(ParameterError, match="rows must be >= 1"):
        streams.prepare(block, "sample:0")
    with pytest.raises(DataError, match="label in every row"):
        streams.prepare(Block.from_dicts([{"a": 1.0}] * 5, [1, None, 1, 1, 1]), "sample:3")
