"""The meter of an outlet that is reached by HTTP."""

from __future__ import annotations

from typing import Literal

from tailtrim.errors import HostError
from tailtrim.nodes.meters.meter import AskedMeter, Value
from tailtrim.nodes.power.outlet import OutletAddress

#: Of an answer that is not understood, so much is told.
_TOLD_CHARACTERS = 120


class OutletMeter(OutletAddress, AskedMeter):
    """A metered outlet: all that the node takes, with its power supplies."""

    kind: Literal["outlet"]

    def measure(self) -> tuple[Value, float]:
        """Ask for the active power."""
        answer = self.ask(self.dialect.meter(self.outlet))
        try:
            told = self.dialect.measured(self.outlet, answer)
        except (LookupError, TypeError, ValueError, AttributeError):
            seen = repr(answer)[:_TOLD_CHARACTERS]
            error = HostError(f"{self.place}: expected the power of this outlet, not {seen}")
            error.add_note("see url, model and outlet in the testbed file; not all models measure")
            raise error from None
        value = Value(
            power_w=told.power_w,
            voltage_v=told.voltage_v,
            current_a=told.current_a,
            energy_wh=told.energy_wh,
        )
        return value, told.resolution_w or self.dialect.resolution_w
