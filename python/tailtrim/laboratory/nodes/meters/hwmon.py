"""A power or energy sensor that a driver of the node's kernel has in hwmon."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.meters.files import FilesMeter
from tailtrim.laboratory.nodes.meters.meter import Channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.meters.files import SensorFile


class Hwmon(FilesMeter):
    """One sensor: ``powerN_average``, ``powerN_input`` or ``energyN_input``."""

    kind: Literal["hwmon"]
    chip: str = Field(description="What the file name of its folder says, such as power_meter.")
    sensor: str = Field(
        description="File of the sensor, such as power1_average, or what its label says."
    )
    # hwmon tells microwatts of any chip: how far apart its values are is not among them.
    resolution_w: float = Field(
        gt=0,
        allow_inf_nan=False,
        description="Smallest step of its power in W; of an energy sensor: of its energy in J.",
    )

    @property
    def place(self) -> str:
        """The sensor."""
        return f"hwmon of the node, {self.chip} {self.sensor}"

    def chosen(self, files: Sequence[SensorFile]) -> list[tuple[SensorFile, Channel]]:
        """Take the one."""
        known = [one for one in files if one.path.startswith("hwmon/")]
        found = [
            one
            for one in known
            if one.name == self.chip and self.sensor in {PurePosixPath(one.path).name, one.label}
        ]
        if len(found) != 1:
            there = ", ".join(f"{one.name} {PurePosixPath(one.path).name}" for one in known)
            told = "is there more than once" if found else "is not there"
            error = HostError(
                f"{self.place}: {told}, expected one of {there or 'none: no sensors'}"
            )
            error.add_note("virtual machines and many hosts have no power sensor in hwmon")
            raise error
        (one,) = found
        if not one.value:
            raise HostError(f"{self.place}: /sys/class/{one.path} cannot be read")
        counts = PurePosixPath(one.path).name.startswith("energy")
        name = one.label or f"{one.name} {PurePosixPath(one.path).name}"
        return [(one, Channel(name, counts=counts, resolution=self.resolution_w))]
