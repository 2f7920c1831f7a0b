"""The runs of an experiment as one table: :func:`run_table`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tailtrim.experiment.reading import RecordedRun
    from tailtrim.rundir import Summary


def run_table(runs: Sequence[RecordedRun]) -> pa.Table:
    """Return a row for each run.

    ``run``, ``name``, ``floor``, ``repetition``, ``problem`` (why it is not to be trusted or not
    there, null where all is well), ``loop_NAME`` for each loop variable, ``samples``, ``rate_pps``,
    ``loss``, ``min_ns``, ``mean_ns``, ``max_ns``, and for each quantile ``pX_ns`` with its interval
    ``pX_low_ns`` and ``pX_high_ns``. Values that a run does not have are null.
    """
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    rows = [_row(run) for run in runs]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pa.table({name: _of_one_type(values) for name, values in columns.items()})


def _row(run: RecordedRun) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": run.outcome.run,
        "name": run.name,
        "floor": run.outcome.floor,
        "repetition": run.repetition,
        "problem": run.problem,
    }
    row |= {f"loop_{name}": value for name, value in run.loop.items()}
    return row if run.directory is None else row | _numbers(run.directory.summary)


def _numbers(summary: Summary) -> dict[str, Any]:
    latency = summary.latency_ns
    row: dict[str, Any] = {
        "samples": summary.samples,
        "rate_pps": summary.rate_pps,
        "loss": summary.loss,
        "min_ns": latency.min,
        "mean_ns": latency.mean and latency.mean.value,
        "max_ns": latency.max,
    }
    for one in latency.quantiles:
        name = f"p{(Decimal(one.p) * 100).normalize():f}"
        row |= {f"{name}_ns": one.value, f"{name}_low_ns": one.low, f"{name}_high_ns": one.high}
    return row


def _of_one_type(values: list[Any]) -> list[Any]:
    """Return values that Arrow can hold in a column: loop variables may be numbers and words."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds <= {int, float}:
        return values
    return [None if value is None else str(value) for value in values]
