"""RAPL: the energy counters of a CPU, as Linux has them in powercap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.meters.files import FilesMeter
from tailtrim.laboratory.nodes.meters.meter import EVERY_S, Channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.meters.files import SensorFile

#: A decrease of a counter is a wrap where the power would be below this, otherwise it was reset: a
#: circuit of 16 A at 230 V carries no more, and a package is one part of what it supplies.
MOST_W = 16.0 * 230.0
#: Energy is counted in steps of 61 µJ, or 15.3 µJ on some CPUs, and the counter is written about
#: every millisecond (Intel SDM, volume 3B, "RAPL interfaces").
_STEP_J, _UPDATE_S = 61e-6, 1e-3
_ZONE = re.compile(r"powercap/intel-rapl:(\d+)((?::\d+)*)/energy_uj")
_PACKAGE = re.compile(r"package-(\d+)")


class Powercap(FilesMeter):
    """Packages, cores, graphics and DRAM of the node's CPUs, without the rest of the host.

    The node's power is that of packages and DRAM; cores and graphics are parts of packages.
    """

    kind: Literal["powercap"]
    resolution_w: None = Field(
        default=None, description="Leave it out: what is counted is energy, not power."
    )

    def chosen(self, files: Sequence[SensorFile]) -> list[tuple[SensorFile, Channel]]:
        """Take all zones."""
        zones = {match.groups(): one for one in files if (match := _ZONE.fullmatch(one.path))}
        if not zones:
            error = HostError(f"{self.place}: no zones in /sys/class/powercap/intel-rapl:*")
            error.add_note(
                "virtual machines have none; on hardware load intel_rapl_msr, or use a metered"
                " outlet (kind: outlet)"
            )
            raise error
        unread = [one for one in zones.values() if not one.value]
        if unread:
            error = HostError(f"{self.place}: /sys/class/{unread[0].path} cannot be read")
            error.add_note(
                "only root may read energy counters since Linux 5.10 (they tell what others"
                " compute, CVE-2020-8694): run as root"
            )
            raise error
        return [
            (one, self._channel(one, inner, zones.get((number, ""))))
            for (number, inner), one in zones.items()
        ]

    def _channel(self, zone: SensorFile, inner: str, outer: SensorFile | None) -> Channel:
        name = f"{outer.name} {zone.name}" if inner and outer is not None else zone.name
        whole = zone.name == "dram" or (not inner and bool(_PACKAGE.match(zone.name)))
        wraps_j = None if zone.range_uj is None else zone.range_uj * 1e-6
        return Channel(
            name, counts=True, resolution=_STEP_J, whole=whole, wraps_j=wraps_j, update_s=_UPDATE_S
        )

    def seldom(
        self, channels: Sequence[Channel], packages: dict[int, int], busy: Sequence[int]
    ) -> tuple[float, str] | None:
        """Read only as often as no wrap is missed, where a reading interrupts a measured CPU.

        The kernel reads the counters of a package on its first CPU.
        """
        found = {int(match[1]) for one in channels if (match := _PACKAGE.match(one.name))}
        disturbed = sorted({cpu for package, cpu in packages.items() if package in found} & {*busy})
        if not disturbed:
            return None
        ranges = [one.wraps_j for one in channels if one.wraps_j is not None]
        every_s = max(min(ranges, default=MOST_W) / (2 * MOST_W), EVERY_S)
        cpus = ", ".join(map(str, disturbed))
        return every_s, f"a reading interrupts CPU {cpus}, which is measured"
