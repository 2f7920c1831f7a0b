"""The boots of an experiment: one for each block of runs, whatever it is that boots."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol, Self

from tailtrim.errors import HostError, PlanError, RunError
from tailtrim.laboratory.experiment.nodes_record import NodesRecord
from tailtrim.laboratory.experiment.record import write_json
from tailtrim.laboratory.nodes import agent
from tailtrim.laboratory.nodes.environment import changes
from tailtrim.laboratory.nodes.vm.guest import GuestDiedError
from tailtrim.laboratory.plan.run_order import block_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tailtrim.laboratory.experiment.context import InlineRunContext, RunContext
    from tailtrim.laboratory.experiment.record import Experiment
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Boot, Run

#: Below the experiment: a folder for each boot.
_BOOTS = "boots"
#: Record of a boot: its kernel and line, its duration, or why it failed.
_RECORD = "boot.json"
_WRONG = "error"


class BootedNode(Protocol):
    """A node in a boot that was asked for."""

    #: Facts of the boot: at least ``boot_line`` with the line as asked, set and seen.
    record: dict[str, Any]

    @property
    def alive(self) -> bool:
        """Whether it is still in this boot, and can be reached."""

    def named(self, boot: str) -> None:
        """Take the name of the boot."""

    def audit(self) -> dict[str, Any]:
        """Return what the agent's audit says of it."""

    def boot_line(self) -> dict[str, Any]:
        """Return what its kernel made of its boot line."""


class BootMethod(Protocol):
    """A method to boot the device's node: as a virtual machine, or as a host that reboots."""

    #: The name of the node where it is one of the testbed, which runs without a boot use, too.
    node: str | None
    #: Whether the node is asked once in a boot how it is set up.
    asked_once: bool

    def prepare(self) -> None:
        """Make sure that all boots are possible, before anything runs.

        Raises:
            HostError: the node cannot.
            PlanError: a boot line does not do what it says.

        """

    def boot(self, boot: Boot, place: Path) -> AbstractContextManager[BootedNode]:
        """Boot the node.

        Args:
            boot: into what.
            place: folder for what the boot leaves.

        Raises:
            HostError: it cannot be booted at all.
            RunError: it did not come up as asked.

        """

    def forwarding(self, node: Any, run: Run, folder: Path) -> Forwarding:
        """Wire the node for packets that pass its device."""

    def hand_over(self, folder: Path) -> None:
        """Give a run the output of its node other than that of programs, if there is any."""


