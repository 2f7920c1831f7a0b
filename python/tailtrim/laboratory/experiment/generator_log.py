"""When the load generator of a run was not up to its schedule, on the clock of the stamps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.analysis.options import WELL, Departures

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Stamps of a NIC, which has its own clock.
BY_NIC = "hardware"


def departures(log: Path, capture: Mapping[str, Any], *, shares_cpu: bool) -> Departures:
    """Return when the generator was not up to its schedule.

    Args:
        log: its ``departures.csv``.
        capture: result of the taps, as ``capture.json`` has it.
        shares_cpu: whether generator and device have a CPU in common.

    Raises:
        OSError: the log cannot be read.
        ValueError: it is not such a log.

    """
    if any(tap.get("stamps") == BY_NIC for tap in capture["taps"].values()):
        # The log has times of CLOCK_REALTIME. Behind a NIC no packet waits in the sender's hands.
        return WELL
    read = Departures.read(log)
    return read.without_stalls() if shares_cpu else read
