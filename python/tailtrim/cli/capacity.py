"""``tailtrim capacity``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say, say_json, show, show_report, tell
from tailtrim.cli.signals import ending_orderly
from tailtrim.errors import ExitCode
from tailtrim.laboratory.capacity.trial import TrialListener
from tailtrim.laboratory.plan import examples

if TYPE_CHECKING:
    from tailtrim.laboratory.capacity.record import Capacity
    from tailtrim.laboratory.capacity.request import SearchRequest
    from tailtrim.laboratory.capacity.runner import CapacitySearch
    from tailtrim.laboratory.capacity.trial import Count, TrialResult
    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.results.experiments import Outcome

EXAMPLES = """\b
Examples:
  tailtrim capacity busy-forwarder --assert 'p99.9 < 500us, loss < 1e-4'   # an example of tailtrim
  tailtrim capacity forwarder.yml                        # NDR and PDR alone
  tailtrim capacity forwarder.yml --assert 'p99.99 < 1ms' --duration 1h --width 1%
  tailtrim capacity bursts.yml --search burst --assert 'p99.9 < 200us'
  tailtrim capacity forwarder.yml --resume               # after an interruption
"""


def command(  # noqa: PLR0913 - one parameter an option
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="A YAML file whose load is the highest to be tried; an example is busy-forwarder.",
        ),
    ],
    *,
    asserts: Annotated[
        list[str] | None,
        options.asserts(
            "What is to hold beside NDR and PDR, such as 'p99.9 < 200us, loss < 1e-4'; list prints"
            " the promises that have names."
        ),
    ] = None,
    search: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="load, or burst: the largest burst at the mean rate of the plan."
        ),
    ] = "load",
    width: Annotated[
        str, typer.Option(metavar="SHARE", help="How far lower and upper bound may be apart.")
    ] = "2%",
    confidence: Annotated[
        str, typer.Option(metavar="P", help="Confidence of each bound of the promise.")
    ] = "0.95",
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="How long all trials may take, such as 9min.")
    ] = "9min",
    out: options.Results = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted search.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Search the highest load that meets a promise, beside NDR and PDR (RFC 9971)."""
    from tailtrim.analysis.options import share  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.capacity.runner import CapacitySearch  # noqa: PLC0415
    from tailtrim.laboratory.experiment import keep_plan  # noqa: PLC0415
    from tailtrim.laboratory.nodes.local_host import become_root  # noqa: PLC0415
    from tailtrim.laboratory.nodes.testbed import LOCAL  # noqa: PLC0415
    from tailtrim.laboratory.plan import load  # noqa: PLC0415

    plan = examples.located(plan)
    loaded, runs = load(plan)
    request = _search_request(
        loaded,
        runs,
        search,
        slo=", ".join(asserts or ()) or None,
        width=share("width", width, "2% or 0.02"),
        confidence=share("confidence", confidence, "95% or 0.95"),
        budget_s=options.duration_s(duration),
    )
    if loaded.testbed == LOCAL:
        become_root()
    place = out or Path("results") / loaded.name
    with CapacitySearch(place, loaded, request, resume=resume) as conducted:
        conducted.experiment.save()
        keep_plan(plan, conducted.experiment)
        with ending_orderly():
            _conduct(conducted)
        _finish(_predicted(conducted.capacity, place), place, json=json)


def _search_request(plan: Plan, runs: list[Run], search: str, **options: Any) -> SearchRequest:
    """Return the search, print its needs, and refuse goals beyond the budget."""
    from tailtrim.laboratory.capacity import estimate  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.capacity.request import search_request  # noqa: PLC0415

    if search not in {"load", "burst"}:
        raise ValueError(f"invalid --search {search!r}, expected load or burst")
    request = search_request(
        plan, runs, searched="burst" if search == "burst" else "load", **options
    )
    estimate.refuse_undecidable(request.search)
    for line in estimate.needs(request):
        say(line, err=True)
    return request


class _TrialLines(TrialListener):
    """A line for each trial."""

    def __init__(self, unit: str) -> None:
        self._unit = unit

    def trial_ended(self, result: TrialResult, outcome: Outcome) -> None:
        trial = result.trial
        told = ", ".join(f"{name}: {_told(one)}" for name, one in result.counts.items())
        why = f" (invalid: {result.invalid})" if result.invalid else ""
        purpose = f" ({trial.purpose})" if trial.purpose != "search" else ""
        head = f"{outcome.run}  {trial.load:,} {self._unit}, {trial.duration_s:.3g} s{purpose}"
        tell(f"{head}: {told}{why}", err=True)


def _conduct(search: CapacitySearch) -> None:
    """Do the trials, with a line for each."""
    done = len(search.trials)
    if done:
        say(f"trials that are there: {done}", err=True)
    try:
        search.conduct(_TrialLines(search.request.loads.unit))
    except (KeyboardInterrupt, SystemExit):
        told = f"interrupted, trials in {search.experiment.path}: {len(search.trials)}"
        say(f"{told}; --resume goes on", err=True)
        raise


def _told(count: Count) -> str:
    """Return counts of bad packets, and of those that a late generator leaves unknown."""
    unknown = f", {count.unknown:,} unknown" if count.unknown else ""
    return f"{count.bad:,} bad{unknown}"


def _predicted(capacity: Capacity, place: Path) -> Capacity:
    """Add the prediction of the model of one trial to the record, and keep it."""
    from tailtrim.laboratory.capacity import record  # noqa: PLC0415 - the help does without
    from tailtrim.publishing.report.inputs.predicted_capacity import prediction_of  # noqa: PLC0415
    from tailtrim.results.experiments import recorded  # noqa: PLC0415

    told = replace(capacity, prediction=prediction_of(recorded(place), capacity))
    record.write(place, told)
    return told


def _finish(capacity: Capacity, place: Path, *, json: bool) -> None:
    if json:
        say_json(capacity.as_json())
    else:
        from tailtrim.publishing.report import write_experiment  # noqa: PLC0415 - not for --json
        from tailtrim.publishing.report.capacity_wording import goals, notes  # noqa: PLC0415
        from tailtrim.results.experiments import recorded  # noqa: PLC0415

        show(goals(capacity).terminal())
        for line in notes(capacity):
            tell(line)
        experiment = recorded(place)
        if experiment.complete:
            show_report(place, lambda out: write_experiment(experiment, out))
        else:
            say(f"\nExperiment: {place}")
    missing = [one for one in capacity.goals if one.lower is None]
    if missing:
        refused = any(one.ended == "lowest load" for one in missing)
        raise typer.Exit(ExitCode.NEGATIVE if refused else ExitCode.UNDECIDED)
