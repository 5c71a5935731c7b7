"""Papers' claims as a grid: whether each holds in print, in our as-paper columns, and with the authors' code."""

from __future__ import annotations

from varifold.bench.compare import Filled
from varifold.bench.statements import Finding, Verdict, check_statements
from varifold.report.grids import Grid, Shown

__all__ = ["RULES", "statement_counts", "statement_grids"]

RULES = (
    "Where a claim leaves its size open, *read* gives the rule of the test. The rules are ours, and that of half the "
    "claimed gain was set after the first numbers were known. Of two numbers in brackets the first is that of the "
    "method that is claimed to be better."
)

WORDS = {True: "holds", False: "does not hold", None: "cannot be tested"}
TONES = {True: "better", False: "worse", None: "quiet"}


def _cells(verdict: Verdict) -> list[Shown]:
    return [Shown(WORDS[verdict.holds], tone=TONES[verdict.holds]), Shown(verdict.figure)]


def statement_grids(filled: list[Filled]) -> dict[str, Grid]:
    """Make a grid of the claims of each paper whose tables are there."""
    by_paper: dict[str, list[Finding]] = {}
    for finding in check_statements(filled):
        by_paper.setdefault(finding.statement.paper, []).append(finding)
    return {paper: _grid(findings) for paper, findings in by_paper.items()}


def _grid(findings: list[Finding]) -> Grid:
    with_code = any(f.code.holds is not None for f in findings)
    rows = []
    for f in findings:
        verdicts = (f.paper, f.printed, f.code) if with_code else (f.paper, f.printed)
        rows.append((f.statement.claim, [cell for verdict in verdicts for cell in _cells(verdict)]))
    kinds = ("as paper", "in print", "authors' code") if with_code else ("as paper", "in print")
    columns = [text for kind in kinds for text in (kind, "figure")]
    return Grid([("", len(columns))], columns, rows)


def statement_counts(filled: list[Filled]) -> str:
    """Count the claims that hold in our as-paper columns."""
    findings = check_statements(filled)
    hold, fail, untested = (sum(f.paper.holds is verdict for f in findings) for verdict in WORDS)
    return (
        f"Of {len(findings)} claims, {hold} {'holds' if hold == 1 else 'hold'} in our as-paper columns, {fail} "
        f"{'does' if fail == 1 else 'do'} not, and {untested} cannot be tested."
    )
