"""Comparison of two sides, which is slower: :func:`compare`, and how long to measure for it.

::

    (comparison,) = compare("results/rt-kernel", "results/nohz-kernel")
    for row in comparison.quantiles:
        print(row.p, row.ratio, row.low, row.high, row.verdict)

A side is a run directory, an experiment, a folder of run directories that are repetitions of one
another, or a pair of captures. The statistics are those of the native module; here sides are found
and paired, and different settings are reported.
"""

from tailtrim.analysis.compare.comparison import (
    Comparison,
    Comparisons,
    compare,
    compare_groups,
    compare_halves,
)
from tailtrim.analysis.compare.configuration import Difference
from tailtrim.analysis.compare.energy import Energy, EnergyRow, Price
from tailtrim.analysis.compare.length import Length, plan_length
from tailtrim.analysis.compare.rows import CurvePoint, Losses, Pairing, Rates, Row, SentRow
from tailtrim.analysis.compare.sources import Group, Repetition
from tailtrim.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDED, WORSE, Verdict

__all__ = [
    "BETTER",
    "NOT_DECIDED",
    "NO_DIFFERENCE",
    "WORSE",
    "Comparison",
    "Comparisons",
    "CurvePoint",
    "Difference",
    "Energy",
    "EnergyRow",
    "Group",
    "Length",
    "Losses",
    "Pairing",
    "Price",
    "Rates",
    "Repetition",
    "Row",
    "SentRow",
    "Verdict",
    "compare",
    "compare_groups",
    "compare_halves",
    "plan_length",
]
