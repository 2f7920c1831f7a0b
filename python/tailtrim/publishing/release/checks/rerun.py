"""The level ``rerun``: some runs measured again here, and compared with the released ones.

This does what the plan of the release says, on this machine or a testbed of the reader's, with the
programs that it names.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError, ReleaseError, Remedy
from tailtrim.laboratory.experiment import Listener
from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.publishing.release.checks import CheckResult
from tailtrim.publishing.release.layout import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.publishing.release.untrusted_release import UntrustedRelease
    from tailtrim.results.experiments import Outcome


@dataclass(frozen=True, slots=True)
class Rerun:
    """Runs to be measured again.

    Args:
        runs: how many, chosen by ``seed``.
        out: where their results go.
        seed: of the choice.
        testbed: the reader's testbed file; needed where the release has one of hosts.

    """

    runs: int
    out: Path
    seed: int = 1
    testbed: Path | None = None


def check(release: UntrustedRelease, wanted: Rerun, told: Callable[[str], None]) -> CheckResult:
    """Measure runs again.

    Raises:
        HostError: this host cannot do it.
        OutputError: the results cannot be written.
        ReleaseError: there is no run to be measured again, or no testbed.

    """
    from tailtrim.laboratory.experiment import Experiment, conduct, images_for  # noqa: PLC0415
    from tailtrim.laboratory.nodes.local_host import become_root  # noqa: PLC0415

    plan, runs = _planned(release, wanted)
    if plan.by_minute:
        why = "runs by minute have no samples, without which no two runs can be compared"
        return CheckResult("rerun", why, skipped=(why,), without=True)
    chosen = _chosen(release, runs, wanted)
    if wanted.out.exists():
        error = OutputError(f"{wanted.out}: exists, and runs are measured anew")
        error.add_note(Remedy("choose another {out}"))
        raise error
    if plan.testbed == LOCAL:
        become_root()
    with Experiment(wanted.out, plan, chosen, resume=False) as experiment:
        listener = _Told(told)
        conduct(experiment, listener, images_for(experiment, listener))
    wrong, notes, skipped = [], [], []
    for run in chosen:
        outcome = experiment.outcomes[run.folder]
        if outcome.failed or outcome.skipped:
            skipped.append(f"{run.folder}: {outcome.failed or outcome.skipped}")
            continue
        notes += [f"{run.folder}: invalid here: {doubt}" for doubt in outcome.invalid]
        wrong += _compared(release.place / run.folder, wanted.out / run.folder)
    names = ", ".join(run.folder for run in chosen)
    without = len(skipped) == len(chosen)
    return CheckResult("rerun", names, tuple(wrong), tuple(skipped), tuple(notes), without=without)


class _Told(Listener):
    """Events as lines of text."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told

    def preparation(self, what: str) -> None:
        self._told(what)

    def warning(self, what: str) -> None:
        self._told(what)

    def progress(self, run: Run, what: str) -> None:
        self._told(f"{run.folder}: {what}")

    def run_ended(self, run: Run, outcome: Outcome) -> None:
        self._told(f"{run.folder}: {outcome.failed or outcome.skipped or 'done'}")


def _planned(release: UntrustedRelease, wanted: Rerun) -> tuple[Plan, list[Run]]:
    from tailtrim.laboratory.plan import load, load_testbed  # noqa: PLC0415 - takes long

    if wanted.testbed is not None:
        return load(release.place / PLAN, load_testbed(wanted.testbed))
    if release.described is not None:
        error = ReleaseError("the release has no addresses of its hosts")
        error.add_note(Remedy("{testbed} names a testbed file of yours"))
        raise error
    return release.planned


def _chosen(release: UntrustedRelease, runs: list[Run], wanted: Rerun) -> list[Run]:
    valid = {run.outcome.run for run, _ in release.experiment.complete if not run.outcome.invalid}
    possible = [run for run in runs if run.folder in valid]
    if not possible:
        raise ReleaseError("no run of the release is valid, so none is measured again")
    chooser = random.Random(wanted.seed)  # noqa: S311 - a choice, not a secret
    chosen = chooser.sample(possible, min(wanted.runs, len(possible)))
    return sorted(chosen, key=lambda run: run.number)


def _compared(released: Path, here: Path) -> list[str]:
    """Return the quantiles that are different for more than chance."""
    from tailtrim.analysis.compare import BETTER, WORSE, compare  # noqa: PLC0415 - takes long

    return [
        f"{released.name}: p {row.p}: {row.a_ns} ns in the release, {row.b_ns} ns here,"
        f" {row.verdict}"
        for comparison in compare(released, here)
        for row in comparison.quantiles
        if row.verdict in (BETTER, WORSE)
    ]
