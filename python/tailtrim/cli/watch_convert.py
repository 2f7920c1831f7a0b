"""``tailtrim convert`` of spans of a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.cli import spans
from tailtrim.cli.console import say, warn
from tailtrim.cli.objectives import judge

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.analysis.slo import Objective
    from tailtrim.cli.spans import Selected


def convert(chosen: Selected, form: str, out: Path, objectives: list[Objective]) -> None:
    """Write spans: by minute where a format has such, otherwise as runs, each in a folder.

    Raises:
        RoundTripError: no minute is in the span, or a file cannot be read.
        OutputError: a file cannot be written.
        ValueError: objectives are given, and the format does not tell them.

    """
    from tailtrim.publishing import watch_export  # noqa: PLC0415 - others start without

    if objectives and form != "openmetrics":
        raise ValueError(
            "--assert: expected --format openmetrics, which says whether objectives hold"
        )
    if form in watch_export.FORMATS:
        _by_minute(chosen, form, out)
    else:
        _as_runs(chosen, form, out, objectives)


def _by_minute(chosen: Selected, form: str, out: Path) -> None:
    from tailtrim.analysis.watched import Account  # noqa: PLC0415 - as above
    from tailtrim.errors import RoundTripError  # noqa: PLC0415
    from tailtrim.publishing import watch_export  # noqa: PLC0415

    accounts = [Account(target, chosen.span) for target in chosen.targets]
    name = f"{chosen.folder.resolve().name}@{chosen.text}".replace("/", "_")
    conversion = watch_export.convert(accounts, form, name, out)
    for account in accounts:
        spans.tell(account)
    if not conversion.files:
        raise RoundTripError(accounts[0].nothing())
    for notice in conversion.notices:
        warn(notice.text)
    for file in conversion.files:
        say(file)


def _as_runs(chosen: Selected, form: str, out: Path, objectives: list[Objective]) -> None:
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415 - as above
    from tailtrim.publishing import export  # noqa: PLC0415
    from tailtrim.results import RunDirectory  # noqa: PLC0415

    judged = []
    for place in spans.runs_of(chosen):
        run = RunDirectory(place)
        into = out / run.name if len(chosen.targets) > 1 else out
        conversion = export.convert(run, form, into, objectives=objectives)
        for notice in conversion.notices:
            warn(notice.text)
        for file in conversion.files:
            say(file)
        judged.append(JudgedRun(run.name, run, run.name))
    judge(judged, objectives, None)
