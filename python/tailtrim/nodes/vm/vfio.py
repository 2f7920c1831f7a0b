"""PCI devices bound to vfio-pci, and back to their drivers, whatever ends this process."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from importlib import resources
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError
from tailtrim.nodes import host
from tailtrim.nodes.node import errors_file, first_line
from tailtrim.nodes.ports import REMEMBER
from tailtrim.nodes.vm.pci import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.nodes.vm.pci import PassedPort

_BOUND = "bound"


class Bound:
    """Devices that are given to vfio-pci, for as long as the context lasts.

    The interfaces at the other ends of their cables are in a network namespace meanwhile. A process
    holds all of it. It brings everything back when this process ends, whatever ends that.
    """

    def __init__(self, ports: Sequence[PassedPort], parking: int, root: Path = ROOT) -> None:
        """Bind them.

        Args:
            ports: the devices and their cables.
            parking: a process in the network namespace for the interfaces.
            root: where the files of the kernel are.

        Raises:
            HostError: one cannot be bound, or not be used; all are as they were.

        """
        script = resources.files(__package__).joinpath("vfio.sh").read_text("utf-8")
        devices = " ".join(f"{port.pci}={port.driver}" for port in ports)
        words = (str(root / "sys"), str(parking), devices, *(port.cable for port in ports))
        self._errors = errors_file()
        self._process = subprocess.Popen(
            ["sh", "-c", f"{REMEMBER}\n{script}", "sh", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=host.environment(),
            # Ctrl-C is for this process, and not for what brings devices back.
            start_new_session=True,
        )
        if first_line(self._process) != _BOUND:
            raise HostError(f"vm.ports: {self._ended()[1]}")
        for port in ports:
            node = root / "dev/vfio" / str(port.iommu_group)
            if not os.access(node, os.R_OK | os.W_OK):
                self._ended()
                raise HostError(
                    f"vm.ports: {port.pci}: {node} cannot be read and written; where this is a"
                    " container, give it that device"
                )

    def __enter__(self) -> Self:
        """Return it itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give all back.

        Raises:
            HostError: one could not be given back; says which.

        """
        code, problem = self._ended()
        if code != 0:
            raise HostError(f"vm.ports: not as it was before: {problem}")

    def _ended(self) -> tuple[int, str]:
        """End what holds them, and return its code and what it complained of."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()
        code = self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        with self._errors:
            self._errors.seek(0)
            told = "; ".join(self._errors.read().strip().splitlines())
        return code, told or "no answer"
