import json
import math
import re

import numpy as np
import pytest

import varifold
from varifold.errors import DataError, FeatureNameError, FeatureValueError, ParameterError
from varifold.monitor import Monitor
from varifold.monitor.column import REGULAR, Column
from varifold.monitor.drift import LEVELS
from varifold.monitor.events import EventLog
from varifold.monitor.units import unit_change


def follow(rows, **params):
    monitor = Monitor(**params)
    for row in rows:
        monitor.learn_one(row)
    monitor.check()
    return monitor


def kinds(monitor):
    return [event.kind for event in monitor.events]


def sensors(n, seed=0, width=6, present=0.8):
    rng = np.random.default_rng(seed)
    values, here = rng.normal(size=(n, width)), rng.random((n, width)) < present
    return [{f"s{j}": float(values[i, j]) for j in range(width) if here[i, j]} for i in range(n)]


def test_an_unchanged_stream_has_no_events():
    assert kinds(follow(sensors(8000))) == []


def test_a_group_that_falls_silent_is_one_event_and_its_return_another():
    rows = sensors(3000)
    for row in rows[1000:2000]:
        for name in ("s1", "s2", "s3"):
            row.pop(name, None)
    monitor = follow(rows)
    silence, back = monitor.events
    assert (silence.kind, sorted(silence.features)) == ("silence", ["s1", "s2", "s3"])
    assert 990 <= silence.step <= 1001
    assert silence.detected <= 1100
    assert (back.kind, sorted(back.features)) == ("return", ["s1", "s2", "s3"])
    assert monitor.features["s1"].status == "present"
    assert monitor.features["s1"].share == pytest.approx(0.8, abs=0.03)  # the silence that was announced is left out


def test_silence_begins_after_the_longest_usual_absence():
    column = Column("a", 1, 1e4)
    column.see(list(range(1, 101)))
    assert [column.falls_silent(now) for now in (100 + REGULAR, 101 + REGULAR, 102 + REGULAR)] == [False, True, False]


def test_the_latest_thousand_events_are_kept():
    log = EventLog()
    for i in range(1, 1_101):
        log.add("stuck", i, i, "a")
    assert [event.step for event in log] == list(range(101, 1_101))


def test_silence_is_judged_by_the_past_of_the_feature():
    rows = sensors(4000, present=0.9)
    for i, row in enumerate(rows):
        if i % 200 == 0:
            row["daily"] = 1.0
    rows[3000:] = [{k: v for k, v in row.items() if k != "s0"} for row in rows[3000:]]
    monitor = follow(rows)
    assert [e.features for e in monitor.events] == [["s0"]]
    assert monitor.features["s0"].status == "gone"
    assert monitor.features["daily"].status == "present"


def test_births_that_come_together_are_one_event():
    rows = sensors(2000)
    for row in rows[1200:]:
        row.update({"new a": 1.0, "new b": 2.0})
    (birth,) = follow(rows).events
    assert (birth.kind, birth.step, sorted(birth.features)) == ("birth", 1201, ["new a", "new b"])


def test_a_rare_word_is_not_a_birth():
    rows = sensors(2000)
    for i in range(1200, 2000):
        rows[i][f"word {i}"] = 1.0
    assert kinds(follow(rows)) == []


@pytest.mark.parametrize(
    ("change", "kind", "detail"),
    [
        (lambda v: v + 1.0, "drift", "higher"),
        (lambda v: v - 1.0, "drift", "lower"),
        (lambda v: 2.5 * v, "drift", "wider"),
        (lambda v: 0.3 * v, "drift", "narrower"),
        (lambda v: v + 100.0, "drift", "out of range"),
        (lambda v: 0.25, "stuck", "at 0.25"),
    ],
)
def test_changes_of_values_are_noticed_with_their_direction(change, kind, detail):
    rows = sensors(4000, width=2)
    for row in rows[2000:]:
        if "s0" in row:
            row["s0"] = change(row["s0"])
    event = next(e for e in follow(rows).events if e.kind == kind)
    assert event.features == ["s0"]
    assert event.detail["s0"].startswith(detail)
    assert 1800 <= event.step <= 2100
    assert event.detected <= 2400


def test_a_unit_change_is_named():
    rng = np.random.default_rng(1)
    rows = [{"temp": float(v)} for v in rng.normal(18.0, 5.0, size=3000)]
    for row in rows[1500:]:
        row["temp"] = 1.8 * row["temp"] + 32.0
    event = next(e for e in follow(rows).events if e.kind == "unit change")
    assert event.detail["temp"] == "degrees Celsius to Fahrenheit"


def test_a_scale_that_changes_among_many_zeros_is_no_unit_change():
    """Rain: two days of three are dry, and the wet ones of another month are wetter."""
    rng = np.random.default_rng(4)
    rain = np.where(rng.random(600) < 0.35, rng.exponential(2.0, 600), 0.0)
    wetter = np.where(rng.random(600) < 0.35, rng.exponential(4.4, 600), 0.0)
    assert unit_change(np.quantile(rain, LEVELS), np.quantile(wetter, LEVELS), 256) is None


