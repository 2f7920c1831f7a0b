"""Devices in containers: their needs before anything runs, and a container for a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tailtrim.laboratory.nodes.container.node import Container, require
from tailtrim.laboratory.nodes.container.root import prepared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.devices import InlineDevice
    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: From what was counted to what the record of a run says.
Recorded = Callable[[dict[str, int]], dict[str, Any]]


def ready(dut: InlineDevice, host: Host, told: Callable[[str], None]) -> None:
    """Make sure that a host can have the container of a device, and make its files.

    Raises:
        HostError: it cannot.
        OutputError: the cache cannot be written.

    """
    require(host)
    settings = dut.container
    prepared(settings.root, tuple(settings.packages), told)


@contextmanager
def placed(at: Forwarding, dut: InlineDevice) -> Iterator[Recorded]:
    """Put the device's node into the container that the plan asks for, if it does.

    The result makes the record of the container from what its control group counted.

    Raises:
        HostError: the node cannot have it.

    """
    if dut.node != "container":
        yield lambda _: {}
        return
    settings = dut.container
    root = prepared(settings.root, tuple(settings.packages))
    with Container(at.dut, root, settings) as container:
        at.dut = container
        yield lambda counted: {"container": container.record | {"counted": counted}}
