"""Changes of this host by the agent's ``tune``: applied, verified, and taken back by its journal.

The journal is on disk before the first change. After a crash ``tailtrim trim --resume`` or
``tailtrim tune revert`` restores every value, byte for byte.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.agent import program
from tailtrim.laboratory.trim import state as records
from tailtrim.laboratory.trim.trial import Candidate
from tailtrim.laboratory.trim.verdict import Found
from tailtrim.results.drafts import locked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.laboratory.plan.trimming import HostChanges

#: Subjects of the checks of the audit, by the first part of their IDs.
_SUBJECTS = {
    "ISO": "isolation",
    "SCH": "scheduler",
    "IRQ": "interrupts",
    "PWR": "power",
    "CLK": "clocks",
    "MEM": "memory",
    "CAT": "cache",
    "NET": "network",
    "DPK": "dpdk",
    "VM": "virtualisation",
    "WD": "watchdogs",
    "AUD": "error-reports",
    "SVC": "services",
    "FW": "firmware",
    "SEC": "security",
}
#: Changes that are tried only if the plan names them: they take away CPUs or protection.
_RISKY = ("ISO-021", "SEC-001", "SEC-002")
#: Reasons of changes that do not take effect at once.
_LATER = {"next-boot": "takes effect after a reboot only", "by-hand": "has to be done by hand"}
_TIMEOUT_S = 120
_SUMMARY = 300


class HostTuning:
    """The changes of this host that can be tried, in the order of the catalogue.

    Args:
        asked: what the plan says.
        killed: the folder of a search that may have been killed: what it has applied is taken back
            before the host is looked at.

    Raises:
        HostError: the plan names another host, or the agent is missing.
        OutputError: the search in the folder is running.

    """

    def __init__(self, asked: HostChanges, killed: Path | None = None) -> None:
        """Ask the agent for its plan of changes."""
        here = socket.gethostname()
        if asked.name != here:
            told = f"trim.host.name: the plan names {asked.name!r}, this host is {here!r}"
            raise HostError(f"{told}: nothing is changed on a host that is not named")
        if killed is not None and (names := records.applied(killed)):
            with locked(killed):
                self._take_back(names)
        self._request = ["--profile", asked.profile]
        self._request += ["--isolate", asked.isolate] if asked.isolate else []
        only = [word for name in asked.only for word in ("--only", name)]
        done = _agent("plan", *self._request, *only, "--json")
        if done.returncode:
            raise HostError(f"tailtrim tune plan: {_last(done)}")
        self.candidates: list[Candidate] = []
        self.impossible: list[Found] = []
        for change in json.loads(done.stdout)["changes"]:
            self._sort(change, asked.only)

    def _sort(self, change: dict[str, Any], named: list[str]) -> None:
        name, checks = change["id"], change["checks"]
        prefix = checks[0].partition("-")[0] if checks else ""
        group = _SUBJECTS.get(prefix, name.partition(".")[0])
        states = {step["state"] for step in change["steps"]}
        risky = any(check in _RISKY for check in checks)
        reason = None
        if change["when"] != "now":
            reason = _LATER.get(change["when"], change["when"])
        elif risky and not ({name, *checks} & set(named)):
            reason = "takes away CPUs or protection: tried only if trim.host.only names it"
        elif states == {"already"}:
            reason = "is set already"
        elif "needed" not in states:
            reason = f"cannot be set here ({', '.join(sorted(states))})"
        if reason is None:
            takes = str(change.get("takes") or "")
            self.candidates.append(Candidate(name, group, checks=tuple(checks), takes=takes))
        else:
            self.impossible.append(Found(name, group, reason, tried=False))

    def require_untuned(self) -> None:
        """Refuse a host on which changes of ``tailtrim tune`` are applied.

        Raises:
            HostError: there are some.

        """
        if self.applied():
            error = HostError("changes of tailtrim tune are applied on this host")
            error.add_note("tailtrim tune revert takes them back")
            raise error

    def _take_back(self, names: Sequence[str]) -> None:
        """Revert the changes of a killed search; refuse if others are applied."""
        others = {value["change"] for value in self._status().get("values", ())} - set(names)
        if others:
            told = f"changes that are not of this search are applied: {', '.join(sorted(others))}"
            error = HostError(told)
            error.add_note("tailtrim tune revert takes them back")
            raise error
        self.revert()

    def applied(self) -> bool:
        """Whether a journal says that changes are applied.

        Raises:
            HostError: the agent cannot tell.

        """
        return bool(self._status()["applied"])

    def _status(self) -> dict[str, Any]:
        done = _agent("status", "--json")
        try:
            found: dict[str, Any] = json.loads(done.stdout)
            found["applied"]
        except (ValueError, KeyError, TypeError) as error:
            raise HostError(f"tailtrim tune status: {_last(done)}") from error
        return found

    def apply(self, changes: frozenset[str]) -> str | None:
        """Apply changes and read them back.

        Returns:
            why not all of them are in effect; ``None`` if they are.

        """
        if not changes:
            return None
        only = [word for name in sorted(changes) for word in ("--only", name)]
        for command in (("apply", *self._request, *only), ("verify",)):
            done = _agent(*command)
            if done.returncode:
                return f"tailtrim tune {command[0]}: {_last(done)}"
        return None

    def revert(self) -> None:
        """Revert the changes that are applied.

        Raises:
            HostError: not all of it could be.

        """
        if not self.applied():
            return
        done = _agent("revert")
        if done.returncode:
            error = HostError(f"tailtrim tune revert: {_last(done)}")
            error.add_note("the journal is kept: tailtrim tune status shows what is applied")
            raise error

    def export(self, changes: frozenset[str], folder: Path) -> list[Path]:
        """Write changes as a profile of tuned; returns its folder."""
        only = [word for name in sorted(changes) for word in ("--only", name)]
        place = folder / "tuned"
        done = _agent("export", *self._request, *only, "--format", "tuned", "--out", str(place))
        if done.returncode:
            raise HostError(f"tailtrim tune export: {_last(done)}")
        return [place]


def _agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    # In a process group of its own, and waited for whatever ends the search meanwhile: a change
    # that is being applied or reverted is not left half done.
    ended_by: BaseException | None = None
    until_s = time.monotonic() + _TIMEOUT_S
    command = [program(), "tune", *arguments]
    with subprocess.Popen(  # noqa: S603 - the agent, with what the plan's types allow
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as process:
        while True:
            try:
                output, errors = process.communicate(timeout=max(until_s - time.monotonic(), 0))
                break
            except (KeyboardInterrupt, SystemExit) as error:
                ended_by = error
            except subprocess.TimeoutExpired as error:
                process.kill()
                told = f"tailtrim tune {arguments[0]}: no end after {_TIMEOUT_S} s"
                raise HostError(told) from error
    if ended_by is not None:
        raise ended_by
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _last(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
    return lines[-1][:_SUMMARY]
