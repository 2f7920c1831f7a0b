"""The meters of this machine."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tailtrim.laboratory.doctor.check import Check, attempt
from tailtrim.laboratory.nodes.meters.meter import watts
from tailtrim.laboratory.nodes.meters.powercap import Powercap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def checks() -> Iterator[Check]:
    """Read the energy counters of this machine's CPUs."""
    yield Check("run", "meter powercap (RAPL)", attempt(_powercap))


def _powercap() -> None:
    watts(Powercap(kind="powercap"), _start)


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
