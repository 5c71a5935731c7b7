"""Tables and statistics as LaTeX."""

from tests.bench.test_report import outcomes
from varifold.bench import find_table
from varifold.bench.compare import fill
from varifold.bench.study import study_table
from varifold.report.latex import escaped, latex


def test_a_table_of_a_paper():
    text = latex([fill(find_table("olvf-5"), outcomes("olvf-5"))])
    assert text.startswith("% Needs \\usepackage{booktabs}")
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") >= 3
    assert "\\label{tab:olvf-5-1-1-cer}" in text
    row = next(line for line in text.splitlines() if line.startswith("german & "))
    assert row.endswith("\\\\")
    header = next(line for line in text.splitlines() if line.startswith("\\begin{tabular}"))
    assert row.count(" & ") == header.count("r") - header.count("tabular"), "as many cells as columns"
    assert "$\\pm$" in row
    assert "\\caption{Claims of OLVF.}" in text
    claims = text.partition("\\caption{Claims of OLVF.}")[2]
    assert claims.splitlines()[2] == ("\\begin{tabular}{p{.24\\linewidth}rp{.24\\linewidth}rp{.24\\linewidth}}"), (
        "sentences are broken into lines"
    )


def test_what_latex_would_read_as_commands():
    assert escaped("5 % of a_b & {c} # 1 ± .1 χ² = 2 *") == (
        "5 \\% of a\\_b \\& \\{c\\} \\# 1 $\\pm$ .1 $\\chi^2$ = 2 $^*$"
    )
    assert escaped("a\\b~c^d") == "a\\textbackslash{}b\\textasciitilde{}c\\textasciicircum{}d"


def test_a_study():
    raw = {"name": "mine", "data": "wbc", "load": "wbc", "models": ["pa", "ogd"], "scenario": "vfs:0.5", "repeats": 2,
           "shuffle": True}  # fmt: skip
    table = study_table("mine", raw)
    cells = [c for s in table.slots() for cs in s.cells.values() for c in cs]
    some = next(iter(outcomes("olvf-2").values()))
    text = latex([fill(table, dict.fromkeys(cells, some))])
    assert "\\caption{wbc (vfs:0.5): 2 learners on the same 2 streams.}" in text
    assert "p of a paired t-test over 2 streams" in text
