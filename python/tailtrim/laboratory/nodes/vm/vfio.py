"""PCI devices bound to vfio-pci, and back to their drivers, whatever ends this process."""

from __future__ import annotations

import os
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.holder import Holder
from tailtrim.laboratory.nodes.ports import REMEMBER
from tailtrim.laboratory.nodes.vm.pci import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.vm.pci import PassedPort


class BoundDevices:
    """Devices that are given to vfio-pci, for as long as the context lasts.

    The interfaces at the other ends of their cables are in a network namespace meanwhile. A process
    holds all of it. It brings everything back when this process ends, whatever ends that. Virtual
    functions have the settings that a guest needs meanwhile.
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
        settings = " ".join(dict.fromkeys(one.words for port in ports for one in port.settings))
        cables = (port.cable for port in ports)
        words = (str(root / "sys"), str(parking), devices, settings, *cables)
        command = ("sh", "-c", f"{REMEMBER}\n{script}", "sh", *words)
        self._holder = Holder(partial(local_host.start, command), "vm.ports", grace_s=None)
        #: Settings that a driver refused, and why.
        self.refused = self._holder.line.split("; ")[1:]
        for port in ports:
            node = root / "dev/vfio" / str(port.iommu_group)
            if not os.access(node, os.R_OK | os.W_OK):
                self._holder.end()
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
        code, problem = self._holder.end()
        if code != 0:
            raise HostError(f"vm.ports: not as it was before: {problem}")
