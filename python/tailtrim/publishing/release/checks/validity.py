"""The level ``validity``: agreement of plan, records, boot lines and doubts about runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tailtrim.errors import PlanError, ReleaseError
from tailtrim.laboratory.experiment.validity import load_doubts, tap_doubts
from tailtrim.laboratory.nodes.environment import changes
from tailtrim.publishing.release.checks import DAMAGED, CheckResult
from tailtrim.publishing.release.safe_files import record

if TYPE_CHECKING:
    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.publishing.release.untrusted_release import UntrustedRelease
    from tailtrim.results.experiments import RecordedRun


def check(release: UntrustedRelease) -> CheckResult:
    """Judge the runs again by what they recorded."""
    if release.imported:
        why = f"results of {release.imported} have no plan, and no records to judge runs by"
        return CheckResult("validity", why, skipped=(why,), without=True)
    try:
        plan, runs = release.planned
    except PlanError as error:
        return CheckResult(
            "validity", "the plan cannot be read", skipped=(str(error),), without=True
        )
    wrong = []
    planned, told = plan.model_dump(mode="json"), release.told.get("plan")
    if told != planned:
        keys = [
            key for key in planned if not isinstance(told, dict) or told.get(key) != planned[key]
        ]
        wrong.append(f"experiment.json: plan.{keys[0] if keys else '…'}: not what plan.yml says")
    by_name = {run.folder: run for run in runs}
    complete = [run for run, _ in release.experiment.complete]
    for one in complete:
        run = by_name.get(one.outcome.run)
        try:
            found = [] if run is None else _of_run(release, plan, run, one)
        except (ReleaseError, *DAMAGED) as error:
            found = [f"its records are not whole: {error!r}"]
        wrong += [f"{one.outcome.run}: {problem}" for problem in found]
    valid = sum(not run.outcome.invalid for run in complete)
    return CheckResult("validity", f"{valid:,} of {len(complete):,} runs are valid", tuple(wrong))


def _of_run(release: UntrustedRelease, plan: Plan, run: Run, one: RecordedRun) -> list[str]:
    place = release.place / run.folder
    wrong = []
    outcome = json.loads(json.dumps(asdict(one.outcome)))
    if record(place / "outcome.json") != outcome:
        wrong.append("outcome.json: not what experiment.json says")
    missed = [doubt for doubt in _doubts(release, plan, one) if doubt not in one.outcome.invalid]
    wrong += [f"is told as valid in this: {doubt}" for doubt in missed]
    summary = one.directory.summary if one.directory is not None else None
    # Round trips are not trimmed.
    if summary and (place / "capture.json").is_file() and summary.trim_ns != plan.skip_s * 10**9:
        skip_s = summary.trim_ns / 10**9
        wrong.append(f"summary.json: {skip_s:g} s were trimmed, in the plan {plan.skip_s:g} s")
    if run.boot is not None:
        wrong += _boot(place / "nodes.json", run.boot.cmdline)
    return wrong


def _doubts(release: UntrustedRelease, plan: Plan, one: RecordedRun) -> list[str]:
    assert one.directory is not None  # noqa: S101 - called for complete runs
    place = release.place / one.outcome.run
    doubts = []
    if (place / "capture.json").is_file():
        generator, capture = record(place / "generator.json"), record(place / "capture.json")
        doubts += load_doubts(plan.limits, generator, logged=not plan.by_minute)
        doubts += tap_doubts(capture, generator, one.directory.summary)
    if (place / "nodes.json").is_file():
        nodes = record(place / "nodes.json")
        booted = {nodes["roles"].get("dut")} if nodes.get("boot") else set()
        now = {name: told for name, told in nodes["nodes"].items() if name not in booted}
        before: dict[str, Any] = release.told.get("environment") or {}
        changed = changes({name: before[name] for name in now if name in before}, now)
        doubts += [f"the environment changed since the first run: {one}" for one in changed]
    return doubts


def _boot(place: Any, planned: str) -> list[str]:
    """Return whether the device's node had the boot line of the plan."""
    nodes = record(place)
    booted = nodes["nodes"].get(nodes["roles"].get("dut"), {}).get("boot_line", "").split()
    missing = [word for word in planned.split() if word not in booted]
    return [f"nodes.json: the node booted without {' '.join(missing)}"] if missing else []
