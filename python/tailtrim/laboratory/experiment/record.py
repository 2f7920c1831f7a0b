"""The record of an experiment: its runs in order, and the outcome of each."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from tailtrim._native import VERSION
from tailtrim.errors import HostError, OutputError, Remedy
from tailtrim.laboratory.experiment import failed_runs
from tailtrim.laboratory.nodes.environment import changes
from tailtrim.laboratory.nodes.testbed import LOCAL, testbed_for
from tailtrim.results import RunDirectory
from tailtrim.results.drafts import locked, replacing
from tailtrim.results.experiments import AUDIT, RECORD, SCHEMA, Outcome, outcome_of
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.laboratory.plan import Plan, Run

#: Prefix of the temporary folders of runs and devices.
HALF = ".run-"
#: The plan as it was given, and the hosts that its testbed file names.
_PLAN, _DRAWING = "plan.yml", "testbed.svg"


class Experiment:
    """The directory of an experiment, locked against other processes until its context ends.

    Args:
        path: where it is.
        plan: the plan to run.
        runs: its runs in order.

    Raises:
        OutputError: the directory belongs to something else, to another plan, or to another
            process that works in it.

    """

    def __init__(self, path: Path, plan: Plan, runs: Sequence[Run], *, resume: bool) -> None:
        """Make the directory, or take up the one that is there."""
        self.path, self.plan, self.runs = path, plan, list(runs)
        #: Quantiles for the summaries of the runs, in addition to 0.5, 0.9, 0.99 ….
        self.quantiles: list[str] = []
        #: Settings of the nodes when the first run began, by their names.
        self.environment: dict[str, dict[str, str]] = {}
        self.testbed = testbed_for(plan.testbed, plan.name)
        #: Messages for users about the course of the experiment.
        self.notices: list[str] = []
        record = path / RECORD
        if path.exists() and not record.exists() and (not path.is_dir() or any(path.iterdir())):
            raise OutputError(
                f"{path}: exists and is not an experiment, so nothing is written to it"
            )
        self.outcomes: dict[str, Outcome] = {}
        self._began = datetime.now(UTC).isoformat(timespec="seconds")
        with ExitStack() as stack:
            stack.enter_context(locked(path))
            if record.exists():
                if not resume:
                    error = OutputError(f"{path}: holds an experiment already")
                    error.add_note(Remedy("go on with it by {resume}, or choose another {out}"))
                    raise error
                self._take_up(record)
            for half in path.glob(f"{HALF}*"):
                # A run of hours that was killed.
                if (run := failed_runs.run_of(half)) is not None:
                    failed_runs.keep(half, path, run)
                shutil.rmtree(half, ignore_errors=True)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the experiment itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Unlock its directory."""
        self._stack.close()

    def _take_up(self, record: Path) -> None:
        """Go on where the record and the runs that are there end."""
        try:
            known = parsed(record.read_text("utf-8"))
            schema, plan, order = known["schema"], known["plan"], known["order"]
            self._began = known.get("began", self._began)
            self.environment = dict(known.get("environment", {}))
            self.outcomes = {o["run"]: outcome_of(o) for o in known["outcomes"]}
            for run in self.runs:
                outcome = self.path / run.folder / "outcome.json"
                if outcome.exists():
                    self.outcomes[run.folder] = outcome_of(parsed(outcome.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{record}: not the record of an experiment ({error})") from error
        if schema != SCHEMA:
            raise OutputError(f"{record}: the schema is {schema!r}, expected {SCHEMA!r}")
        wanted = self.plan.model_dump(mode="json")
        other = [key for key in {**wanted, **plan} if wanted.get(key) != plan.get(key)]
        if other or not self.goes_on(order):
            told = ", ".join(other) or "order of the runs"
            raise OutputError(f"{self.path}: holds an experiment with a different plan: {told}")

    def goes_on(self, order: Sequence[str]) -> bool:
        """Whether a record with runs of these labels, in this order, is that of this experiment."""
        return list(order) == [run.label for run in self.runs]

    def missing(self) -> list[Run]:
        """Return the runs that are not complete, in order."""
        return [
            run
            for run in self.runs
            if not (self.path / run.folder / "summary.json").exists()
            or self.outcomes.get(run.folder) is None
        ]

    def forget_invalid(self) -> None:
        """Take invalid runs for missing; each is replaced when it is done again."""
        self.outcomes = {name: one for name, one in self.outcomes.items() if not one.invalid}

    def complete(self) -> list[tuple[Run, Outcome, RunDirectory]]:
        """Return the complete runs in order."""
        found = []
        for run in self.runs:
            place, outcome = self.path / run.folder, self.outcomes.get(run.folder)
            # A run that was done again without success has the result of the time before.
            done = outcome is not None and outcome.failed is None and outcome.skipped is None
            if outcome is not None and done and (place / "summary.json").exists():
                found.append((run, outcome, RunDirectory(place)))
        return found

    def add(self, outcome: Outcome) -> None:
        """Record what became of a run."""
        self.outcomes[outcome.run] = outcome
        self.save()

    def changes(self, environment: dict[str, dict[str, str]]) -> list[str]:
        """Return what is different from when the first run began, as reasons against a run."""
        new = {name: one for name, one in environment.items() if name not in self.environment}
        if new:
            self.environment |= new
            self.save()
        # In runs that boot the device's node, ``environment`` is without it: the plan asks for its
        # settings.
        told = changes({name: self.environment[name] for name in environment}, environment)
        return [f"the environment changed since the first run: {one}" for one in told]

    def audit(self) -> None:
        """Record how the host is set up, once: comparisons tell what was different."""
        place = self.path / AUDIT
        if place.exists():
            return
        try:
            found = self.testbed.audit()
        except HostError as error:
            # An experiment is worth having without: the file says why there is none.
            found = {"schema": None, "problem": str(error)}
        write_json(place, found)

    def save(self) -> None:
        """Write the record; it is whole at any time."""
        record = {
            "schema": SCHEMA,
            "began": self._began,
            "plan": self.plan.model_dump(mode="json"),
            "order": [run.label for run in self.runs],
            "versions": {"tailtrim": VERSION, "python": platform.python_version()},
            "host": asdict(self.testbed.facts()),
            "environment": self.environment,
            "command": sys.argv,
            "outcomes": [asdict(self.outcomes[name]) for name in sorted(self.outcomes)],
        }
        write_json(self.path / RECORD, record)


def keep_plan(plan: Path, experiment: Experiment) -> None:
    """Copy a plan to the directory of its experiment, with a drawing of the hosts it names.

    Raises:
        OutputError: a file cannot be written.

    """
    from tailtrim.laboratory.nodes import drawing  # noqa: PLC0415 - only hosts are drawn

    place = experiment.path / _PLAN
    try:
        if not (place.exists() and place.samefile(plan)):
            shutil.copyfile(plan, place)
        if experiment.plan.testbed != LOCAL:
            place = experiment.path / _DRAWING
            place.write_text(drawing.svg(experiment.plan.testbed), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error


def write_json(path: Path, value: Any) -> None:
    """Write a file that is whole at any time, into a folder that is there."""
    if not path.parent.is_dir():
        raise OutputError(f"{path}: cannot be written: its folder is gone")
    with replacing(path) as file:
        file.write((json.dumps(value, indent=2) + "\n").encode())
