"""Round trips of this and other tools: read, written, and analysed as captures are.

=============== ============================================================================
``read_hpct``   ping results of HiPerConTracer, versions 1 and 2
``write_hpct``  ping results of HiPerConTracer, version 2
``read_irtt``   the JSON of irtt
``write_run``   round trips as a run directory, for report, convert and compare
=============== ============================================================================

Files may be compressed (.xz, .bz2, .gz, .zst); reading goes by their content.
"""

from __future__ import annotations

from tailtrim.analysis.roundtrip.hpct import HpctPing, read_hpct, write_hpct
from tailtrim.analysis.roundtrip.irtt import IrttSession, read_irtt
from tailtrim.analysis.roundtrip.write_run import Series, write_run
from tailtrim.errors import RoundTripError

__all__ = [
    "HpctPing",
    "IrttSession",
    "RoundTripError",
    "Series",
    "read_hpct",
    "read_irtt",
    "write_hpct",
    "write_run",
]
