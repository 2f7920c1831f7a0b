"""``tailtrim trim``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import doing, say, say_json, show, show_report, tell, warn
from tailtrim.cli.signals import ending_orderly
from tailtrim.errors import ExitCode
from tailtrim.laboratory.plan import examples
from tailtrim.laboratory.trim.trial import TrialListener

if TYPE_CHECKING:
    from tailtrim.laboratory.trim.request import Request
    from tailtrim.laboratory.trim.search import Search
    from tailtrim.laboratory.trim.trial import Observation, Settings, Trial

EXAMPLES = """\b
Examples:
  tailtrim trim noisy-neighbour --dry-run     # what would be tried, and how long it takes
  tailtrim trim noisy-neighbour --duration 20min
  tailtrim trim my-plan.yml --duration 2h --out results/my-plan
  tailtrim trim my-plan.yml --resume          # after an interruption, also a crash
  tailtrim trim boot-lines --duration 30min      # boot lines of a virtual machine
  tailtrim trim host.yml --watch 'tailtrim ping 192.0.2.7 -c 5000 --out "$RUN"'
"""


def command(  # noqa: PLR0913 - one parameter an option
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN", help="A YAML file with the key trim, or an example."),
    ],
    *,
    out: options.Results = None,
    duration: Annotated[
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
    watch: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Instead of the plan's traffic: a command for sh that leaves a run directory at"
            " $RUN, such as 'tailtrim ping 192.0.2.7 -c 5000 --out \"$RUN\"'. Then PLAN has name,"
            " duration_s and trim.host.",
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
    json: options.Json = False,
) -> None:
    """Find the changes that cut the tail, and keep only those whose gain is proven."""
    from tailtrim.laboratory.trim.request import require_packages  # noqa: PLC0415 - the help does without

    require_packages()
    plan = examples.located(plan)
    if not dry and watch is None:
        _enter(plan)
    request = _request_of(plan, watch, explained, out, resume=resume and not dry)
    settings = _settings(request, options.duration_s(duration), seed)
    if dry:
        _tell_tree(request, settings)
        return
    _search(request, None if resume else settings, json=json)


def _request_of(
    plan: Path, watch: str | None, explained: Path | None, out: Path | None, *, resume: bool
) -> Request:
    if watch is not None:
        from tailtrim.laboratory.trim.command_workload import CommandRequest  # noqa: PLC0415 - the help does without

        return CommandRequest(plan, watch, explained, out, resume=resume)
    from tailtrim.laboratory.trim.plan_request import PlanRequest  # noqa: PLC0415 - the help does without

    return PlanRequest(plan, explained, out, resume=resume)


def _enter(plan: Path) -> None:
    """Become root of a user namespace where the plan needs no more than that."""
    from tailtrim.laboratory.nodes.local_host import become_root  # noqa: PLC0415
    from tailtrim.laboratory.nodes.testbed import LOCAL  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.plan import load  # noqa: PLC0415

    loaded, _ = load(plan)
    if loaded.testbed == LOCAL and (loaded.trim is None or loaded.trim.host is None):
        become_root()


def _settings(request: Request, seconds: float, seed: int) -> Settings:
    from tailtrim.laboratory.trim.trial import Settings  # noqa: PLC0415 - the help does without

    return Settings(
        error=request.trimming.error,
        worth=request.trimming.worth,
        # A lower bound of the time: by the time of the first trials it is corrected.
        trials=int(seconds / request.each_s),
        seconds=seconds,
        seed=seed,
        limits=request.limits,
        explain=request.explains,
    )


def _tell_tree(request: Request, settings: Settings) -> None:
    from tailtrim.laboratory.trim.tree import tree  # noqa: PLC0415 - the help does without

    for line in tree(request.candidates, request.impossible, settings, request.each_s):
        tell(line)


class _TrialLines(TrialListener):
    """A line for each trial, and for each preparation."""

    def __init__(self, search: Search) -> None:
        self._search = search

    def preparation(self, what: str) -> None:
        doing(what)

    def warning(self, what: str) -> None:
        warn(what)

    def trial_ended(self, trial: Trial, observation: Observation) -> None:
        from tailtrim.publishing.trim_report import table  # noqa: PLC0415 - the help does without

        tell(table.progress(trial, observation, self._search.left), err=True)


def _search(request: Request, settings: Settings | None, *, json: bool) -> None:
    from tailtrim.laboratory.trim.loop import Loop  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.trim.recorded import recorded  # noqa: PLC0415
    from tailtrim.publishing.trim_report import findings, table, write  # noqa: PLC0415

    place = request.place
    with ExitStack() as stack:
        with ending_orderly():
            loop = stack.enter_context(Loop(request, place, settings))
            listener = _TrialLines(loop.search)
            loop.workload.prepare(listener)
            try:
                result = loop.go(listener)
            except (KeyboardInterrupt, SystemExit):
                done = len(loop.search.seen)
                say(f"interrupted: {done} trials are in {place}, --resume goes on", err=True)
                raise
        found = findings(recorded(place))
        if json:
            say_json(found.as_json())
        else:
            show(table.render(found))
        show_report(place, lambda out: write(found, out), quiet=json)
    for notice in (*loop.workload.notices, *result.notices):
        warn(notice)
    if not result.kept:
        raise typer.Exit(ExitCode.NEGATIVE)
