"""Power that commands of the user switch and print, such as those of labgrid or of a script."""

from __future__ import annotations

import math
import subprocess
from typing import Annotated, Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.meters.meter import AskedMeter, Value
from tailtrim.laboratory.nodes.power.power import Power, State

#: A command as a list of words; no shell reads it.
Words = Annotated[list[str], Field(min_length=1)]
#: A command may wait for a relay or for a slow controller.
_COMMAND_S = 60.0


def output(words: list[str], place: str) -> str:
    """Return the output of a command on this machine.

    Raises:
        HostError: it cannot be started, fails, or does not end within 60 s.

    """
    try:
        ended = local_host.run(words, within_s=_COMMAND_S)
    except OSError as error:
        raise HostError(f"{place}: cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise HostError(f"{place}: no end after {_COMMAND_S:g} s") from error
    if ended.returncode != 0:
        lines = ended.stderr.strip().splitlines()
        told = f": {lines[-1]}" if lines else ""
        raise HostError(f"{place}: exit code {ended.returncode}{told}")
    return ended.stdout


class CommandPower(Power):
    """Power that commands on this machine switch."""

    kind: Literal["command"]
    on_command: Words = Field(description="Command that gives the node power.")
    off_command: Words = Field(description="Command that takes the power away.")
    state_command: Words = Field(
        description="Command whose last word of output is on or off, in any case."
    )
    shutdown_command: Words | None = Field(
        default=None, description="Command that asks the node's system to shut down."
    )

    @property
    def place(self) -> str:
        """The program that tells the state."""
        return f"command {self.state_command[0]}"

    def state(self) -> State:
        """Return the last word of what the command prints."""
        told = output(self.state_command, self.place).split()
        if not told or told[-1].lower() not in (State.ON, State.OFF):
            seen = repr(" ".join(told)[-120:])
            raise HostError(f"{self.place}: printed {seen}, expected on or off as the last word")
        return State(told[-1].lower())

    def _switch(self, to: State, *, hard: bool) -> None:
        if to is State.ON:
            words: list[str] | None = self.on_command
        else:
            words = self.off_command if hard else self.shutdown_command
        if words is None:
            error = HostError(f"{self.place}: no shutdown_command, expected hard")
            error.add_note("shut the node's system down first, then switch it off hard")
            raise error
        output(words, f"command {words[0]}")


class CommandMeter(AskedMeter):
    """A command on this machine that prints the node's power in W."""

    kind: Literal["command"]
    watts_command: Words = Field(
        description="Command whose last word of output is the power in W, such as 42.5."
    )
    # A printed number does not say how far apart its values are.
    resolution_w: float = Field(
        gt=0, allow_inf_nan=False, description="Smallest step of its power in W."
    )

    @property
    def place(self) -> str:
        """The program."""
        return f"command {self.watts_command[0]}"

    def measure(self) -> tuple[Value, float]:
        """Run the command."""
        told = output(self.watts_command, self.place).split()
        try:
            watts = float(told[-1])
        except (IndexError, ValueError):
            watts = math.nan
        if not 0 <= watts < math.inf:
            seen = repr(" ".join(told)[-120:])
            raise HostError(f"{self.place}: printed {seen}, expected watts as the last word")
        return Value(power_w=watts), self.resolution_w