class Boots:
    """The boots of the device's node, for as long as the context lasts; runs share them.

    Args:
        experiment: whose runs; each boot has a folder in it, with its record and audit.
        method: how the node boots.

    """

    def __init__(self, experiment: Experiment, method: BootMethod) -> None:
        """Boot nothing yet."""
        self._experiment, self._method = experiment, method
        self._stack = ExitStack()
        self._block: Hashable = None
        self._boot_now: Boot | None = None
        self._node: BootedNode | None = None
        self._failed: str | None = None
        self._doubts: tuple[str, ...] = ()
        self._first: NodesRecord | None = None

    def __enter__(self) -> Self:
        """Return it itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what runs."""
        self._end()

    @property
    def untried(self) -> str | None:
        """Why the boot of the last run is not the one that was asked for; ``None`` if it is.

        The node did not come up, or its kernel took nothing of a word of its boot line.
        """
        return self._failed or "; ".join(self._doubts) or None

    def prepare(self) -> None:
        """Make sure that all boots are possible, as :meth:`BootMethod.prepare` does."""
        self._method.prepare()

    def forwarding(self, context: RunContext) -> Forwarding:
        """Wire the testbed for packets that pass the device of a run, whose node boots if need be.

        Raises:
            HostError: this testbed cannot.
            RunError: the node of this block did not boot.

        """
        run, folder = context.run, context.folder
        if run.boot is None:
            return self._experiment.testbed.forwarding(folder, run.traffic.largest_frame)
        block = block_of(run)
        if block != self._block or not (self._failed or (self._node and self._node.alive)):
            self._end()
            self._block = block
            try:
                self._boot(run.boot, context.progress)
            except RunError as error:
                # Its other runs would wait as long, for the same.
                self._failed = "; ".join([str(error), *getattr(error, "__notes__", ())])
        if self._failed or self._node is None:
            raise RunError(self._failed or "no boot")
        return self._method.forwarding(self._node, run, folder)

    def leave(self, boot: Boot) -> str | None:
        """Have a node that stays when this ends be in a boot; returns its name, if it stays.

        Raises:
            HostError: it cannot be booted at all.
            RunError: it did not come up as asked.

        """
        if self._method.node is None:
            return None
        if self._boot_now != boot or self._node is None or not self._node.alive:
            self._end()
            self._block = None
            self._boot(boot)
        return self._method.node

    def hand_over(self, folder: Path) -> None:
        """Give a run what the node printed in it, as :meth:`BootMethod.hand_over` does."""
        if self._node is not None:
            self._method.hand_over(folder)

    def nodes(self, context: InlineRunContext) -> NodesRecord:
        """Return the nodes of a run as they are when it begins."""
        at = context.at
        if context.run.boot is None or self._node is None:
            return NodesRecord(at, apart=self._method.node)
        nodes = NodesRecord(
            at,
            boot=self._node.record,
            before=self._first if self._method.asked_once else None,
            apart=at.nodes["dut"].host_name,
        )
        self._first = self._first or nodes
        return nodes

    def doubts(self, run: Run, nodes: NodesRecord) -> list[str]:
        """Return words of the boot line without effect, and changes since the boot."""
        if run.boot is None or self._first is None:
            return []
        changed = changes(self._first.booted, nodes.booted)
        return [*self._doubts, *(f"the environment changed since the boot: {c}" for c in changed)]

    def _end(self) -> None:
        self._stack.close()
        self._node, self._failed, self._doubts, self._first = None, None, (), None
        self._boot_now = None

    def _boot(self, boot: Boot, progress: Callable[[str], None] = lambda _: None) -> None:
        """Boot the node; a guest that dies while it boots is booted once more."""
        progress(f"booting {boot.kernel}")
        self._boot_now = boot
        place = self._new_folder()
        try:
            self._start(boot, place, {})
        except GuestDiedError as error:
            self._stack.close()
            again = self._new_folder()
            self._experiment.notices.append(f"{place.name} was booted again: {error}")
            progress(f"booting {boot.kernel} again")
            self._start(boot, again, {"again_after": place.name})

    def _start(self, boot: Boot, place: Path, record: dict[str, str]) -> None:
        try:
            node = self._stack.enter_context(self._method.boot(boot, place))
        except RunError as error:
            write_json(place / _RECORD, record | {"failed": str(error)})
            raise
        node.record |= record
        node.named(place.name)
        write_json(place / _RECORD, node.record)
        with suppress(HostError):
            write_json(place / "audit.json", node.audit())
        line = node.boot_line()
        write_json(place / "boot-line.json", line)
        self._doubts = tuple(
            f"boot line: {found['title']}"
            for found in line["findings"]
            if found["severity"] == _WRONG
        )
        self._node = node

    def _new_folder(self) -> Path:
        boots = self._experiment.path / _BOOTS
        boots.mkdir(exist_ok=True)
        place = boots / f"boot-{len(list(boots.iterdir())):03d}"
        place.mkdir()
        return place


class BootLines:
    """Check of boot lines: the mistakes of all lines are reported together.

    Args:
        warn: is called with what may be wrong with one.

    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        """Take who is warned."""
        self._warn = warn
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
                self._warn(text)

    def refuse(self) -> None:
        """Tell what is wrong, if anything is.

        Raises:
            PlanError: a line does not do what it says.

        """
        if self.mistakes:
            raise PlanError(*dict.fromkeys(self.mistakes))
