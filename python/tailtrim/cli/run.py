"""``tailtrim run``."""

from __future__ import annotations

import json as jsons
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim import units
from tailtrim.cli import options
from tailtrim.cli.console import complain, say, say_json
from tailtrim.cli.objectives import judge, needed_quantiles, read_asserts, runs_to_judge
from tailtrim.cli.signals import ending_orderly
from tailtrim.errors import ExitCode, PicturesError
from tailtrim.laboratory.plan import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.slo import Objective
    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.results.experiments import Outcome

EXAMPLES = """\b
Examples:
  tailtrim run demo                              # an example that comes with tailtrim
  tailtrim run forwarder-tail.yml
  tailtrim run forwarder-tail.yml --out results/tail --resume
  tailtrim run forwarder-tail.yml --resume --retry-invalid
  tailtrim run forwarder-tail.yml --dry-run      # the runs, and all that is done to each node
"""


#: So many runs of a step of a dry run are named.
_NAMED = 3
_WIDEST_STEP = len("copy agent")


def command(  # noqa: PLR0913 - one parameter an option
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN", help=f"A YAML file, or an example: {', '.join(examples.names())}."
        ),
    ],
    *,
    out: options.Results = None,
    resume: options.Resume = False,
    retry_invalid: Annotated[
        bool, typer.Option("--retry-invalid", help="With --resume, also repeat invalid runs.")
    ] = False,
    dry: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check the plan, print its runs and all that would be done to each node, and"
            " change nothing.",
        ),
    ] = False,
    asserts: options.Asserts = None,
    junit: options.Junit = None,
    json: Annotated[bool, options.json("Print the outcome of the runs as JSON.")] = False,
) -> None:
    """Run an experiment: measure a device under test for each value of the loop variables."""
    from tailtrim.laboratory.plan import load  # noqa: PLC0415 - the help does without

    objectives = read_asserts(asserts, junit)
    plan = examples.located(plan)
    loaded, runs = load(plan)
    if dry:
        _tell_dry_run(loaded, runs, json=json)
        raise typer.Exit
    from tailtrim.cli import progress  # noqa: PLC0415 - --dry-run does without
    from tailtrim.laboratory.experiment import Experiment, conduct, images_for, keep_plan  # noqa: PLC0415
    from tailtrim.laboratory.nodes.local_host import become_root  # noqa: PLC0415
    from tailtrim.laboratory.nodes.testbed import LOCAL  # noqa: PLC0415
    from tailtrim.results.experiments import recorded  # noqa: PLC0415

    if loaded.testbed == LOCAL:
        become_root()
    place = out or Path("results") / loaded.name
    with Experiment(place, loaded, runs, resume=resume) as experiment:
        if retry_invalid:
            experiment.forget_invalid()
        experiment.quantiles = needed_quantiles(objectives)
        experiment.save()
        keep_plan(plan, experiment)
        with ending_orderly():
            if experiment.missing():
                _tell_rest(experiment)
                listener = progress.listener(experiment, quiet=json)
                images = images_for(experiment, listener)
                with _telling_interruption(experiment), listener:
                    conduct(experiment, listener, images)
        failed = _finish(experiment, objectives, json=json)
    if failed:
        raise typer.Exit(ExitCode.FAILED)
    done = recorded(experiment.path)
    judge(runs_to_judge(done), objectives, junit)
    if not any(at.summary.samples for _, at in done.complete):
        raise typer.Exit(ExitCode.NEGATIVE)


def _tell_runs(plan: Plan, runs: list[Run]) -> None:
    from tailtrim.cli import progress  # noqa: PLC0415 - the help does without

    for run in runs:
        label = units.printable(run.label)
        say(f"{run.folder}  {label}{'  (floor)' if run.floor else ''}")
    progress.tell_cost(plan, runs)
    _tell_coverage(runs)
    _tell_decidable(plan)


def _tell_dry_run(plan: Plan, runs: list[Run], *, json: bool) -> None:
    """Print the runs of an experiment, and all its steps on each node.

    Raises:
        HostError: it is not possible.

    """
    from tailtrim.laboratory.experiment.dry_run import dry_run  # noqa: PLC0415 - the help does without

    if not json:
        _tell_runs(plan, runs)
    would = dry_run(plan, runs)
    if json:
        say_json(would.as_json())
        return
    say(f"\n{would.name}: {would.expected.text()}. Nothing is changed by --dry-run.")
    for name, node in would.nodes.items():
        roles = ", ".join(node.roles)
        say(f"\n{name} ({roles})" if roles and not name.startswith(roles) else f"\n{name}")
        for step, of in node.steps.items():
            told = units.printable(
                f"{step.do:<{_WIDEST_STEP}}  {step.what}{_runs_of(of, len(runs))}"
            )
            say(f"  {told}")


def _runs_of(of: list[str], every: int) -> str:
    if not of or len(of) == every:
        return ""
    more = f" and {len(of) - _NAMED} more" if len(of) > _NAMED else ""
    return f"  ({', '.join(of[:_NAMED])}{more})"


