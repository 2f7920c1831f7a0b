"""Devices under test: what to do in the device's node so that packets pass."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from tailtrim.agent import Agent
from tailtrim.errors import RunError
from tailtrim.rundir import DISTURBED, STALLS
from tailtrim.testbed import inline, kernel, openvswitch, testpmd, xdp
from tailtrim.testbed.local import DUT_IN, DUT_OUT, MACS, SINK, redirect
from tailtrim.testbed.node import allowed
from tailtrim.testbed.program import Program
from tailtrim.testbed.ready import wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.plan import Dut
    from tailtrim.testbed.local import Testbed


class Device:
    """A device under test that packets pass, for as long as the context lasts."""

    def __init__(  # noqa: PLR0913 - which device, where, and what for
        self,
        testbed: Testbed,
        dut: Dut,
        folder: Path,
        cpus: Sequence[int],
        *,
        ip: int = 4,
        ready_s: float = 30.0,
    ) -> None:
        """Start the device and wait until packets pass it.

        Args:
            testbed: where.
            dut: which.
            folder: for what it writes.
            cpus: where it may run, if it is a program; on the last of them it polls.
            ip: version of IP that passes it.
            ready_s: how long it may take until packets pass.

        Raises:
            HostError: this host lacks what it takes.
            RunError: it died, or nothing passes it.

        """
        self.agent: Agent | None = None
        self._program: Program | None = None
        self._name = dut.preset
        with ExitStack() as stack:
            self._ip = ip
            self._start(testbed, dut, folder, cpus, stack)
            try:
                wait_until_ready(testbed, destination_mac(dut), ip, self.check, ready_s)
            except RunError as error:
                program = self._program
                if program is not None and program.alive and (told := program.last_words()):
                    error.add_note(f"it printed: {told}")
                raise
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the device itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stack.close()

    @property
    def pid(self) -> int:
        """The process of a device that is a program."""
        if self.agent is not None:
            return self.agent.pid
        if self._program is None:
            raise RunError(f"the device under test ({self._name}) is no process")
        return self._program.pid

    def check(self) -> None:
        """Make sure that the device runs.

        Raises:
            RunError: it has died.

        """
        if self.agent is not None and not self.agent.poll():
            self.agent.result(1)
            raise RunError(f"the device under test ({self._name}) ended before the run did")
        if self._program is not None and not self._program.alive:
            told = self._program.last_words()
            message = f"the device under test ({self._name}) died"
            raise RunError(f"{message}: {told}" if told else message)

    def stop(self) -> dict[str, Any] | None:
        """Stop the reference forwarder and return what it counted; nothing of other devices."""
        return self.agent.stop() if self.agent is not None else None

    def _start(
        self, testbed: Testbed, dut: Dut, folder: Path, cpus: Sequence[int], stack: ExitStack
    ) -> None:
        node = testbed.dut
        match dut.preset:
            case "wire":
                redirect(node, DUT_IN, DUT_OUT)
            case "forward":
                arguments = _forward(dut, folder, cpus[-1])
                self.agent = stack.enter_context(Agent("forward", *arguments, prefix=node.prefix))
                self.agent.ready()
            case "bridge":
                kernel.bridge(node)
            case "router":
                kernel.router(node, self._ip)
            case "nftables":
                kernel.router(node, self._ip)
                kernel.firewall(node, dut)
            case "xdp":
                stack.enter_context(xdp.Redirect(testbed))
            case _:
                command = _command(dut, folder, cpus)
                # DPDK puts sockets there, and would leave them behind elsewhere.
                more = {"RUNTIME_DIRECTORY": str(folder)}
                program = Program(node, command, folder / "dut.log", more)
                self._program = stack.enter_context(program)


def _command(dut: Dut, folder: Path, cpus: Sequence[int]) -> list[str]:
    """Return how to start a device that is a program."""
    return [*allowed(cpus), *_alone(dut, folder, cpus[-1])]


def _alone(dut: Dut, folder: Path, cpu: int) -> list[str]:
    match dut.preset:
        case "testpmd":
            return testpmd.command(dut, cpu)
        case "ovs":
            return openvswitch.command(folder)
        case "suricata":
            return inline.suricata(dut, folder)
        case "snort":
            return inline.snort(dut, folder)
        case _:
            text = (dut.command or "").replace("{in}", DUT_IN).replace("{out}", DUT_OUT)
            return shlex.split(text)


def serving(dut: Dut, generating: int, cpus: Sequence[int]) -> list[int]:
    """Return the CPUs on which packets pass the device.

    A pair of virtual interfaces hands frames on in the sender's context, so that what is all kernel
    serves them on the generator's CPU.
    """
    match dut.preset:
        case "wire" | "bridge" | "router" | "nftables" | "xdp":
            return [generating]
        case "forward" | "testpmd":
            return [cpus[-1]]
        case _:
            return list(cpus)


def destination_mac(dut: Dut) -> str:
    """Return where frames have to be sent: to a router itself, through all others to the sink."""
    return MACS[DUT_IN if dut.preset in {"router", "nftables"} else SINK]


def _forward(dut: Dut, folder: Path, cpu: int) -> list[str]:
    arguments = ["--from", DUT_IN, "--to", DUT_OUT, "--mode", dut.mode, "--batch", str(dut.batch)]
    if dut.work_ns:
        arguments += ["--work", str(dut.work_ns), "--stall-log", str(folder / STALLS)]
    if dut.delay is not None:
        arguments += ["--delay", dut.delay, "--delay-log", str(folder / "truth.bin")]
    if dut.disturbed_from_within and dut.disturb is not None:
        arguments += ["--disturb", dut.disturb, "--disturb-log", str(folder / DISTURBED)]
    return [*arguments, "--cpu", str(cpu)]
