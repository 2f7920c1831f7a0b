"""Devices that are programs."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from tailtrim.laboratory.devices.disturbed import DisturbedDevice
from tailtrim.laboratory.nodes.node import allowed

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.node import Program
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: File with the output of the program.
LOG = "dut.log"


class ProgramDevice(DisturbedDevice):
    """A device that is a program, on the CPUs of its node."""

    leaves: ClassVar[tuple[str, ...]] = (LOG,)

    @abstractmethod
    def words(self, at: Forwarding) -> list[str]:
        """Return how to start it: program and arguments.

        Raises:
            HostError: the node lacks what it takes.

        """

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> Program:
        """Start the program; its output goes to a log."""
        # DPDK puts sockets there, and would leave them behind elsewhere.
        more = {"RUNTIME_DIRECTORY": at.dut.path()}
        words, around = self.words(at), allowed(at.dut.cpus)
        program = at.dut.start(*words, log=LOG, environment=more, around=around)
        return stack.enter_context(program)
