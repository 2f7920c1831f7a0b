"""A testbed, tried as ``tailtrim run`` makes it: as root, else in a user namespace.

In a process of its own (``python -m tailtrim.laboratory.doctor.testbed``), since a user namespace
is for good. It prints why things do not work, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, TailtrimError
from tailtrim.laboratory.devices.reflector import Reflector, RunningReflector
from tailtrim.laboratory.devices.running_device import DeviceUnderTest
from tailtrim.laboratory.devices.wire import Wire
from tailtrim.laboratory.doctor.check import attempt
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.container.node import Container
from tailtrim.laboratory.nodes.container.root import prepared
from tailtrim.laboratory.nodes.container.settings import ContainerSettings
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.namespace_testbed import LocalTestbed

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

NAMESPACES = "network namespaces"
PACKETS = "AF_PACKET in them"
BPF = "XDP in them (BPF)"
#: Where requests become replies.
MODES: tuple[Literal["socket", "af-xdp", "xdp", "nat"], ...] = ("socket", "af-xdp", "xdp", "nat")
CONTAINER = "device in a container"
_TIMEOUT_S = 60


def tried() -> dict[str, str | None]:
    """Return why things do not work, by thing; ``None`` for those that do."""
    command, environment = [sys.executable, "-m", __name__], local_host.environment()
    try:
        if os.geteuid() != 0:
            command = local_host.as_root(*command)
            environment[local_host.USER_NAMESPACE] = "1"
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            env=environment,
        )
    except TailtrimError as error:
        return dict.fromkeys(_things(), "; ".join([str(error), *getattr(error, "__notes__", ())]))
    except subprocess.TimeoutExpired as error:
        raise HostError(f"a testbed was not made within {_TIMEOUT_S} s") from error
    if ended.returncode != 0:
        last = ended.stderr.strip().rpartition("\n")[2] or f"it ended with {ended.returncode}"
        raise HostError(f"a testbed cannot be tried: {last}")
    return dict(json.loads(ended.stdout))


def _things() -> tuple[str, ...]:
    return (NAMESPACES, PACKETS, BPF, CONTAINER, *MODES)


def _try(folder: Path) -> dict[str, str | None]:
    testbed = LocalTestbed()

    def namespaces() -> None:
        with Namespace("doctor", folder):
            pass

    def packets() -> None:
        with testbed.forwarding(folder) as at, DeviceUnderTest(Wire(preset="wire"), at, ready_s=5):
            pass

    def bpf() -> None:
        with testbed.forwarding(folder) as at, at.takes_redirected():
            pass

    def container() -> None:
        settings = ContainerSettings.model_validate({"cpu.max": "max", "memory.max": "max"})
        with Namespace("dut", folder) as node, Container(node, prepared(None, ()), settings) as it:
            it.run("true")

    def mode(name: Literal["socket", "af-xdp", "xdp", "nat"]) -> Callable[[], None]:
        def answering() -> None:
            reflector = Reflector(preset="reflector", reflect=name)
            with testbed.reflection(folder, between=False) as at:
                RunningReflector(reflector, at, lambda change: change()).__exit__()

        return answering

    actions = (namespaces, packets, bpf, container, *map(mode, MODES))
    return {thing: attempt(action) for thing, action in zip(_things(), actions, strict=True)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tailtrim-doctor-") as place:
        sys.stdout.write(json.dumps(_try(Path(place))))
