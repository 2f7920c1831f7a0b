"""``tailtrim trim``."""

from __future__ import annotations

import json as encoding
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli.console import IMPOSSIBLE, NEGATIVE, USAGE, complain, say
from tailtrim.cli.ending import ending_orderly
from tailtrim.errors import HostError, TailtrimError
from tailtrim.plan import examples
from tailtrim.report import units

if TYPE_CHECKING:
    from tailtrim.trim.planned import Planned
    from tailtrim.trim.trial import Observation, Settings, Trial

EXAMPLES = """\b
Examples:
  tailtrim trim trim --dry-run                # what would be tried, and how long it takes
  tailtrim trim trim --budget 20min
  tailtrim trim my-plan.yml --budget 2h --out results/my-plan
  tailtrim trim my-plan.yml --resume          # after an interruption, also a crash
"""

_UNITS_S = {"s": 1, "min": 60, "h": 3_600}
#: s: what a run takes at least beside its traffic, to make and remove the testbed.
_BESIDE_S = 2.0


def command(  # noqa: PLR0913 - one parameter an option
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN", help="A YAML file with the key trim, or the example trim."),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Directory of the results. Default: results/NAME of the plan.",
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(metavar="TIME", help="Longest time, such as 20min or 2h. It is kept."),
    ] = "2h",
    explained: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A run with an explanation (trace: true): changes of the host against its causes"
            " are expected to gain most.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the random order.")] = 1,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a search that was interrupted, as it was asked."),
    ] = False,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be tried, and change nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find the changes that cut the tail, and keep only those whose gain is proven."""
    from tailtrim.trim.packages import require  # noqa: PLC0415 - the help does without
    from tailtrim.trim.planned import Planned  # noqa: PLC0415

    try:
        require()
        plan = examples.located(plan)
        if not dry:
            _enter(plan)
        planned = Planned(plan, explained)
        settings = _settings(planned, _seconds(budget), seed)
        if dry:
            _tell_tree(planned, settings)
            return
        place = out or Path("results") / planned.plan.name
        _search(planned, place, None if resume else settings, json=json)
    except (TailtrimError, ValueError) as error:
        complain(error)
        raise typer.Exit(IMPOSSIBLE if isinstance(error, HostError) else USAGE) from error


def _enter(plan: Path) -> None:
    """Become root of a user namespace where the plan needs no more than that."""
    from tailtrim.nodes.testbeds import LOCAL  # noqa: PLC0415 - the help does without
    from tailtrim.nodes.unprivileged import enter  # noqa: PLC0415
    from tailtrim.plan import load  # noqa: PLC0415

    loaded, _ = load(plan)
    if loaded.testbed == LOCAL and (loaded.trim is None or loaded.trim.host is None):
        enter()


def _settings(planned: Planned, seconds: float, seed: int) -> Settings:
    from tailtrim.trim.trial import Settings  # noqa: PLC0415 - the help does without

    return Settings(
        error=planned.trimming.error,
        worth=planned.trimming.worth,
        # A lower bound of the time: by the time of the first trials it is corrected.
        trials=int(seconds / _each_s(planned)),
        seconds=seconds,
        seed=seed,
        limits=planned.limits,
        explain=planned.explains,
    )


def _each_s(planned: Planned) -> float:
    from tailtrim.experiment.expected import Expected  # noqa: PLC0415 - the help does without
    from tailtrim.trim.elimination import sets_of  # noqa: PLC0415
    from tailtrim.trim.trial import ELIMINATE, Trial  # noqa: PLC0415

    boots = planned.boots()
    each_s = planned.plan.traffic.duration_s + _BESIDE_S
    if not boots:
        return each_s
    # A round of all changes: it boots without changes, with all, and without each that boots.
    names = [one.name for one in planned.candidates]
    sets = sets_of(frozenset(names), names)
    trials = [planned.run(Trial(n, one, ELIMINATE, 0)) for n, one in enumerate(sets)]
    return max(each_s, Expected.of(planned.plan, trials).takes_s / len(trials))


def _seconds(budget: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h)", budget)
    if found is None or float(found[1]) == 0:
        raise ValueError(f"invalid budget {budget!r}, expected a time such as 90s, 20min or 2h")
    return float(found[1]) * _UNITS_S[found[2]]


def _tell_tree(planned: Planned, settings: Settings) -> None:
    from tailtrim.trim import wording  # noqa: PLC0415 - the help does without

    for line in wording.tree(planned.candidates, planned.impossible, settings, _each_s(planned)):
        say(units.printable(line))


def _search(planned: Planned, place: Path, settings: Settings | None, *, json: bool) -> None:
    from tailtrim.trim import wording  # noqa: PLC0415 - the help does without
    from tailtrim.trim.loop import Loop  # noqa: PLC0415

    with ending_orderly():
        loop = Loop(planned, place, settings)
        loop.prepare(
            lambda what: say(f"{what} …", err=True),
            lambda doubt: say(f"warning: {units.printable(doubt)}", err=True),
        )

        def ended(trial: Trial, seen: Observation) -> None:
            say(units.printable(wording.progress(trial, seen, loop.search.left)), err=True)

        try:
            result = loop.go(lambda *_: None, ended)
        except (KeyboardInterrupt, SystemExit):
            done = len(loop.search.seen)
            say(f"interrupted: {done} trials are in {place}, --resume goes on", err=True)
            raise
    if json:
        say(encoding.dumps(result.as_json()))
    else:
        for line in wording.report(result, loop.quantile):
            say(units.printable(line))
        say(f"\nExperiment: {place}")
    experiment = loop.experiment
    for notice in (*experiment.testbed.notices, *experiment.notices, *result.notices):
        say(f"warning: {units.printable(notice)}", err=True)
    if not result.kept:
        raise typer.Exit(NEGATIVE)
