"""The power that a command of the user prints."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from tailtrim.errors import HostError
from tailtrim.nodes.meters.meter import AskedMeter, Value
from tailtrim.nodes.power.command import Words, output


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
