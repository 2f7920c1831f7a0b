"""Any other device: a command of the plan's."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from tailtrim.laboratory.devices.program import ProgramDevice
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.testbed import Forwarding


def _can_be_split(value: str) -> str:
    try:
        parts = shlex.split(value)
    except ValueError as error:
        raise ValueError(f"expected words as a shell splits them ({error})") from error
    if not parts:
        raise ValueError("expected a program and its arguments")
    return value


class Command(ProgramDevice):
    """Any program that passes packets from one interface to the other."""

    preset: Literal["command"]
    command: Annotated[str, AfterValidator(_can_be_split)] = Field(
        description="Program and arguments; {in} and {out} stand for its interfaces."
    )

    @property
    def polls(self) -> None:
        """``None``: tailtrim cannot know whether the program polls while it waits."""
        return

    def require(self, host: Host) -> None:
        """Make sure that its program is there."""
        host.require(Tool(shlex.split(self.command)[0], elsewhere="it on the PATH (dut.command)"))

    def words(self, at: Forwarding) -> list[str]:
        """Return how to start it."""
        text = self.command.replace("{in}", at.dut_in.name).replace("{out}", at.dut_out.name)
        return shlex.split(text)