def test_values_that_never_settle_may_still_change_their_unit():
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(1013.0, 8.0, size=20), 600) + rng.normal(size=12_000)
    level[9000:] *= 0.02953
    monitor = follow([{"pressure": float(v)} for v in level])
    assert monitor.features["pressure"].wanders
    (event,) = [e for e in monitor.events if e.step > 8900]
    assert event.kind == "drift"
    assert event.detail["pressure"].startswith("out of range")
    assert event.step <= 9010


def test_texts_among_numbers_that_never_settle_hide_no_jump():
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(1013.0, 8.0, size=20), 600) + rng.normal(size=12_000)
    level[9000:] *= 0.02953
    rows = [{"pressure": float(v)} for v in level]
    for at in range(11_990, -1, -10):
        rows.insert(at, {"pressure": f"fault {at // 4000}"})
    monitor = follow(rows)
    assert monitor.features["pressure"].wanders
    (event,) = [e for e in monitor.events if e.kind == "drift" and e.step > 9000]
    assert event.detail["pressure"].startswith("out of range")
    assert 9890 <= event.step <= 9910


def test_categories_drift_too():
    rng = np.random.default_rng(1)
    rows = [{"site": rng.choice(["a", "b", "c"] if i < 2000 else ["b", "c", "d"])} for i in range(4000)]
    rows = [{"site": str(row["site"])} for row in rows]
    (event,) = follow(rows).events
    assert (event.kind, event.features) == ("drift", ["site"])
    text, before, after = re.fullmatch(r"'(.)' (\d+)%, recently (\d+)%", event.detail["site"]).groups()
    assert (text, before) in {("a", "33"), ("a", "32"), ("d", "0")}
    assert abs(int(after) - 33 * (text == "d")) < 12


def test_an_event_names_what_changed():
    rng = np.random.default_rng(1)
    rows = [
        {
            "wide": float(rng.normal() * (1 if i < 3000 else 4)),
            "rain": float(rng.random() < (0.02 if i < 3000 else 0.3)),
        }
        for i in range(4000)
    ]
    drifts = [event for event in follow(rows).events if event.kind == "drift"]
    detail = {name: text for event in drifts for name, text in event.detail.items()}
    assert re.fullmatch(r"wider: most values -1\.\d+ to 1\.\d+, recently -[2-5].* to [2-5].*", detail["wide"])
    assert detail["rain"] in (
        "higher: most values 0 to 0, recently 0 to 1",
        "wider: most values 0 to 0, recently 0 to 1",
    )


def test_values_that_depend_on_their_predecessors_are_no_drift():
    rng = np.random.default_rng(3)
    rows = [
        {"cycle": math.sin(i * 2 * math.pi / 96) + 0.2 * float(e), "steady": 1.0}
        for i, e in enumerate(rng.normal(size=10_000))
    ]
    assert kinds(follow(rows)) == []


def test_values_that_never_settle_are_reported_a_few_times_only():
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(scale=8.0, size=20), 600)
    monitor = follow([{"level": float(v)} for v in level + rng.normal(size=12_000)])
    assert monitor.features["level"].wanders
    assert 0 < len(monitor.events) < 8


def renamed(rows, cut, names, convert=lambda v: v):
    return [
        row if i < cut else {names.get(k, k): convert(v) if k in names else v for k, v in row.items()}
        for i, row in enumerate(rows)
    ]


def plant(n, seed):
    rng = np.random.default_rng(seed)
    load, wind = rng.normal(size=n), rng.normal(size=n)
    return [
        {
            "load": float(load[i]),
            "wind": float(wind[i]),
            "heat": float(20 + 4 * load[i] + rng.normal()),
            "flow": float(20 + 4 * wind[i] + rng.normal()),
            "mode": "night" if rng.random() < 0.3 else "day",
        }
        for i in range(n)
    ]


def test_renames_are_suggested_by_correlations_where_distributions_are_equal():
    rows = renamed(plant(3000, 0), 1500, {"heat": "h2", "flow": "f2"})
    monitor = follow(rows)
    assert {r.old: r.new for r in monitor.renames} == {"heat": "h2", "flow": "f2"}
    assert all(r.evidence["correlations"] > 0.8 for r in monitor.renames)


def test_a_rename_with_another_unit_is_suggested_with_the_unit():
    rows = renamed(plant(3000, 0), 1500, {"heat": "h2"}, lambda v: 1.8 * v + 32.0)
    (rename,) = follow(rows).renames
    assert (rename.old, rename.new, rename.unit) == ("heat", "h2", "degrees Celsius to Fahrenheit")


