"""Hosts that reboot for an experiment: a boot method (:mod:`.boots`) of testbeds of hosts."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.experiment.boots import BootLines
from tailtrim.laboratory.nodes.boot.host import METHODS, BootRequest, rebooted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tailtrim.laboratory.experiment.record import Experiment
    from tailtrim.laboratory.nodes.host import ReservedHost
    from tailtrim.laboratory.nodes.node_entry import NodeEntry
    from tailtrim.laboratory.nodes.ssh_testbed import HostsTestbed
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Boot, Run


class RebootedHost:
    """A host in a boot that was asked for."""

    def __init__(self, session: ReservedHost, record: dict[str, Any]) -> None:
        """Take the session that began after the boot."""
        self._session, self.record = session, record

    @property
    def alive(self) -> bool:
        """Whether the session goes on: it ends with the boot."""
        return not self._session.lost

    def named(self, boot: str) -> None:
        """Record the name of the boot; the host keeps its own."""
        self.record["boot"] = boot

    def audit(self) -> dict[str, Any]:
        """Return what the agent's audit says of it.

        Raises:
            HostError: it says nothing.

        """
        return self._session.audit("--duration", "0")

    def boot_line(self) -> dict[str, Any]:
        """Return what its kernel made of its boot line.

        Raises:
            HostError: it does not say.

        """
        return self._session.audit("--boot-line")


class RebootedHosts:
    """The device's host of a testbed, which boots as a plan asks for.

    Args:
        experiment: whose runs.
        testbed: which has reserved the host.

    """

    asked_once = False

    def __init__(self, experiment: Experiment, testbed: HostsTestbed) -> None:
        """Boot nothing yet."""
        self._experiment, self._testbed = experiment, testbed
        booting = experiment.plan.boots_node or any(run.boot for run in experiment.runs)
        self.node = testbed.device if booting else None

    def prepare(self) -> None:
        """Look for the kernels of missing runs on the host, and at their boot lines."""
        boots = dict.fromkeys(run.boot for run in self._experiment.missing())
        wanted = [boot for boot in boots if boot is not None]
        if wanted:
            lines = BootLines(self._testbed.notices.append)
            look(self._testbed.host(), self._testbed.entry(), wanted, lines).refuse()

    @contextmanager
    def boot(self, boot: Boot, place: Path) -> Iterator[RebootedHost]:
        """Boot the host, and reserve it again: nothing of a session outlives a boot."""
        del place
        name = self._testbed.device
        try:
            record = rebooted(name, self._testbed.entry(), BootRequest(boot.kernel, boot.cmdline))
            session = self._testbed.session_after_boot(name)
        except HostError as error:
            failed = RunError(str(error))
            for note in getattr(error, "__notes__", ()):
                failed.add_note(note)
            raise failed from error
        yield RebootedHost(session, record | {"facts": asdict(session.facts)})

    def hand_over(self, folder: Path) -> None:
        """Do nothing: the console of a host is its own."""

    def forwarding(self, node: RebootedHost, run: Run, folder: Path) -> Forwarding:
        """Wire the hosts."""
        del node
        return self._testbed.forwarding(folder, run.traffic.largest_frame)


def look(
    session: ReservedHost, entry: NodeEntry, boots: Iterable[Boot], lines: BootLines
) -> BootLines:
    """Look for what boots need on a host, and at their lines.

    Raises:
        HostError: the host lacks a program or a kernel.

    """
    if entry.boot is None:
        raise HostError(f"{session.role}: nodes.{session.role}.boot is not in the testbed file")
    session.require(*METHODS[entry.boot.by].tools)
    for boot in boots:
        asked = BootRequest(boot.kernel, boot.cmdline)
        line = asked.line(session, entry.boot)
        lines.look(line.text, line.release, session.facts.cpus, boot.kernel)
    return lines
