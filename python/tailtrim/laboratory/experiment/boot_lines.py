"""Boot lines of a plan, looked at before anything boots them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.laboratory.nodes import agent

if TYPE_CHECKING:
    from collections.abc import Callable

_WRONG = "error"


class BootLines:
    """Check of boot lines: the mistakes of all lines are reported together.

    Args:
        warned: is called with what may be wrong with one.

    """

    def __init__(self, warned: Callable[[str], None]) -> None:
        """Take who is warned."""
        self._warned = warned
        #: Mistakes found so far.
        self.mistakes: list[str] = []

    def look(self, line: str, release: str, cpus: int, kernel: str) -> None:
        """Look at a line.

        Args:
            line: the whole of it.
            release: what ``uname -r`` will say.
            cpus: number of CPUs of the machine.
            kernel: as the plan names it.

        Raises:
            HostError: the agent is missing, or cannot read the line.

        """
        for found in agent.boot_line_findings(line, release, cpus):
            text = f"boot.cmdline: {found['title']} ({kernel})"
            if found["severity"] == _WRONG:
                meant = f", expected {found['right']}" if found["right"] else ""
                self.mistakes.append(f"{text}{meant}")
            else:
                self._warned(text)

    def refuse(self) -> None:
        """Tell what is wrong, if anything is.

        Raises:
            PlanError: a line does not do what it says.

        """
        if self.mistakes:
            raise PlanError(*dict.fromkeys(self.mistakes))
