"""``tailtrim report`` of spans of a watch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tailtrim.cli import spans
from tailtrim.cli.console import Progress, say, show, warn
from tailtrim.cli.objectives import judge
from tailtrim.errors import ExitCode
from tailtrim.publishing.report import write_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.slo import Objective
    from tailtrim.analysis.watched import Measured
    from tailtrim.cli.spans import Selected


def chosen(
    directories: Sequence[Path], begin: str | None, end: str | None, names: Sequence[str] | None
) -> list[Selected]:
    """Return what is selected of watches; nothing where the directories are runs.

    Raises:
        ValueError: a span is wrong, or given twice, or runs are beside watches.
        RoundTripError: no target is there.

    """
    text = None if begin is None and end is None else f"{begin or ''}..{end or ''}"
    hosts = list(names or [])
    if hosts and len(hosts) != len(directories):
        hosts = []
    now = spans.here()
    found = [
        spans.selected(str(directory), text, hosts[at] if hosts else None, now)
        for at, directory in enumerate(directories)
    ]
    known = [one for one in found if one is not None]
    if len(known) not in {0, len(found)}:
        other = directories[found.index(None)]
        raise ValueError(f"{other}: expected a watch, as the others are")
    if text and not known:
        raise ValueError("--from and --to are for minutes of watch, and these are runs")
    if text and any(one.text != text for one in known):
        raise ValueError("a span is given twice: behind @, and by --from or --to")
    if names and known and not hosts:
        raise ValueError(f"{len(names)} names for {len(directories)} hosts, expected one for each")
    if len({one.span for one in known}) > 1:
        raise ValueError("spans differ: expected the same one of all hosts; compare compares them")
    return known


def report(
    found: list[Selected], out: Path, objectives: list[Objective], junit: Path | None, *, pdf: bool
) -> None:
    """Write the report of one target as of a run, of several as a table."""
    write_files.require_pictures()
    if len(found) == 1 and len(found[0].targets) == 1:
        _one(found[0], out, objectives, junit, pdf=pdf)
    else:
        _several(found, out, objectives, junit)


def _one(
    found: Selected, out: Path, objectives: list[Objective], junit: Path | None, *, pdf: bool
) -> None:
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415 - others start without
    from tailtrim.publishing.report import write  # noqa: PLC0415
    from tailtrim.results import RunDirectory  # noqa: PLC0415

    runs = [RunDirectory(place) for place in spans.runs_of(found)]
    page, *figures = write(runs, out, names=found.names, objectives=objectives, pdf=pdf)
    say(f"Page:    {page}\nFigures: {figures[0].parent} ({len(figures)} files)")
    judge([JudgedRun(found.names[0], runs[0], found.names[0])], objectives, junit)


def _several(
    found: list[Selected], out: Path, objectives: list[Objective], junit: Path | None
) -> None:
    from tailtrim import units  # noqa: PLC0415 - others start without
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415
    from tailtrim.analysis.watched import measured  # noqa: PLC0415
    from tailtrim.errors import RoundTripError  # noqa: PLC0415
    from tailtrim.publishing import watch_report  # noqa: PLC0415
    from tailtrim.publishing.watch_report import table  # noqa: PLC0415

    targets = [target for one in found for target in one.targets]
    folder = spans.folder() if objectives else None
    with Progress("reading minutes") as progress:
        every = list(measured(targets, found[0].span, folder=folder, progress=progress))
    if all(one.tail is None for one in every):
        raise RoundTripError(_none(every))
    order = {name: at for at, name in enumerate(dict.fromkeys(one.name for one in every))}
    every.sort(key=lambda one: order[one.name])
    now_ns = time.time_ns()
    show(table.table(every, now_ns, is_brief=True).terminal(gap=1))
    say(table.LEGEND)
    for name, note in table.remarks(every, now_ns):
        warn(f"{name}: {note}")
    title = ", ".join(units.printable(str(one.folder)) for one in found)
    page, numbers = watch_report.write(every, f"{title} @ {found[0].text}", out, now_ns)
    say(f"Page:    {page}\nNumbers: {numbers}")
    runs = [JudgedRun(one.label, one.run, one.name) for one in every if one.run is not None]
    # Targets of several hosts together have no run.
    unknown = [one.label for one in every if one.tail is None and len(one.accounts) == 1]
    for name in unknown if objectives else ():
        say(f"{units.printable(name)}: not decided: no minute in this span", err=True)
    judge(runs, objectives, junit)
    if objectives and unknown:
        raise typer.Exit(ExitCode.UNDECIDED)


def _none(every: Sequence[Measured]) -> str:
    """Return why there is no minute at all: of the first target, and how many others there are."""
    others = len(every) - 1
    return every[0].fault + (f" (and {others:,} other targets)" if others else "")
