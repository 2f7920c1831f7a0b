"""``tailtrim compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailtrim.cli import options, spans, watch_compare
from tailtrim.cli.console import say_json, show
from tailtrim.cli.objectives import judged, needed_quantiles, read_asserts
from tailtrim.errors import ExitCode
from tailtrim.publishing.report import write_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.compare import Comparison
    from tailtrim.analysis.slo import JudgedRun, Objective

EXAMPLES = """\b
Examples:
  tailtrim compare results/rt results/nohz
  tailtrim compare results/before results/after --fail-if-worse        # experiments: by combination
  tailtrim compare pre-a.pcap,post-a.pcap pre-b.pcap,post-b.pcap --out tails.svg
  tailtrim compare results/hw --halves                                 # differences by chance alone
  tailtrim compare minutes/gateway@yesterday minutes/gateway@today
  tailtrim compare minutes@yesterday minutes@today  # all targets of a watch
  tailtrim compare results/main results/branch --assert 'p99.9 < 50us' --junit slo.xml
Exit codes: 0 compared, 1 B is worse (with --fail-if-worse) or failed an objective, 2 invalid
arguments or input, 5 an objective is not decided. Objectives are for each run of B.
"""

Margin = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="Smallest relative difference that counts as better or worse. Runs of the same"
        " setup differ slightly; with many packets, that alone would be significant.",
    ),
]


def command(  # noqa: PLR0913 - one parameter an option
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="A B…",
            help="A is the baseline; each B is compared with it. Each is a run directory, an"
            " experiment, a folder of run directories (repetitions), two captures as"
            " INGRESS,EGRESS, or minutes of watch as WATCH@SPAN or WATCH/TARGET@SPAN.",
        ),
    ],
    *,
    quantile: Annotated[
        list[str] | None,
        typer.Option(metavar="P", help="A quantile in addition to 0.5, 0.9, 0.99 …; repeatable."),
    ] = None,
    margin: Margin = "1%",
    confidence: Annotated[
        str, typer.Option(metavar="P", help="Confidence level of intervals and verdicts.")
    ] = "0.95",
    halves: Annotated[
        bool,
        typer.Option(
            "--halves",
            help="Compare the two halves of each run of A: differences by chance and drift.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the permutations.")] = 1,
    fail_if_worse: Annotated[
        bool,
        typer.Option("--fail-if-worse", help="Exit with code 1 if B is worse at any quantile."),
    ] = False,
    asserts: options.Asserts = None,
    junit: options.Junit = None,
    json: options.Json = False,
    out: Annotated[
        list[Path] | None,
        options.out(
            "Write a page with tables and figure (.html); or the figure alone, both tails and the"
            " ratio B / A: .svg, .pdf, .csv (values). Repeatable.",
            "FILE",
        ),
    ] = None,
) -> None:
    """Compare runs, quantile by quantile: ratio, confidence interval and verdict."""
    from tailtrim.analysis.options import share  # noqa: PLC0415 - the help does without

    objectives = read_asserts(asserts, junit)
    if out:
        write_files.require_pictures([place.suffix.removeprefix(".") for place in out])
    if objectives and halves:
        raise ValueError("--assert is for the runs of B, and with --halves there is no B")
    how = {
        "quantiles": [*(quantile or ()), *needed_quantiles(objectives)],
        "confidence": confidence,
        "margin": share("margin", margin, "1% or 0.01"),
        "seed": seed,
    }
    if targets := watch_compare.chosen(sides, one_run=halves or bool(objectives or out)):
        worse = watch_compare.compare(targets, json=json, **how)
        if fail_if_worse and worse:
            raise typer.Exit(ExitCode.NEGATIVE)
        return
    compared = _compare(spans.as_runs(sides), halves=halves, **how)
    _write(compared, out or (), objectives)
    if json:
        told = {"schema": "tailtrim.comparisons/1", "comparisons": [c.as_json() for c in compared]}
        say_json(told, indent=2, ensure_ascii=False)
    else:
        _print(compared)
    code = judged(_measured(compared), objectives, junit) if objectives else ExitCode.SUCCESS
    if fail_if_worse and any(one.verdict == "worse" for one in compared):
        code = ExitCode.NEGATIVE
    if code:
        raise typer.Exit(code)


def _compare(sides: list[str], *, halves: bool, **options: Any) -> list[Comparison]:
    from tailtrim.analysis.compare import compare, compare_halves  # noqa: PLC0415 - others start without

    if halves:
        return [one for side in sides for one in compare_halves(side, **options)]
    if len(sides) == 1:
        raise ValueError("only one side given, expected A and B (or --halves)")
    first, *others = sides
    return [one for other in others for one in compare(first, other, **options)]


def _measured(compared: list[Comparison]) -> list[JudgedRun]:
    """Return the runs of B for objectives; the wire has to meet none."""
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415 - most calls have no objectives

    groups = [one.groups[1] for one in compared if not one.floor]
    return [
        JudgedRun(_of_run(group.name, run.name), run.run, group.name)
        for group in groups
        for run in group.repetitions
    ]


def _of_run(side: str, run: str) -> str:
    return side if f"/{side}".endswith(f"/{run}") else f"{side}: {run}"


def _write(compared: list[Comparison], places: Sequence[Path], objectives: list[Objective]) -> None:
    for place in places:
        from tailtrim.publishing.report.pages import comparison_page  # noqa: PLC0415 - the table does without

        if place.suffix == ".html":
            comparison_page.write(compared, place, objectives=objectives)
        else:
            comparison_page.draw(compared, place)


def _print(compared: list[Comparison]) -> None:
    from tailtrim.publishing.report.terminal.comparison_text import render  # noqa: PLC0415 - not for --json

    show(render(compared, all_in="--json"))
