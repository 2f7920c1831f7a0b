"""The power that a management controller tells by IPMI DCMI."""

from __future__ import annotations

import re
from typing import Literal

from tailtrim.errors import HostError
from tailtrim.nodes.meters.meter import AskedMeter, Value
from tailtrim.nodes.power.ipmi import IpmiController

_WATTS = re.compile(r"Instantaneous power reading:\s+(\d+) Watts")


class IpmiMeter(IpmiController, AskedMeter):
    """The power reading of DCMI: whole watts, of the power supplies."""

    kind: Literal["ipmi"]

    def measure(self) -> tuple[Value, float]:
        """Ask for the power now; what controllers average over is theirs."""
        told = self.ask("dcmi", "power", "reading")
        found = _WATTS.search(told)
        if found is None:
            seen = " ".join(told.split())[:120]
            error = HostError(f"{self.place}: expected the power reading of DCMI, not {seen!r}")
            error.add_note("the controller may have no DCMI: try redfish, or a metered outlet")
            raise error
        return Value(power_w=float(found[1])), 1.0
