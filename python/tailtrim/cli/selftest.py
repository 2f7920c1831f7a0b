"""``tailtrim selftest``."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say, say_json, show, tell, warn
from tailtrim.cli.signals import ending_orderly
from tailtrim.errors import ExitCode
from tailtrim.units import NONE, Times, time

if TYPE_CHECKING:
    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.selftest.attribution import AttributionScore
    from tailtrim.laboratory.selftest.known_delays import (
        MeasuredQuantile,
        Reason,
        RecoveredQuantile,
        Selftest,
    )

#: The plans that causes are checked with.
ATTRIBUTION = ("attribution", "attribution-slow")

EXAMPLES = """\b
Examples:
  tailtrim selftest
  tailtrim selftest --json | jq '.truth[] | .error_ns'
  tailtrim selftest --out results/selftest       # keep the runs
  tailtrim selftest --attribution                # are causes found correctly? (root)
"""


def command(
    *,
    attribution: Annotated[
        bool,
        typer.Option(
            "--attribution",
            help="Instead, disturb a device at known times and check the causes that explain"
            " finds (as root, four minutes).",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        options.out("Keep the runs here. Default: they are removed."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure the error of tailtrim on this host: its floor, and its error with known delays.

    A known delay is recovered if its error beyond the floor is within max(1 µs, 1 %). The floor is
    the same device without a delay, measured in turns. Exit code 1 if a delay is not recovered; the
    output then says which part of the path is the reason.
    """
    from tailtrim.laboratory.nodes.local_host import become_root  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.selftest import attribution as attributions  # noqa: PLC0415
    from tailtrim.laboratory.selftest.known_delays import evaluate  # noqa: PLC0415

    become_root()
    with ExitStack() as stack:
        stack.enter_context(ending_orderly())
        if attribution:
            places = {name: None if out is None else out / name for name in ATTRIBUTION}
            runs = [_conducted(*one, stack, quiet=json) for one in places.items()]
            rows = [row for run in runs for row in attributions.evaluate(run)]
            shown_rows(rows, json=json)
            return
        result = evaluate(_conducted("selftest", out, stack, quiet=json))
    if json:
        say_json(result.as_dict())
    else:
        _print(result)
    if not result.recovered:
        raise typer.Exit(ExitCode.NEGATIVE)


def _conducted(name: str, out: Path | None, stack: ExitStack, *, quiet: bool) -> Experiment:
    from tailtrim.cli import progress  # noqa: PLC0415 - the help does without
    from tailtrim.laboratory.experiment import Experiment, conduct  # noqa: PLC0415
    from tailtrim.laboratory.plan import load  # noqa: PLC0415

    if out is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tailtrim-"))
        out = Path(folder) / name
    plan = stack.enter_context(
        as_file(files("tailtrim.laboratory.selftest") / "plans" / f"{name}.yml")
    )
    loaded, runs = load(plan)
    experiment = stack.enter_context(Experiment(out, loaded, runs, resume=False))
    with progress.listener(experiment, quiet=quiet) as listener:
        conduct(experiment, listener)
    failed = [o for o in experiment.outcomes.values() if o.failed]
    for outcome in failed:
        tell(f"error: {outcome.run} ({outcome.label}): {outcome.failed}", err=True)
    if failed:
        raise typer.Exit(ExitCode.FAILED)
    return experiment


def shown_rows(rows: list[AttributionScore], *, json: bool) -> None:
    """Print recall and precision of the named causes."""
    if json:
        from tailtrim.laboratory.selftest.attribution import SCHEMA  # noqa: PLC0415 - the help does without

        say_json({"schema": SCHEMA, "rows": [row.as_dict() for row in rows]})
        return
    from rich.table import Table  # noqa: PLC0415 - not for --json

    # Narrow: all columns fit into 80.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for name in ("done", "to be named"):
        table.add_column(name, no_wrap=True)
    for name in ("times", "late", "named", "recall", "wrong", "precision"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        counts = (row.disturbances, row.due, row.named)
        table.add_row(
            row.what or "nothing",
            row.expected or "",
            *(f"{n:,}" if row.expected else "" for n in counts),
            *(_share(row.recall), f"{row.wrong:,}" if row.expected else "", _share(row.precision)),
        )
    show(table)


def _share(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.1f} %"


def _print(result: Selftest) -> None:
    from rich.table import Table  # noqa: PLC0415 - not for --json

    truths = [found for check in result.checks for found in check.truth]
    rows = [_of_floor(one) for one in (*result.floor_ns, *result.device_ns)]
    style = Times.of([[ns] for row in (*rows, *map(_of_truth, truths)) for ns in row])
    table = Table(box=None, pad_edge=False, header_style="")
    for name in ("delay", "p", "true", "floor", "measured", "error", "bound", ""):
        table.add_column(name, justify="left" if name in {"delay", ""} else "right", no_wrap=True)
    for name, floor in (("floor: wire", result.floor_ns), ("floor: device", result.device_ns)):
        for quantile in floor:
            table.add_row(name, quantile.p, *map(style.number, _of_floor(quantile)), "", "", "")
    reasons = []
    for check in result.checks:
        for found in check.truth:
            within = "" if found.recovered else "beyond"
            table.add_row(check.delay, found.p, *map(style.number, _of_truth(found)), within)
            if found.reason is not None:
                reasons.append(f"{check.delay}, p {found.p}: {_why(found.reason)}")
    show(table)
    recovered = [check.delay for check in result.checks if check.recovered]
    bounds = (
        f"\nTimes in {style.unit}. Within max(1 µs, 1 %) of the true delay plus the device's floor"
    )
    show(f"{bounds}: {', '.join(recovered) or 'none'}")
    for reason in reasons:
        say(f"Beyond: {reason}")
    for name, problems in result.spoilt.items():
        for problem in problems:
            warn(f"{name}: {problem}")


def _why(reason: Reason) -> str:
    from tailtrim.laboratory.selftest.known_delays import PARTS  # noqa: PLC0415 - the help does without

    return f"{PARTS[reason.part]} {time(reason.ns)}, with no delay {time(reason.floor_ns)}"


def _of_floor(one: MeasuredQuantile) -> tuple[int, ...]:
    return one.true, one.error_ns, one.measured


def _of_truth(one: RecoveredQuantile) -> tuple[int, ...]:
    return one.true, one.floor_ns, one.measured, one.error_ns, one.bound_ns
