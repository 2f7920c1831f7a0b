"""The meters of this machine, and what asks others."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tailtrim.doctor.check import Check, attempt
from tailtrim.nodes.meters import glance
from tailtrim.nodes.meters.powercap import Powercap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def checks() -> Iterator[Check]:
    """Read the energy counters of this machine's CPUs, and look for what reads other meters."""
    yield Check("run", "meter powercap (RAPL)", attempt(_powercap))
    lacking = "module pysnmp: pip install 'tailtrim[power]'"
    yield Check("run", "meter snmp", None if find_spec("pysnmp") else lacking)


def _powercap() -> None:
    glance.watts(Powercap(kind="powercap"), _start)


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
