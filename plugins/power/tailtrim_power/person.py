"""Power by a person, who is asked on the terminal."""

from __future__ import annotations

import os
import select
import termios
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.power.power import BootSource, Power, State

_TERMINAL = Path("/dev/tty")
_LINE_BYTES = 4_096


class Person(Power):
    """A person at the terminal, who does what it says and presses Enter."""

    asks_a_person: ClassVar[bool] = True

    kind: Literal["person"]
    machine: str = Field(description="What the person has to switch, such as: rack 3, the lowest.")
    deadline_s: float = Field(
        default=3_600.0, gt=0, description="Seconds until the person has to have answered."
    )

    @property
    def place(self) -> str:
        """The machine."""
        return f"person at {self.machine}"

    def state(self) -> State:
        """Ask whether the machine is on or off, until the answer is one of the two."""
        while True:
            told = self._ask(f"Is {self.machine} on or off? Type on or off, then Enter: ")
            if told.lower() in (State.ON, State.OFF):
                return State(told.lower())

    def boot_next(self, source: BootSource) -> None:
        """Ask the person to choose it."""
        named = {"pxe": "the network (PXE)", "disk": "its disk"}[source]
        self._ask(f"Have {self.machine} boot from {named} the next time. Then press Enter: ")

    def _switch(self, to: State, *, hard: bool) -> None:
        how = " by taking its power away" if hard else ""
        self._ask(f"Switch {self.machine} {to}{how}, and see that it is {to}. Then press Enter: ")

    def _reach(self, to: State, *, hard: bool) -> None:
        # The person sees the state; asking for it before and after would be the same person again.
        self._switch(to, hard=hard)

    def _ask(self, question: str) -> str:
        try:
            terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY)
        except OSError as error:
            refused = HostError(f"{self.place}: no terminal to ask on, expected {_TERMINAL}")
            refused.add_note("start tailtrim in a terminal, or give the node another kind of power")
            raise refused from error
        try:
            # Lines typed before the question are no answer to it.
            termios.tcflush(terminal, termios.TCIFLUSH)
            os.write(terminal, question.encode())
            return self._answer(terminal)
        finally:
            os.close(terminal)

    def _answer(self, terminal: int) -> str:
        """Return the line that is typed: the terminal gives whole lines."""
        if not select.select([terminal], [], [], self.deadline_s)[0]:
            raise HostError(f"{self.place}: no answer within {self.deadline_s:g} s")
        line = os.read(terminal, _LINE_BYTES)
        if not line:
            raise HostError(f"{self.place}: the terminal was closed, expected Enter")
        return line.decode(errors="replace").strip()
