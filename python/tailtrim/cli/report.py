"""``tailtrim report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options, watch_report
from tailtrim.cli.console import say, show
from tailtrim.cli.objectives import judge, read_asserts, runs_to_judge

if TYPE_CHECKING:
    from tailtrim.analysis.slo import JudgedRun, Objective
    from tailtrim.publishing.factors import Effects

EXAMPLES = """\b
Examples:
  tailtrim report results/hw
  tailtrim report results/hw --pdf             # figures for a paper
  tailtrim report results/hw results/vm --name bare-metal --name virtual --out comparison
  tailtrim report results/forwarder-tail       # all runs of an experiment
  tailtrim report results/forwarder-tail --assert 'p99.9 < 50us'       # with a line at 50 µs
  tailtrim report results/reflector-tests      # effect of each factor on latency
  tailtrim report results/trim                 # what tailtrim trim found
  tailtrim report minutes --from 08:00 --to 09:00        # all targets of a watch
  tailtrim report minutes/gateway@yesterday              # one target
  tailtrim report host1/ host2/ --from 2026-11-22 --to 2026-11-28  # watches of two hosts
"""


def command(  # noqa: PLR0913 - one parameter an option
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR…",
            help="Run directories, written by analyze --out, or experiments, written by run or"
            " trim: all runs of each. Or minutes of watch: WATCH or WATCH/TARGET, of today; with"
            " @SPAN of another time.",
        ),
    ],
    *,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name of a run, or of the host of a watch; once for each. Default: the name of its"
            " directory.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.out(
            "Directory of the report. Default: the folder report of the run directory; for"
            " several runs and for a watch, of the current directory."
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Begin of the minutes of a watch: 08:00, 2026-11-28T08:00, a day, yesterday.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Their end; a day is in it. Default: now."),
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Draw each figure as PDF, too: it takes twice the time.")
    ] = False,
    asserts: options.Asserts = None,
    junit: options.Junit = None,
) -> None:
    """Write a page and figures (SVG, CSV) of one run, of several, or of an experiment."""
    objectives = read_asserts(asserts, junit)
    if chosen := watch_report.chosen(directories, begin, end, name):
        return watch_report.report(chosen, out or Path("report"), objectives, junit, pdf=pdf)
    if out is None:
        out = directories[0] / "report" if len(directories) == 1 else Path("report")
    measured = _write(directories, name, out, objectives, pdf=pdf)
    return judge(measured, objectives, junit)


def _write(
    directories: list[Path],
    names: list[str] | None,
    out: Path,
    objectives: list[Objective],
    *,
    pdf: bool,
) -> list[JudgedRun]:
    """Write the report; return the runs for objectives."""
    # The help does without.
    from tailtrim.results.experiments import is_experiment, is_search, runs_of  # noqa: PLC0415

    (one,) = directories if len(directories) == 1 else (None,)
    if one is not None and (is_experiment(one) or is_search(one)):
        return _write_experiment(one, out, objectives, pdf=pdf)
    from tailtrim.publishing.report import names_of, write  # noqa: PLC0415

    runs = [run for directory in directories for _, run in runs_of(directory)]
    _tell(write(runs, out, names=names, objectives=objectives, pdf=pdf))
    if not objectives:
        return []
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415

    named = zip(names or names_of(runs), runs, strict=True)
    return [JudgedRun(name, run, name) for name, run in named]


def _write_experiment(
    experiment: Path, out: Path, objectives: list[Objective], *, pdf: bool
) -> list[JudgedRun]:
    """Write the report of an experiment, or of a search; return the runs for objectives."""
    from tailtrim.laboratory.trim.recorded import recorded as found_search  # noqa: PLC0415
    from tailtrim.publishing import factors  # noqa: PLC0415
    from tailtrim.publishing.report import write_experiment  # noqa: PLC0415
    from tailtrim.publishing.trim_report import findings  # noqa: PLC0415
    from tailtrim.publishing.trim_report import write as write_search  # noqa: PLC0415
    from tailtrim.results.experiments import is_search, recorded  # noqa: PLC0415

    if is_search(experiment):
        _tell(write_search(findings(found_search(experiment)), out, pdf=pdf))
    elif factors.has_factors(experiment):
        tell_factors(experiment, out, pdf=pdf)
    else:
        record = recorded(experiment)
        _tell(write_experiment(record, out, objectives=objectives, pdf=pdf))
        if factors.has_boots(experiment):
            tell_boots(experiment, out, pdf=pdf)
    return runs_to_judge(recorded(experiment)) if objectives else []


def _tell(files: list[Path]) -> None:
    page, *figures = files
    say(f"Page:    {page}")
    if figures:
        say(f"Figures: {figures[0].parent} ({len(figures)} files)")


def tell_factors(experiment: Path, out: Path, *, pdf: bool = False) -> None:
    """Print the effect of each factor on latency, and write page, table and figures."""
    from tailtrim.publishing import factors  # noqa: PLC0415 - other commands start without

    _tell_effects(factors.effects_of(experiment), experiment, out, pdf=pdf)


def tell_boots(experiment: Path, out: Path, *, pdf: bool = False) -> None:
    """Print the effect of each kernel and boot line on latency, and write the same."""
    from tailtrim.publishing import factors  # noqa: PLC0415 - other commands start without

    _tell_effects(factors.boots_of(experiment), experiment, out, pdf=pdf)


def _tell_effects(found: Effects, experiment: Path, out: Path, *, pdf: bool) -> None:
    from tailtrim.publishing import factors  # noqa: PLC0415 - other commands start without
    from tailtrim.results.experiments import recorded  # noqa: PLC0415

    show(factors.render(found))
    page, table, *_ = factors.write(found, recorded(experiment), out, pdf=pdf)
    say(f"Page:    {page}\nTable:   {table}\nFigures: {page.parent / 'figures'}")
