"""DPDK's testpmd."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.laboratory.devices.program import ProgramDevice
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.testbed import Forwarding


class Testpmd(ProgramDevice):
    """DPDK's testpmd on kernel interfaces."""

    preset: Literal["testpmd"]
    driver: Literal["af_packet", "af_xdp"] = Field(
        default="af_packet", description="Driver of its ports; af_xdp needs root."
    )
    forward_mode: Literal["io", "mac", "macswap"] = Field(
        default="io", description="Forwarding mode: what is done with MAC addresses."
    )

    largest_frame: ClassVar[int | None] = 1_518
    tools: ClassVar[tuple[Tool, ...]] = (Tool("dpdk-testpmd", "dpdk-dev"),)

    def require(self, host: Host) -> None:
        """Make sure that it is installed, and may load its XDP program."""
        super().require(host)
        if self.driver == "af_xdp" and not host.facts.root:
            raise HostError("testpmd with driver af_xdp: only root may load its XDP program")

    @property
    def polls(self) -> bool:
        """It polls in each of its drivers."""
        return True

    def serving(self, at: Forwarding) -> list[int]:
        """Return the CPU on which it polls."""
        return [at.dut.cpus[-1]]

    def words(self, at: Forwarding) -> list[str]:
        """Return how to start it."""
        # On a veth, the kernel hands frames to AF_XDP in a softirq. Where two CPUs are all there
        # is, that waits now and then for ksoftirqd on the generator's CPU: milliseconds, in the
        # tail only, and neither busy_budget=0 nor force_copy=1 nor deferred interrupts changed
        # them.
        devices = [
            f"--vdev=net_{self.driver}{number},iface={port.name}"
            for number, port in enumerate((at.dut_in, at.dut_out))
        ]
        memory = ["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--no-shconf"]
        # On AF_XDP the fill rings of two ports alone take 8,192.
        forwarding = [f"--forward-mode={self.forward_mode}"]
        forwarding += ["--total-num-mbufs=32768", "--nb-cores=1"]
        return ["dpdk-testpmd", *_cores(at.dut), *memory, *devices, "--", *forwarding]


def _cores(node: Node) -> list[str]:
    polling = node.cpus[-1]
    main = next((core for core in sorted(node.spared) if core != polling), polling)
    if main == polling:
        return ["--lcores", f"0@{polling},1@{polling}", "--main-lcore", "0"]
    # A core of its own for the main thread, which only waits.
    return ["-l", f"{main},{polling}", "--main-lcore", str(main)]
