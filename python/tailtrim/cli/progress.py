"""Progress of an experiment: cost of its boots and warm-ups, runs done, and time left."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from tailtrim import units
from tailtrim.cli.console import doing, say, warn
from tailtrim.laboratory.experiment import Estimate, Listener
from tailtrim.laboratory.experiment.estimate import Effort
from tailtrim.laboratory.nodes.vm.machine import EMULATED_BOOT_S
from tailtrim.laboratory.plan import device_of, kept

if TYPE_CHECKING:
    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.results.experiments import Outcome

#: s: a shorter command needs no estimate.
_WORTH_TELLING = 60


def listener(experiment: Experiment, *, quiet: bool) -> _Progress:
    """Return what shows the progress of runs in its context: a bar on a terminal, else lines."""
    return _Bar(experiment) if sys.stderr.isatty() and not quiet else _Progress(experiment)


class _Left:
    """Remaining time of an experiment, in words."""

    def __init__(self, experiment: Experiment) -> None:
        missing = experiment.missing()
        boot_s = _expected_boot_s(experiment.plan, missing)
        self._estimate = Estimate(missing, boot_s=boot_s)
        self.done = len(experiment.runs) - len(missing)

    def after(self, run: Run, outcome: Outcome) -> str:
        """Return the remaining time after a run."""
        self._estimate.ended(run, measured=not (outcome.failed or outcome.skipped))
        self.done += 1
        return self.told()

    def told(self) -> str:
        """Return the remaining time now; nothing where it is short."""
        left_s = self._estimate.left_s()
        if left_s < _WORTH_TELLING:
            return ""
        how = "about" if self._estimate.known else "at least"
        ends = datetime.now(UTC).astimezone() + timedelta(seconds=left_s)
        return f"{how} {_span(left_s)} left, until {ends:%a %H:%M}"


def _span(time_s: float) -> str:
    """Return a time in minutes, or in hours and minutes.

    >>> _span(90), _span(5400)
    ('2 min', '1 h 30 min')

    """
    hours, minutes = divmod(math.ceil(time_s / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class _Progress(Listener):
    """A line for each run that has ended, for a pipe."""

    _left: _Left

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    def __enter__(self) -> Self:
        """Begin with the first run: preparations are no part of its time."""
        self._left = _Left(self._experiment)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def preparation(self, what: str) -> None:
        doing(what)

    def warning(self, what: str) -> None:
        say(f"warning: {what}", err=True)

    def run_ended(self, run: Run, outcome: Outcome) -> None:
        say(f"{run.folder}  {_told(run, self._experiment, outcome)}", err=True)
        if left := self._left.after(run, outcome):
            say(f"{self._left.done} of {len(self._experiment.runs)} runs, {left}", err=True)


class _Bar(_Progress):
    """A bar over all runs, with the state of the current one."""

    def __enter__(self) -> Self:
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
        )

        from tailtrim.cli.terminal import Terminal  # noqa: PLC0415 - only where it is shown

        super().__enter__()
        self._bar = Progress(
            SpinnerColumn(),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[left]}", markup=False),
            TextColumn("{task.description}", markup=False),
            console=Terminal(stderr=True),
            transient=True,
        )
        total, done = len(self._experiment.runs), self._left.done
        self._task = self._bar.add_task("", total=total, completed=done, left="")
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def progress(self, run: Run, what: str) -> None:
        told = units.printable(f"{run.label}: {what}")
        self._bar.update(self._task, description=told, left=self._left.told())

    def run_ended(self, run: Run, outcome: Outcome) -> None:
        told = _told(run, self._experiment, outcome)
        self._bar.console.print(f"{run.folder}  {told}")
        self._bar.update(self._task, advance=1, left=self._left.after(run, outcome))


def _told(run: Run, experiment: Experiment, outcome: Outcome) -> str:
    floor = " (floor)" if run.floor else ""
    return units.printable(f"{outcome.label}{floor}: {_became(experiment, outcome)}")


def _became(experiment: Experiment, outcome: Outcome) -> str:
    """Return the outcome of a run in a few words."""
    if outcome.failed:
        return f"failed: {outcome.failed}"
    if outcome.skipped:
        return f"skipped: {outcome.skipped}"
    from tailtrim.results import RunDirectory  # noqa: PLC0415

    summary = RunDirectory(experiment.path / outcome.run).summary
    values = {q.p: q.value for q in summary.latency_ns.quantiles}
    named = (("p50", "0.5"), ("p99", "0.99"), ("p99.9", "0.999"))
    known = {name: ns for name, p in named if (ns := values.get(p)) is not None}
    shown = units.listed(known, summary.resolution_ps)
    lost = f", {summary.ingress.lost:,} lost" if summary.ingress.lost else ""
    copies = f", {summary.egress.copy:,} copies" if summary.egress.copy else ""
    invalid = f" (invalid: {'; '.join(outcome.invalid)})" if outcome.invalid else ""
    samples = units.counted(summary.samples, "sample")
    return f"{samples}, {shown or 'no latency'}{lost}{copies}{invalid}"


def tell_cost(plan: Plan, runs: list[Run]) -> None:
    """Print number and time of the boots and warm-ups that runs need, if they need any."""
    devices = kept(runs)
    if devices:
        sharing = sum(device_of(run) is not None for run in runs)
        each = f"each is warmed up until it is steady, for at most {plan.limits.warm_up_s:g} s"
        starts = f"{devices} start{'s' * (devices != 1)} of devices"
        say(f"{starts} for {sharing} runs: {each}", err=True)
    expected = Effort.of(plan, runs)
    if not expected.boots:
        return
    say(expected.text(), err=True)
    if expected.accelerator == "tcg":
        warn("QEMU emulates the CPU (tcg): latencies are not those of hardware")


def _expected_boot_s(plan: Plan, runs: list[Run]) -> float:
    """Return the duration of a boot, as far as it is known beforehand."""
    return EMULATED_BOOT_S if Effort.of(plan, runs).accelerator == "tcg" else 0.0
