"""Checks whether devices under test, engines, and tools whose results are read are installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.analysis.engines.choice import ENGINES, missing_module
from tailtrim.analysis.roundtrip.hpct import HIPERCONTRACER
from tailtrim.analysis.roundtrip.irtt import IRTT
from tailtrim.laboratory.devices import DEVICES
from tailtrim.laboratory.doctor.check import Check, attempt
from tailtrim.laboratory.nodes import local_host, namespace, wiring
from tailtrim.laboratory.nodes.container import node as container
from tailtrim.laboratory.nodes.power import POWER
from tailtrim.laboratory.nodes.power.ipmi import IPMITOOL
from tailtrim.laboratory.nodes.vm import pci
from tailtrim.laboratory.nodes.vm.image import CPIO
from tailtrim.laboratory.nodes.vm.kernel import DEPMOD
from tailtrim.laboratory.nodes.vm.machine import QEMU
from tailtrim.laboratory.nodes.vm.root import MMDEBSTRAP, SQFSTAR
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Devices of examples/demo.yml.
_DEMO = ("wire", "forward")
#: Other tools for OS noise, whose output the agent reads.
CYCLICTEST, OSLAT = Tool("cyclictest", "rt-tests"), Tool("oslat", "rt-tests")

#: Tools that build and run virtual machines.
GUESTS = (QEMU, MMDEBSTRAP, SQFSTAR, CPIO, DEPMOD)


def missing_tools(*, everything: bool) -> list[Tool]:
    """Return the tools that are not on this host: those of the demo, or all."""
    names = DEVICES.names() if everything else _DEMO
    devices = {name: DEVICES.load(name) for name in names}
    tools = [*namespace.TOOLS, *(tool for device in devices.values() for tool in device.tools)]
    if everything:
        tools += [tool for device in devices.values() for tool in device.tools_of_options.values()]
        tools += [*GUESTS, *container.TOOLS, wiring.MOUNT, IPMITOOL, IRTT, HIPERCONTRACER]
        tools += [CYCLICTEST, OSLAT]
    return [tool for tool in dict.fromkeys(tools) if local_host.find(tool) is None]


def devices(bpf: str | None) -> Iterator[Check]:
    """Check the devices under test.

    Args:
        bpf: why no BPF program can be loaded, if so.

    """
    for name, device in DEVICES.models().items():
        lacking = _lacking(device.tools)
        lacking += [f"{path} (of the kernel)" for path in _absent(device.device_files)]
        lacking += [bpf] if device.loads_bpf and bpf else []
        yield Check("run", f"device {name}", "; ".join(lacking) or None, demo=name in _DEMO)
        for option, tool in device.tools_of_options.items():
            yield Check("run", f"{name}, {option}", "; ".join(_lacking((tool,))) or None)


def guests() -> Iterator[Check]:
    """Check what devices in virtual machines need."""
    yield Check("run", "device in a virtual machine", "; ".join(_lacking(GUESTS)) or None)
    yield Check("run", "PCI device in a virtual machine", attempt(pci.possible))


def engines() -> Iterator[Check]:
    """Check the engines."""
    for name in ENGINES:
        module = missing_module(name)
        help_ = f"module {module}: pip install 'tailtrim[{name}]'" if module else None
        yield Check("analyze", f"engine {name}", help_)


def power() -> Iterator[Check]:
    """Check what switches the power of other hosts."""
    yield Check("run", "power ipmi", "; ".join(_lacking((IPMITOOL,))) or None)
    lacking = "module sushy: pip install 'tailtrim[redfish]'"
    yield Check("run", "power redfish", None if find_spec("sushy") else lacking)
    lacking = f"pip install {POWER.elsewhere['outlet']}"
    yield Check("run", "power and meters: outlets", None if "outlet" in POWER else lacking)


def peers() -> Iterator[Check]:
    """Check the tools whose results are read."""
    for command, tools in (("noise", (CYCLICTEST, OSLAT)), ("import", (IRTT, HIPERCONTRACER))):
        for tool in tools:
            yield Check(command, f"peer {tool.program}", "; ".join(_lacking((tool,))) or None)


def _lacking(tools: tuple[Tool, ...]) -> list[str]:
    return list(dict.fromkeys(tool.source for tool in tools if local_host.find(tool) is None))


def _absent(paths: tuple[str, ...]) -> list[str]:
    return [path for path in paths if not Path(path).exists()]
