"""The power that a management controller tells by Redfish."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.nodes.meters.meter import AskedMeter, Value
from tailtrim.nodes.power.redfish import RedfishController


class RedfishMeter(RedfishController, AskedMeter):
    """The power of a chassis: EnvironmentMetrics where there are any, otherwise Power."""

    kind: Literal["redfish"]
    chassis: str | None = Field(
        default=None,
        description="Path of the chassis, such as /redfish/v1/Chassis/1. Default: that of the"
        " system, if it has only one.",
    )

    def measure(self) -> tuple[Value, float]:
        """Ask for the power now."""
        with self.reached() as (sushy, system):
            every = system.chassis
            paths = [one.path for one in every]
            if self.chassis is None and len(every) != 1:
                told = f"the system has {len(every)} chassis, expected one"
                error = HostError(f"{self.place}: {told}")
                error.add_note(f"chassis says which one: {', '.join(paths) or 'none is there'}")
                raise error
            found = [one for one in every if self.chassis in {None, one.path}]
            if not found:
                expected = ", ".join(paths)
                raise HostError(f"{self.place}: no chassis {self.chassis}, expected {expected}")
            return Value(power_w=self._watts(sushy, found[0])), 1.0

    def _watts(self, sushy: Any, chassis: Any) -> float:
        told = None
        metrics = chassis.json.get("EnvironmentMetrics")
        if metrics is not None:
            base = sushy.resources.base.ResourceBase
            body = chassis.clone_resource(base, metrics["@odata.id"]).json
            told = (body.get("PowerWatts") or {}).get("Reading")
        if told is None and chassis.json.get("Power") is not None:
            control = chassis.power.json.get("PowerControl") or [{}]
            told = control[0].get("PowerConsumedWatts")
        if not isinstance(told, int | float):
            what = "PowerWatts of EnvironmentMetrics or PowerConsumedWatts of Power"
            raise HostError(f"{self.place}: {chassis.path} tells no power, expected {what}")
        return float(told)
