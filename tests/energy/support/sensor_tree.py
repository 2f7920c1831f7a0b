"""A folder that is a node's /sys: RAPL zones, hwmon sensors and CPUs, as the kernel lays them.

Documentation/power/powercap/powercap.rst, Documentation/hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RANGE_UJ = 262_143_328_850


@dataclass(frozen=True)
class Tree:
    """A node whose files are below a folder; it starts what reads them there."""

    root: Path

    def zone(self, number: str, name: str, energy_uj: int, range_uj: int = RANGE_UJ) -> None:
        folder = self.root / "sys/class/powercap" / f"intel-rapl:{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text(f"{energy_uj}\n")
        (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")

    def sensor(self, number: int, chip: str, sensor: str, value: int, label: str = "") -> None:
        folder = self.root / "sys/class/hwmon" / f"hwmon{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(f"{chip}\n")
        (folder / sensor).write_text(f"{value}\n")
        if label:
            (folder / f"{sensor.rpartition('_')[0]}_label").write_text(f"{label}\n")

    def cpu(self, number: int, package: int) -> None:
        folder = self.root / "sys/devices/system/cpu" / f"cpu{number}" / "topology"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "physical_package_id").write_text(f"{package}\n")

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start what reads, with the folder for the root."""
        *words, root = command
        assert not root
        return subprocess.Popen(
            [*words, str(self.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def two_packages(root: Path) -> Tree:
    """Return a server with two packages of two CPUs each."""
    tree = Tree(root)
    for package in (0, 1):
        tree.zone(f"{package}", f"package-{package}", 1_000_000)
        tree.zone(f"{package}:0", "core", 400_000)
        tree.zone(f"{package}:1", "dram", 300_000, 65_712_999_613)
        for cpu in (0, 1):
            tree.cpu(2 * package + cpu, package)
    tree.zone("2", "psys", 5_000_000)
    return tree
