"""tailtrim-dpdk as a forwarder: DPDK that polls, or sleeps until an interrupt tells of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tailtrim.errors import HostError
from tailtrim.laboratory.devices.bridge import bridge
from tailtrim.laboratory.devices.disturbed import DisturbedDevice
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: A package of this project that no Debian has; it needs the libdpdk of the host.
PROGRAM = Tool(
    "tailtrim-dpdk", elsewhere="its Debian package (`make dist`) or `make -C dpdk` of the source"
)
#: The kernel's end of what a program sees as a port.
_TUN = "/dev/net/tun"


class Dpdk(DisturbedDevice):
    """DPDK on kernel interfaces, polling or by interrupts: tailtrim-dpdk."""

    preset: Literal["dpdk"]
    mode: Literal["poll", "interrupt"] = Field(
        default="poll",
        description="Poll all the time, or sleep until an interrupt tells of a frame; with driver"
        " tap.",
    )
    driver: Literal["af_packet", "af_xdp", "tap"] = Field(
        default="af_packet",
        description="Driver of its ports; af_xdp needs root; tap: taps that a bridge of the kernel"
        " joins with the interfaces, which have interrupts.",
    )
    forward_mode: Literal["io", "mac", "macswap"] = Field(
        default="io", description="Forwarding mode: what is done with MAC addresses."
    )

    largest_frame: ClassVar[int | None] = 1_518
    tools: ClassVar[tuple[Tool, ...]] = (PROGRAM,)

    @model_validator(mode="after")
    def _has_interrupts(self) -> Self:
        if self.mode == "interrupt" and self.driver != "tap":
            raise ValueError(f"mode: DPDK's {self.driver} has no interrupts, expected driver: tap")
        return self

    def require(self, host: Host) -> None:
        """Make sure that it is installed, and may open its ports."""
        super().require(host)
        if self.driver == "af_xdp" and not host.facts.root:
            raise HostError("dpdk with driver af_xdp: only root may load its XDP program")
        if self.driver == "tap" and not host.exists(_TUN):
            raise HostError(f"dpdk with driver tap: {_TUN} is missing, expected it of the kernel")

    @property
    def polls(self) -> bool:
        """Whether it polls instead of waiting for interrupts."""
        return self.mode == "poll"

    def serving(self, at: Forwarding) -> list[int]:
        """Return the CPU on which it polls or is woken."""
        return [at.dut.cpus[-1]]

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> Agent:
        """Start it, and join its taps with the interfaces."""
        taps = self.driver == "tap"
        ports = [at.dut_in.name, at.dut_out.name]
        kernel = [f"dtap{number}" for number in range(2)] if taps else ports
        devices = [f"net_{self.driver}{number},iface={name}" for number, name in enumerate(kernel)]
        arguments = ["--ingress", devices[0], "--egress", devices[1], "--both-ways"]
        arguments += ["--mode", self.mode, "--forward-mode", self.forward_mode]
        arguments += ["--cpu", str(at.dut.cpus[-1])]
        # DPDK makes a folder there, and would leave it behind elsewhere.
        program = ("env", f"RUNTIME_DIRECTORY={at.dut.path()}", PROGRAM.program)
        cpus = sorted({*at.dut.spared, at.dut.cpus[-1]})
        agent = stack.enter_context(
            Agent(at.dut, "forward", *arguments, cpus=cpus, program=program)
        )
        agent.ready()
        if taps:
            for number, (port, tap) in enumerate(zip(ports, kernel, strict=True)):
                at.dut.set(f"net/ipv6/conf/{tap}/disable_ipv6", "1")
                at.dut.run("ip", "link", "set", tap, "up")
                bridge(at.dut, f"br{number}", port, tap)
        return agent
