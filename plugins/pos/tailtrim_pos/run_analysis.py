"""Run directories of the captures of an experiment's runs, and the record of all of them."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.analysis import analyze
from tailtrim.errors import CaptureError
from tailtrim.laboratory.experiment.record import write_json
from tailtrim.laboratory.nodes import local_host
from tailtrim.results.experiments import RECORD, SCHEMA, Outcome
from tailtrim_pos.layout import Unclear
from tailtrim_pos.naming import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tailtrim_pos.allocation import Allocation
    from tailtrim_pos.conduct import Ended
    from tailtrim_pos.experiment import PosExperiment
    from tailtrim_pos.journal import Journal
    from tailtrim_pos.layout import Pair
    from tailtrim_pos.provider import Provider


def analyse(
    journal: Journal, experiment: PosExperiment, ended: Ended, told: Callable[[str], None]
) -> list[Outcome]:
    """Analyse the captures of each run, and write the record of the experiment.

    Args:
        journal: of its runs.
        experiment: the experiment.
        ended: where its results are, and why they are not to be trusted.
        told: is called with what is being done.

    Returns:
        The outcome of each run. There is no record of them where none has captures.

    Raises:
        OutputError: a run directory cannot be written.

    """
    outcomes, runs = [], _runs(journal, ended.allocations)
    captured = any(pair is not None for _, pair, _ in runs.values())
    for folder, (number, found, known) in runs.items():
        failed = _failed(known, number)
        loop = dict(known.get("loop", {}))
        label = ", ".join(f"{key}={value}" for key, value in loop.items()) or "run"
        pair = None if isinstance(found, Unclear) else found
        if isinstance(found, Unclear):
            failed = failed or _unclear(found)
        elif pair is not None and failed is None:
            told(f"analysing {folder} ({label})")
            failed = _analyse(journal.folder / folder, pair, experiment.skip_s, loop)
        elif failed is None and captured:
            failed = "no pair of captures, told by names such as X-pre.pcap and X-post.pcap"
        clocks = _clocks(pair, experiment.nodes) if pair is not None else ()
        invalid = (*ended.doubts, *clocks) if failed is None else ()
        repeated = tuple(known.get("repeated", ()))
        outcomes.append(
            Outcome(folder, label, floor=False, invalid=invalid, failed=failed, repeated=repeated)
        )
    if captured:
        _record(journal, experiment, outcomes)
    return outcomes


def _unclear(captures: Unclear) -> str:
    """Return the reason why captures make no pair."""
    told = ", ".join(f"{place.parent.name}/{place.name}" for place in captures.captures)
    return f"several captures of one name and side: {told}; expected a name for each pair"


def _clocks(pair: Pair, nodes: Provider) -> tuple[str, ...]:
    """Return the doubt about a pair that has the stamps of two clocks; none for others."""
    one, other = (nodes.clock(place.parent.name) for place in (pair.ingress, pair.egress))
    if one == other:
        return ()
    return (f"the captures are of two hosts, {one} and {other}, whose clocks are not compared",)


def _runs(
    journal: Journal, allocations: Sequence[Allocation]
) -> dict[str, tuple[int | None, Pair | Unclear | None, dict[str, Any]]]:
    """Return the runs by the names of their run directories."""
    found: dict[str, tuple[int | None, Pair | Unclear | None, dict[str, Any]]] = {}
    several = len(allocations) > 1
    for allocation in allocations:
        known = {n: run for (of, n), run in journal.runs.items() if of == allocation.number}
        pairs: dict[int | None, list[Pair | Unclear]] = {}
        for one in allocation.layout.captures():
            pairs.setdefault(one.run, []).append(one)
        digits = len(str(max(known, default=0)))
        before = f"{allocation.number}-" if several else ""
        numbers: list[int | None] = [*sorted(known), *([None] if None in pairs else [])]
        for number in numbers:
            of_run = pairs.get(number, [])
            about = known.get(number, {}) if number is not None else {}
            base = f"run-{before}{'alone' if number is None else f'{number:0{digits}d}'}"
            either: list[Pair | Unclear | None] = [*of_run]
            for pair in either or [None]:
                more = f"-{pair.name}" if pair is not None and pair.name and len(of_run) > 1 else ""
                found[base + more] = (number, pair, about)
    return found


def _failed(known: dict[str, Any], number: int | None) -> str | None:
    """Return the failure of a run, by its commands; ``None`` where none failed."""
    bad = [key for key, status in known.get("status", {}).items() if status != FINISHED]
    commands = ", ".join(f"{key.split('/')[1]} on {key.split('/')[0]}" for key in bad)
    return f"{commands} of run {number} ended with an error" if bad else None


def _analyse(place: Path, pair: Pair, skip_s: str, loop: dict[str, Any]) -> str | None:
    try:
        analyze(pair.ingress, pair.egress, out=place, skip_s=skip_s)
    except (CaptureError, ValueError) as error:
        return str(error)
    told = {"loop": loop, "repetition": 0, "traffic": {}}
    write_json(place / "loop.json", told)
    return None


def _record(journal: Journal, experiment: PosExperiment, outcomes: Sequence[Outcome]) -> None:
    record = {
        "schema": SCHEMA,
        "began": journal.began,
        "plan": {"name": experiment.name, "testbed": experiment.nodes.testbed},
        "order": [outcome.label for outcome in outcomes],
        "versions": {"tailtrim": VERSION, "python": platform.python_version()},
        "host": asdict(local_host.facts()),
        "environment": {},
        "command": sys.argv,
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    write_json(journal.folder / RECORD, record)
