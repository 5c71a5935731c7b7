"""Run the papers' tables again: specifications as data, a store of outcomes, statistics.

It imports evaluation, data sets, streams, ensembles and `report` (and is imported by it); learners come by name.
"""

from varifold.bench.cell import Cell, Outcome
from varifold.bench.runner import Progress, RunSummary, plan, run
from varifold.bench.store import ResultStore
from varifold.bench.table import Table
from varifold.bench.tables import find_table, table_names, tables

__all__ = [
    "Cell",
    "Outcome",
    "Progress",
    "ResultStore",
    "RunSummary",
    "Table",
    "find_table",
    "plan",
    "run",
    "table_names",
    "tables",
]