def _tell_rest(experiment: Experiment) -> None:
    """Print how many runs are there, and what the others need."""
    from tailtrim.cli import progress  # noqa: PLC0415 - the help does without

    missing = experiment.missing()
    if done := len(experiment.runs) - len(missing):
        say(f"{done} of {len(experiment.runs)} runs are there", err=True)
    progress.tell_cost(experiment.plan, missing)
    _tell_coverage(missing)
    _tell_decidable(experiment.plan)


@contextmanager
def _telling_interruption(experiment: Experiment) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        done = len(experiment.runs) - len(experiment.missing())
        say(
            f"interrupted: {done} of {len(experiment.runs)} runs are in {experiment.path},"
            " --resume does the others",
            err=True,
        )
        raise


def _tell_coverage(runs: list[Run]) -> None:
    from tailtrim.laboratory.plan import coverage  # noqa: PLC0415 - the help does without

    notes = coverage.notes(runs)
    if notes:
        more = f" (likewise {len(notes) - 1} more)" if len(notes) > 1 else ""
        say(f"note: {units.printable(notes[0])}{more}", err=True)


def _tell_decidable(plan: Plan) -> None:
    from tailtrim.laboratory.plan import decidable  # noqa: PLC0415 - the help does without

    if (told := decidable.told(plan)) is not None:
        say(f"note: {told}", err=True)


def _finish(experiment: Experiment, objectives: list[Objective], *, json: bool) -> bool:
    of_all = list(experiment.outcomes.values())
    failed = [o for o in of_all if o.failed]
    complete = experiment.complete()
    if json:
        outcomes = [
            {
                "run": run.folder,
                "loop": run.loop,
                "dut": run.dut.label,
                "floor": run.floor,
                "repetition": run.repetition,
                "invalid": list(outcome.invalid),
                "repeated": list(outcome.repeated),
                "untraced": outcome.untraced,
                "generator": result.generator(),
                "summary": jsons.loads(result.summary.text),
            }
            for run, outcome, result in complete
        ]
        rest = {"failed": {o.run: o.failed for o in failed}}
        rest |= {"skipped": {o.run: o.skipped for o in of_all if o.skipped}}
        say_json({"runs": outcomes, **rest})
    elif complete and experiment.plan.factors:
        _compare_factors(experiment.path)
    elif complete:
        from tailtrim.cli.terminal import Terminal  # noqa: PLC0415 - not for --json
        from tailtrim.publishing.report import write_experiment  # noqa: PLC0415
        from tailtrim.publishing.report.terminal import experiment_text as overview  # noqa: PLC0415
        from tailtrim.results.experiments import recorded  # noqa: PLC0415 - the help does without

        console = Terminal()
        console.print(overview.render(complete))
        console.print(f"\nExperiment: {experiment.path}", soft_wrap=True)
        try:
            page, *_ = write_experiment(
                recorded(experiment.path), experiment.path / "report", objectives=objectives
            )
            console.print(f"Report:     {page}", soft_wrap=True)
            if experiment.plan.boot is not None:
                from tailtrim.cli.report import tell_boots  # noqa: PLC0415 - brings pages and figures

                say("")
                tell_boots(experiment.path, experiment.path / "report")
        except PicturesError as error:
            _without_pictures(error, experiment.path)
    for outcome in of_all:
        for doubt in outcome.invalid:
            told = units.printable(f"{outcome.run} ({outcome.label}) is invalid: {doubt}")
            say(f"warning: {told}", err=True)
    for notice in [*experiment.testbed.notices, *experiment.notices]:
        say(f"warning: {units.printable(notice)}", err=True)
    _tell_together("warning", " was repeated", [(o, "; ".join(o.repeated) or None) for o in of_all])
    untraced = ": no trace, only counters of interrupts"
    _tell_together("warning", untraced, [(o, o.untraced) for o in of_all])
    _tell_together("warning", ": skipped", [(o, o.skipped) for o in of_all])
    _tell_together("error", "", [(o, o.failed) for o in of_all])
    return bool(failed)


def _tell_together(kind: str, what: str, reasons: list[tuple[Outcome, str | None]]) -> None:
    """Print one message for all runs with the same reason."""
    for reason in dict.fromkeys(reason for _, reason in reasons if reason):
        runs = [f"{o.run} ({o.label})" for o, of_run in reasons if of_run == reason]
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        say(f"{kind}: {units.printable(f'{runs[0]}{more}{what}: {reason}')}", err=True)


def _compare_factors(path: Path) -> None:
    from tailtrim.cli.report import tell_factors  # noqa: PLC0415 - brings pages and figures

    try:
        tell_factors(path, path / "report")
    except PicturesError as error:
        _without_pictures(error, path)
    say(f"\nExperiment: {path}")


def _without_pictures(error: PicturesError, path: Path) -> None:
    """Print the reason for a missing report; the run itself is complete."""
    error.add_note(f"then: tailtrim report {shlex.quote(str(path))}")
    complain(error, "warning")
