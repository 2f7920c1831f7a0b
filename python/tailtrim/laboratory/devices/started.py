"""A device that packets pass, from its start to its end."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, Self

from tailtrim.errors import RunError
from tailtrim.laboratory.devices.ready import wait_until_ready
from tailtrim.laboratory.nodes.agent import Agent

if TYPE_CHECKING:
    from tailtrim.laboratory.devices.device import InlineDevice
    from tailtrim.laboratory.nodes.testbed import Forwarding


class Running(Protocol):
    """A device that packets pass."""

    @property
    def pid(self) -> int:
        """The process of a device that is one.

        Raises:
            RunError: the device is not a process.

        """

    def check(self) -> None:
        """Make sure that the device runs.

        Raises:
            RunError: it has died.

        """

    def stop(self) -> dict[str, Any] | None:
        """End the run; return what the device counted in it, if it counts."""


class Started:
    """A device that packets pass, for as long as the context lasts."""

    def __init__(
        self, device: InlineDevice, at: Forwarding, *, ip: int = 4, ready_s: float = 30.0
    ) -> None:
        """Start the device and wait until packets pass it.

        Args:
            device: which, with its options.
            at: where.
            ip: version of IP that passes it.
            ready_s: how long it may take until packets pass.

        Raises:
            HostError: its node lacks what it takes.
            RunError: it died, or nothing passes it.

        """
        self._name, self._node = device.preset, at.dut
        with ExitStack() as stack:
            device.require(at.dut)
            self._process = device.start(at, ip, stack)
            try:
                wait_until_ready(at, device.destination(at), ip, self.check, ready_s)
            except RunError as error:
                program = None if isinstance(self._process, Agent) else self._process
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
        """The process of a device that is one."""
        if self._process is None:
            raise RunError(f"the device under test ({self._name}) is not a process")
        return self._process.pid

    def check(self) -> None:
        """Make sure that the device runs.

        Raises:
            RunError: it has died.

        """
        if self._process is None:
            return
        if isinstance(self._process, Agent):
            if not self._process.poll():
                self._process.result(1)
                raise RunError(f"the device under test ({self._name}) ended before the run did")
        elif not self._process.alive:
            told = self._process.last_words()
            if self._node.counted().get("oom_kill"):
                told = "killed by the kernel, its memory went over memory.max"
            message = f"the device under test ({self._name}) died"
            raise RunError(f"{message}: {told}" if told else message)

    def stop(self) -> dict[str, Any] | None:
        """Stop the reference forwarder and return what it counted; nothing of other devices."""
        return self._process.stop() if isinstance(self._process, Agent) else None
