"""Minutes that ``tailtrim watch`` has left, of targets of one host or of several.

============== ==============================================================================
``targets_of`` the targets of a folder: of one, of a watch, or of the watches of several hosts
``span``       a span of time, such as ``yesterday`` or ``08:00..09:00``
``Account``    reads the minutes of a target in a span, and counts what is not there
``compared``   two spans of many targets, with one confidence for all
``measured``   spans of many targets, and of the same target of several hosts together
``tail_of``    percentiles of a span, of one host or of several together
``leave_run``  a span as a run directory
============== ==============================================================================
"""

from __future__ import annotations

from tailtrim.analysis.watched.compared import ComparedTarget, Side, compared
from tailtrim.analysis.watched.measured import ALL_HOSTS, Measured, measured
from tailtrim.analysis.watched.minute import (
    MINUTE_NS,
    NONE,
    OF_THE_METER,
    OUTCOMES,
    UNANSWERED,
    Minute,
    Worst,
)
from tailtrim.analysis.watched.outages import Outage
from tailtrim.analysis.watched.reading import Account
from tailtrim.analysis.watched.run import leave_run
from tailtrim.analysis.watched.span import Span, span
from tailtrim.analysis.watched.tail import Tail, tail_of
from tailtrim.analysis.watched.tap import TAP, TAP_SUMS
from tailtrim.analysis.watched.target import SCHEMA, Target, is_target, is_watched, targets_of

__all__ = [
    "ALL_HOSTS",
    "MINUTE_NS",
    "NONE",
    "OF_THE_METER",
    "OUTCOMES",
    "SCHEMA",
    "TAP",
    "TAP_SUMS",
    "UNANSWERED",
    "Account",
    "ComparedTarget",
    "Measured",
    "Minute",
    "Outage",
    "Side",
    "Span",
    "Tail",
    "Target",
    "Worst",
    "compared",
    "is_target",
    "is_watched",
    "leave_run",
    "measured",
    "span",
    "tail_of",
    "targets_of",
]