def test_a_feature_that_ends_and_an_unlike_one_that_begins_are_no_rename():
    rng = np.random.default_rng(5)
    rows = plant(3000, 0)
    for i, row in enumerate(rows):
        if i >= 1500:
            del row["heat"]
            row["price"] = float(rng.exponential(3.0))
    monitor = follow(rows)
    assert monitor.renames == []
    assert sorted(kinds(monitor)) == ["birth", "silence"]


def test_a_suggested_rename_keeps_what_a_learner_knows():
    rows = renamed(plant(3000, 0), 1500, {"heat": "h2"})
    model = varifold.AROW()
    model.learn_many(rows[:1500], [row["load"] > 0 for row in rows[:1500]])
    (rename,) = follow(rows).renames
    before = model.predict_proba_one({"heat": 28.0})
    model.rename({rename.old: rename.new})
    assert model.predict_proba_one({"h2": 28.0}) == before


def test_a_monitor_continues_equal_after_dump_and_restore():
    rows = renamed(plant(3000, 0), 1500, {"heat": 7}) + sensors(1000)
    straight, saved = Monitor(), Monitor()
    for i, row in enumerate(rows):
        straight.learn_one(row)
        saved.learn_one(row)
        if i % 617 == 0:
            saved = Monitor.restored(json.loads(json.dumps(saved.dump())))
    assert saved.dump() == straight.dump()
    assert saved.events == straight.events


def test_key_order_does_not_matter():
    rows = renamed(plant(2500, 0), 1200, {"heat": "h2"})
    shuffled = [dict(reversed(row.items())) for row in rows]
    assert follow(rows).report() == follow(shuffled).report()


def test_frames_and_dicts_lead_to_the_same_report():
    import pandas as pd

    rows = sensors(500)
    from_frame = Monitor()
    from_frame.learn_many(pd.DataFrame(rows))
    from_frame.check()
    assert from_frame.report() == follow(rows).report()


def test_memory_is_bounded_by_max_features():
    monitor = Monitor(max_features=30)
    for i in range(2000):
        monitor.learn_one({f"w{i + k}": 1.0 for k in range(5)} | {"steady": float(i % 7)})
    assert len(monitor.features) <= 30
    assert "steady" in monitor.features


def test_presence_is_the_share_of_each_stretch():
    rows = [{"always": 1.0} | ({"late": 2.0} if i >= 6000 else {}) for i in range(12_000)]
    names, starts, shares = follow(rows).presence()
    assert names == ["always", "late"]
    assert len(starts) <= 96
    np.testing.assert_allclose(shares[0], 1.0)
    assert abs(float(shares[1].mean()) - 0.5) < 0.02


@pytest.mark.parametrize(
    ("x", "error"),
    [
        ({"a": math.inf}, FeatureValueError),
        ({"a": [1]}, FeatureValueError),
        ({"a": 10**400}, FeatureValueError),
        ({1.5: 1.0}, FeatureNameError),
        ([1, 2], DataError),
    ],
)
def test_a_rejected_instance_changes_nothing(x, error):
    monitor = follow(sensors(130))
    before = monitor.dump()
    with pytest.raises(error, match="step 131"):
        monitor.learn_one(x)
    assert monitor.dump() == before


def test_absent_values_are_absent():
    rows = [{"a": 1.0 if i % 2 else None, "b": math.nan} for i in range(200)]
    monitor = follow(rows)
    assert list(monitor.features) == ["a"]
    assert monitor.features["a"].count == 100


@pytest.mark.parametrize("params", [{"every": 0}, {"every": 1.5}, {"false_alarm": 0.0}, {"max_features": True}])
def test_wrong_parameters_are_rejected(params):
    with pytest.raises(ParameterError, match=next(iter(params))):
        Monitor(**params)


def test_an_int_that_has_no_text_is_rejected() -> None:
    monitor = Monitor()
    with pytest.raises(FeatureValueError, match="an int too large for a float"):
        monitor.learn_one({"a": 10**5000})
    with pytest.raises(FeatureNameError, match="has 16,610 bits"):
        monitor.learn_one({10**5000: 1.0})
    assert monitor.step == 0


def test_a_rename_is_withdrawn_once_both_columns_are_in_one_instance():
    rows = renamed(plant(3000, seed=2), 1000, {"heat": "warmth"})
    monitor = follow(rows[:2500])
    assert [(r.old, r.new) for r in monitor.renames] == [("heat", "warmth")]
    rows = rows[:2500] + [row | {"heat": row["warmth"]} for row in rows[2500:]]
    monitor = follow(rows)
    assert monitor.renames == []
    (event,) = [e for e in monitor.events if e.kind == "rename"]
    assert event.detail == {"warmth": "looked like heat, but both are in instance 2,501"}
    assert monitor.features["heat"].status == "present"
    assert follow(rows[2400:], every=10).renames == []
