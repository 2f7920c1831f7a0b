"""The base class of all ways to switch a node's power: :class:`Power`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.model_base import Strict

#: Source of one boot: the network or the disk.
BootSource = Literal["pxe", "disk"]

#: A service may take 90 s to end (DefaultTimeoutStopSec of systemd) before it is killed, and others
#: may wait for it: twice that.
DEADLINE_S = 180.0
#: IPMI (Chassis Control) has a power cycle leave the power off for at least 1 s. Capacitors of a
#: power supply hold longer than that when an outlet is switched: a choice, not a measurement.
OFF_S = 10.0
#: One question: a lost SYN is sent again after 1 s, 3 s and 7 s (RFC 6298), so three may be lost.
REQUEST_S = 10.0
_POLL_S = 1.0


class State(StrEnum):
    """Whether a node has power."""

    ON = "on"
    OFF = "off"
    #: The controller says that it is on the way from one to the other.
    CHANGING = "changing"


class Power(Strict, ABC):
    """A way to switch a node's power, as a testbed file says it.

    A change returns when the new state was seen. A subclass narrows ``kind`` to its name. Methods
    raise MissingPackageError where the Python package that asks the switch is not installed.
    """

    #: Whether a person is asked, which a check of a testbed does not do.
    asks_a_person: ClassVar[bool] = False

    kind: str
    deadline_s: float = Field(
        default=DEADLINE_S, gt=0, description="Seconds until a change has to be seen."
    )
    off_s: float = Field(
        default=OFF_S, ge=0, description="Seconds that the power stays off when it is cycled."
    )

    @property
    @abstractmethod
    def place(self) -> str:
        """Name and place of the switch, for messages."""

    @abstractmethod
    def state(self) -> State:
        """Return whether the node has power.

        Raises:
            HostError: it cannot be asked, or answers what is not known.

        """

    def on(self) -> None:
        """Switch the node on, and return when it is; one that is on is left alone.

        Raises:
            HostError: it cannot be switched, or is not on in time.

        """
        self._reach(State.ON, hard=False)

    def off(self, *, hard: bool = False) -> None:
        """Switch the node off, and return when it is; one that is off is left alone.

        Args:
            hard: take the power away, instead of asking the node's system to shut down.

        Raises:
            HostError: it cannot be switched so, or is not off in time.

        """
        self._reach(State.OFF, hard=hard)

    def cycle(self) -> None:
        """Take the node's power away, wait, and give it back; each is seen before the next.

        Raises:
            HostError: it cannot be switched, or a state is not there in time.

        """
        self.off(hard=True)
        time.sleep(self.off_s)
        self.on()

    def boot_next(self, source: BootSource) -> None:
        """Have the node boot from this the next time, and only then.

        Raises:
            HostError: it cannot be said so here, or was not taken.

        """
        error = HostError(f"{self.place}: cannot choose what the node boots from ({source})")
        error.add_note("set it in the node's firmware, or give the node power by redfish or ipmi")
        raise error

    @abstractmethod
    def _switch(self, to: State, *, hard: bool) -> None:
        """Ask for a state; whether it comes is seen by others."""

    def _reach(self, to: State, *, hard: bool) -> None:
        ends = time.monotonic() + self.deadline_s
        if self.state() is to:
            return
        self._switch(to, hard=hard)
        while True:
            # A controller may be away for a moment while it switches.
            try:
                seen = self.state()
                if seen is to:
                    return
                last = f"it is {seen}"
            except HostError as error:
                last = str(error)
            if time.monotonic() >= ends:
                raise self._late(to, last, hard=hard)
            time.sleep(_POLL_S)

    def _late(self, to: State, last: str, *, hard: bool) -> HostError:
        error = HostError(f"{self.place}: expected {to} within {self.deadline_s:g} s, last: {last}")
        if to is State.OFF and not hard:
            error.add_note("its system may ignore the power button: switch it off hard")
        else:
            error.add_note("look at the node itself, or give it more time: deadline_s")
        return error
