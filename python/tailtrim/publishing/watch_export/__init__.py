"""Spans of a watch in the formats of other tools.

=========== ==================================================================================
``hpct``    ping results of HiPerConTracer, a file for each day of a target
``hlog``    HdrHistogram's interval log: a histogram for each minute, targets as tags
``parquet`` ``probes/DAY.parquet`` and ``minutes/DAY.parquet``, of all targets
=========== ==================================================================================

>>> sorted(FORMATS)
['hlog', 'hpct', 'parquet']
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.analysis.watched import Account
    from tailtrim.publishing.export import Conversion

__all__ = ["FORMATS", "convert"]

#: Formats, and the module of each.
FORMATS: Mapping[str, str] = MappingProxyType(
    {"hpct": "pings", "hlog": "minute_log", "parquet": "day_tables"}
)


def convert(accounts: Sequence[Account], form: str, name: str, out: Path) -> Conversion:
    """Write spans of targets; their accounts are filled meanwhile.

    Args:
        accounts: of the targets, in one span.
        form: one of :data:`FORMATS`.
        name: of the file, where all targets are in one.
        out: the folder; made if need be.

    Raises:
        RoundTripError: a file cannot be read, no minute is in the span, or an address is unknown.
        OutputError: a file cannot be written.

    """
    writer = import_module(f"tailtrim.publishing.watch_export.{FORMATS[form]}")
    conversion: Conversion = writer.write(accounts, name, out)
    return conversion
