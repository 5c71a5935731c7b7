import csv
import json
import tracemalloc

import numpy as np

from varifold.cli import main


def write(path, n=2000, cut=1000):
    rng = np.random.default_rng(0)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["load", "<b>heat</b>", "celsius", "fahrenheit"])
        for i in range(n):
            load, value = rng.normal(), rng.normal(20.0, 5.0)
            temp = [f"{value:.3f}", ""] if i < cut else ["", f"{1.8 * value + 32:.3f}"]
            writer.writerow([f"{load:.3f}", f"{3 * load + rng.normal():.3f}" if not 400 <= i < 700 else "", *temp])


def test_watch_prints_features_events_and_renames(tmp_path, capsys):
    write(tmp_path / "plant.csv")
    assert main(["watch", str(tmp_path / "plant.csv")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("plant.csv: 2,000 instances, 4 features: 0 silent, 1 gone, 0 new")
    assert "401 silence: <b>heat</b>" in out
    assert "701 return: <b>heat</b> (after 300 instances)" in out
    assert "suggested rename: celsius -> fahrenheit" in out
    assert "degrees Celsius to Fahrenheit" in out


def test_watch_writes_a_page_a_picture_and_json(tmp_path, capsys):
    write(tmp_path / "plant.csv")
    page, picture = tmp_path / "page.html", tmp_path / "map.png"
    command = ["watch", str(tmp_path / "plant.csv"), "--html", str(page), "--plot", str(picture), "--format", "json"]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["instances"] == 2000
    assert [event["kind"] for event in report["events"]] == ["silence", "return", "birth", "silence", "rename"]
    text = page.read_text()
    assert "&lt;b&gt;heat&lt;/b&gt;" in text
    assert "<b>heat</b>" not in text.replace("<b>&lt;b&gt;heat&lt;/b&gt;</b>", "")
    assert "src=" not in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_events_have_the_time_of_their_rows(tmp_path, capsys):
    rows = [f"2024-{t // 100 + 1:02}-{t % 100 // 4 + 1:02},{t % 7},{t % 5 if not 400 <= t < 700 else ''},"
            f"{('' if t % 3 else 'bad' if t % 2 else 'ok')}" for t in range(1000)]  # fmt: skip
    (tmp_path / "plant.csv").write_text("\n".join(["day,flow,heat,state", *rows]))
    command = ["watch", str(tmp_path / "plant.csv"), "--time", "day", "--target", "state"]  # most states are unknown
    assert main([*command, "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    assert "  2024-05-01  401 silence: heat\n  2024-08-01  701 return: heat" in out
    assert "<td>401</td><td>2024-05-01</td>" in (tmp_path / "page.html").read_text()
    assert main([*command, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"][0]["time"] == "2024-05-01"


def test_times_may_be_long_or_missing(tmp_path, capsys):
    """One long cell does not multiply the memory of all times; an event at a row without a time has none."""
    rows = [
        {"day": None if t == 400 else "x" * 100_000 if t == 700 else f"d{t}", "flow": t % 7}
        | ({} if 400 <= t < 700 else {"heat": t % 5})
        for t in range(1000)
    ]
    (tmp_path / "plant.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    command = ["watch", str(tmp_path / "plant.jsonl"), "--time", "day"]
    tracemalloc.start()
    assert main([*command, "--html", str(tmp_path / "page.html")]) == 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 << 20  # 1,000 times the longest cell are 100 MB
    out = capsys.readouterr().out
    assert f"  -  401 silence: heat\n  {'x' * 37}...  701 return: heat" in out
    assert "<td>401</td><td>-</td>" in (tmp_path / "page.html").read_text()
    assert main([*command, "--format", "json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert [event["time"] for event in events] == [None, f"{'x' * 37}..."]


def test_of_many_events_the_latest_are_printed(tmp_path, capsys):
    rows = [",".join(str(t % 7) if t // 100 % 40 != j else "" for j in range(40)) for t in range(7000)]
    (tmp_path / "plant.csv").write_text("\n".join([",".join(f"s{j}" for j in range(40)), *rows]))
    assert main(["watch", str(tmp_path / "plant.csv"), "--format", "json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert main(["watch", str(tmp_path / "plant.csv")]) == 0
    out = capsys.readouterr().out
    assert f"(the latest 40 of {len(events)}; --format json lists all):" in out
    assert sum(" silence: " in line or " return: " in line for line in out.splitlines()) == 40
    assert f"  {max(event['step'] for event in events):,} " in out


def test_watch_does_not_overwrite_its_input(tmp_path, capsys):
    write(tmp_path / "plant.csv", 50)
    assert main(["watch", str(tmp_path / "plant.csv"), "--html", str(tmp_path / "plant.csv")]) == 2
    assert "choose another file" in capsys.readouterr().err


def test_watch_names_a_missing_file(capsys):
    assert main(["watch", "nothing.csv"]) == 2
    assert "no file has that name" in capsys.readouterr().err


def test_many_files_have_a_short_title(tmp_path, capsys):
    files = [tmp_path / f"{month}.csv" for month in ("jan", "feb", "mar", "apr")]
    for file in files:
        file.write_text("a,b\n" + "1,2\n3,4\n" * 20)
    assert main(["watch", *map(str, files)]) == 0
    assert capsys.readouterr().out.startswith("jan.csv and 3 more files: 160 instances")


def test_unix_times_are_decoded(tmp_path, capsys):
    lines = [f"{1_772_323_200 + 60 * t},{t % 7},{t % 5 if not 400 <= t < 700 else ''}" for t in range(1000)]
    (tmp_path / "plant.csv").write_text("\n".join(["ts,flow,heat", *lines]))
    page = tmp_path / "page.html"
    assert main(["watch", str(tmp_path / "plant.csv"), "--time", "ts", "--html", str(page)]) == 0
    assert "  2026-03-01 06:40:00  401 silence: heat\n" in capsys.readouterr().out
    assert "<td>401</td><td>2026-03-01 06:40:00</td>" in page.read_text()


def test_the_page_fits_a_phone(tmp_path):
    write(tmp_path / "plant.csv")
    page = tmp_path / "page.html"
    assert main(["watch", str(tmp_path / "plant.csv"), "--html", str(page)]) == 0
    written = page.read_text()
    assert 'class="narrow"><svg viewBox="0 0 334 ' in written
    assert ".events td.text{display:block" in written
