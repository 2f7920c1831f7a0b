"""``tailtrim convert``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli import options, spans, watch_convert
from tailtrim.cli.console import say, warn
from tailtrim.cli.objectives import judge, read_asserts
from tailtrim.publishing import export

EXAMPLES = """\b
Examples:
  tailtrim convert results/hw --format hgrm
  tailtrim convert results/hw --format csv --out plots
  tailtrim convert results/ping --format hpct
  tailtrim convert results/forwarder-tail --format csv --out plots       # plots/run-000 …
  tailtrim convert results/rtt --format openmetrics --assert 'p99 < 2ms'
  tailtrim convert events.jsonl.zst --format perfetto
  tailtrim convert minutes@2026-11-22..2026-11-28 --format parquet --out week
  tailtrim convert minutes/gateway@yesterday --format hpct
The papers' plot scripts look for CSV names without "-filtered": analyse with --skip 0 for them.
"""

TargetFormat = StrEnum(  # type: ignore[misc]
    "TargetFormat", {name.upper(): name for name in (*export.FORMATS, "parquet")}
)


def command(
    directory: options.RunOrExperiment,
    *,
    form: Annotated[
        TargetFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="hgrm: HdrHistogram percentile text; hlog: HdrHistogram interval log; csv:"
            " percentiles, histograms, worst packets, jitter and rates as in the TUM papers;"
            " hpct: results of tailtrim ping in HiPerConTracer's format; openmetrics: for"
            " Prometheus, version 1.0 and, with a native histogram, 2.0, and for the node exporter;"
            " perfetto: the trace of a run, or of a file of tailtrim trace; parquet: of minutes of"
            " watch, probes and minutes by day.",
        ),
    ],
    out: Annotated[
        Path | None,
        options.out(
            "Directory for the files; of an experiment, with a folder for each run."
            " Default: the run directory; of minutes of watch, the current directory."
        ),
    ] = None,
    asserts: options.Asserts = None,
) -> None:
    """Convert a run directory, or all of an experiment, into other tools' formats."""
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415 - others start without
    from tailtrim.results.experiments import is_experiment, runs_of  # noqa: PLC0415

    if directory.is_file() and form == "perfetto":
        from tailtrim.publishing.export.perfetto import write_trace  # noqa: PLC0415

        say(write_trace(directory, out or directory.parent).files[0])
        return
    objectives = read_asserts(asserts, None)
    if chosen := spans.selected(str(directory)):
        watch_convert.convert(chosen, form.value, out or Path(), objectives)
        return
    if form == "parquet":
        raise ValueError(f"{directory}: tables of a run are Parquet already, in its directory")
    if objectives and form != "openmetrics":
        raise ValueError(
            "--assert: expected --format openmetrics, which says whether objectives hold"
        )
    judged = []
    several = is_experiment(directory)
    for name, run in runs_of(directory):
        place = run.path if out is None else out / run.name if several else out
        conversion = export.convert(run, form.value, place, objectives=objectives)
        for notice in conversion.notices:
            warn(notice.text)
        for file in conversion.files:
            say(file)
        judged.append(JudgedRun(name, run, name))
    judge(judged, objectives, None)
