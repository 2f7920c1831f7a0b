"""Reboot of a node into another boot line, until it can be used again, or a clear error."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from tailtrim.errors import HostError, TailtrimError
from tailtrim.laboratory.nodes.boot.line import BootSeen

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tailtrim.laboratory.nodes.boot.line import BootLine
    from tailtrim.laboratory.nodes.host import Shell
    from tailtrim.laboratory.nodes.power import Power
    from tailtrim.tool import Tool

    #: Connects to a node.
    Reach = Callable[[], AbstractContextManager[Shell]]

_POLL_S = 1.0


class BootMethod(ABC):
    """A method to boot into another line: :class:`.methods.Kexec` or :class:`.methods.Grub`."""

    #: Tools that it needs on the node.
    tools: ClassVar[tuple[Tool, ...]]

    @abstractmethod
    def prepare(self, node: Shell, line: BootLine) -> None:
        """Make it the next one.

        Raises:
            HostError: the node lacks something for it, or refuses.

        """

    @abstractmethod
    def leave(self, node: Shell) -> None:
        """End the running system for it, through systemd where there is.

        Raises:
            HostError: it was refused.

        """

    @abstractmethod
    def restore(self, node: Shell) -> None:
        """Take back what was prepared.

        Raises:
            HostError: the node refuses.

        """


def reboot(
    reach: Reach, method: BootMethod, line: BootLine, *, within_s: float, power: Power | None = None
) -> BootSeen:
    """Boot a node into a line, and return the boot that it is in then, which is as asked.

    Args:
        reach: connects to the node; raises while it cannot be reached.
        method: how.
        line: into what.
        within_s: seconds until it has to be reached, in a new boot.
        power: cycles it once if it is not; ``None`` where that is not allowed.

    Raises:
        HostError: it cannot boot so, did not come up, or came up with something else.

    """
    with reach() as node:
        role, before = node.role, BootSeen.of(node)
        try:
            method.prepare(node, line)
            method.leave(node)
        except BaseException as error:
            _restore(node, method, error)
            raise
    try:
        after, cycled = _up(role, before, reach, within_s, power)
    except HostError as error:
        _restore_later(reach, method, error)
        raise
    with reach() as node:
        method.restore(node)
    difference = line.difference(after)
    if difference:
        raise HostError(f"{role}: {difference}{cycled}")
    return after


def _up(
    role: str, before: BootSeen, reach: Reach, within_s: float, power: Power | None
) -> tuple[BootSeen, str]:
    """Wait for the next boot, and cycle the power once; returns the boot, and whether that was."""
    try:
        return _came_up(role, before, reach, within_s), ""
    except HostError as error:
        if power is None:
            error.add_note("look at its console, and switch its power; or allow that here: power")
            raise
    power.cycle()
    told = ", after its power was cycled since it did not come up"
    return _came_up(role, before, reach, within_s), told


def _restore_later(reach: Reach, method: BootMethod, error: HostError) -> None:
    """Take back what was prepared on a node that may still be in its old boot."""
    try:
        with reach() as node:
            _restore(node, method, error)
    except TailtrimError:
        error.add_note("what was prepared for its next boot may still be there")


def _restore(node: Shell, method: BootMethod, error: BaseException) -> None:
    """Take back what was prepared before an error; what cannot be is told with it."""
    try:
        method.restore(node)
    except TailtrimError as left:
        error.add_note(f"what was prepared is still there: {left}")


def _came_up(role: str, before: BootSeen, reach: Reach, within_s: float) -> BootSeen:
    ends = time.monotonic() + within_s
    while True:
        try:
            with reach() as node:
                seen = BootSeen.of(node)
            if seen.boot_id != before.boot_id:
                return seen
            last = "it is in the old one"
        except TailtrimError as error:
            last = str(error)
        if time.monotonic() >= ends:
            raise HostError(f"{role}: expected a new boot within {within_s:g} s, last: {last}")
        time.sleep(_POLL_S)
