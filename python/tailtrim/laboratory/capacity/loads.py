"""Load of a search in the unit of its plan: packets/s, bit/s, or packets in a burst."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from tailtrim.errors import PlanError
from tailtrim.laboratory.plan import Traffic
from tailtrim.laboratory.plan.traffic import amount_of

if TYPE_CHECKING:
    from tailtrim.laboratory.plan import Run

Unit = Literal["packets/s", "bit/s", "packets in a burst"]
#: Quantity that a search varies (``--search``).
Searched = Literal["load", "burst"]

#: The lowest load is that of the plan divided by this.
_RANGE = 1_000


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of a search: the plan's is the highest.

    Args:
        traffic: that of the plan.
        unit: unit of a load; packets in a burst are sent at the plan's mean rate.

    """

    traffic: Traffic
    unit: Unit

    @classmethod
    def of(cls, run: Run, searched: Searched) -> Loads:
        """Return the loads of the one run of a plan.

        Raises:
            PlanError: there is nothing to search for in it.

        """
        traffic = run.traffic
        if traffic.schedule.brings_rate:
            raise PlanError("traffic.schedule: a replay has the rate of its capture, not others")
        burst = traffic.schedule.burst
        if searched == "burst":
            if burst is None or burst == 1:
                raise PlanError(
                    "traffic.schedule: expected burst:N with the largest N to be tried, for"
                    " bursts at the mean rate of the plan"
                )
            return cls(traffic, "packets in a burst")
        return cls(traffic, "bit/s" if _rate(traffic)[1] == "bit/s" else "packets/s")

    @property
    def largest(self) -> int:
        """The highest load."""
        if self.unit == "packets in a burst":
            return self.traffic.schedule.burst or 1
        return int(_rate(self.traffic)[0])

    @property
    def smallest(self) -> int:
        """The lowest load."""
        return max(self.largest // _RANGE, 1)

    def pps(self, load: int) -> float:
        """Return the packets per second at a load."""
        if self.unit == "packets/s":
            return float(load)
        mean_pps = self.traffic.packets_per_s or 0.0
        return mean_pps if self.unit == "packets in a burst" else mean_pps * load / self.largest

    def sent(self, load: int, duration_s: float) -> Traffic:
        """Return what is sent at a load, for so long."""
        told = self.traffic.model_dump(mode="json") | {"duration_s": duration_s}
        if self.unit == "packets in a burst":
            told |= {"schedule": f"burst:{load}"}
        elif self.unit == "bit/s":
            told |= {"rate": f"{load}bit/s"}
        else:
            told |= {"rate": None, "rate_pps": load}
        return Traffic.model_validate(told)

    def loop(self, load: int) -> dict[str, int | str]:
        """Return the load as the value of a loop variable, by which reports arrange runs."""
        if self.unit == "packets in a burst":
            return {"burst": load}
        return {"rate": f"{load}bit/s" if self.unit == "bit/s" else load}


def _rate(traffic: Traffic) -> tuple[Decimal, str]:
    """Return the rate of a plan, and pps or bit/s."""
    if traffic.rate_pps is not None:
        return Decimal(traffic.rate_pps), "pps"
    return amount_of(traffic.rate or "")
