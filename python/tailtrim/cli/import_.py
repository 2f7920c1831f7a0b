"""``tailtrim import``."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options, spans, watch_import
from tailtrim.cli.catalogue import ELSEWHERE
from tailtrim.cli.console import say, say_json, show, warn
from tailtrim.errors import ExitCode, MissingPackageError

if TYPE_CHECKING:
    from tailtrim.analysis.histograms import BucketHistogram
    from tailtrim.results import Summary

#: Of the JSON of histograms.
SCHEMA = "tailtrim.histograms/1"

EXAMPLES = """\b
Examples:
  tailtrim import Ping-ICMP-#1-192.0.2.1-20261121T090830.364329-000000001.hpct.xz --out results/hpct
  irtt client -o irtt.json.gz reflector.example && tailtrim import irtt.json.gz --out results/irtt
  tailtrim import minutes/gateway@2026-11-28 --out before   # minutes of watch, kept
  tailtrim import trex-stats.json                # intervals of the percentiles of each stream
  tailtrim import jhiccup.hlog --json | jq '.histograms[].quantiles'
TRex and HdrHistogram count in buckets: a percentile is an interval, and there is no run directory.
"""


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Ping results of HiPerConTracer (version 1 or 2), the JSON of irtt, latency "
            "histograms of TRex (JSON of get_stats) or HdrHistogram's interval log (.hlog); also "
            ".xz, .bz2, .gz, .zst. All of the same kind. Or minutes of watch: WATCH/TARGET@SPAN.",
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        options.out(
            "Run directory to write; with several pairs of hosts, a folder with one for each."
            " Of histograms, the folder for histograms.json."
        ),
    ] = None,
    stamps: Annotated[
        str,
        typer.Option(
            metavar="SOURCE",
            help="Time stamps of HiPerConTracer to use: application, software or hardware.",
        ),
    ] = "application",
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of the values in HdrHistogram's log: ns, us, ms or s. Default: as its "
            "comments tell; jHiccup has ns.",
        ),
    ] = None,
    json: Annotated[
        bool, options.json("Print the summaries, or all of the histograms, as JSON.")
    ] = False,
) -> None:
    """Import round trips and latency histograms that other tools measured."""
    if (name := str(files[0])) in ELSEWHERE and not files[0].exists():
        missing = MissingPackageError(f"import {name} is in the package {ELSEWHERE[name]}")
        missing.add_note(f"pip install {ELSEWHERE[name]}")
        raise missing
    if len(files) == 1 and (chosen := spans.selected(str(files[0]))):
        _show(watch_import.leave_runs(chosen, out), json=json)
        return
    from tailtrim.analysis.histograms import read_histograms  # noqa: PLC0415 - the help does without

    if histograms := read_histograms(files, unit=unit):
        _tell(histograms, out, json=json)
    else:
        _leave_runs(files, out, stamps, json=json)


def _tell(histograms: list[BucketHistogram], out: Path | None, *, json: bool) -> None:
    found = {"schema": SCHEMA, "histograms": [histogram.as_json() for histogram in histograms]}
    if out is not None:
        from tailtrim.results.drafts import replacing  # noqa: PLC0415 - as above

        with replacing(out / "histograms.json") as file:
            file.write(dumps(found, indent=2).encode() + b"\n")
    if json:
        say_json(found, indent=2)
    else:
        from tailtrim.publishing.report.terminal.histogram_text import render  # noqa: PLC0415

        show(render(histograms))
        if out is not None:
            say(f"Histograms: {out / 'histograms.json'}")
    if not any(histogram.count for histogram in histograms):
        raise typer.Exit(ExitCode.NEGATIVE)


def _leave_runs(files: list[Path], out: Path | None, level: str, *, json: bool) -> None:
    from tailtrim.analysis.roundtrip import imported  # noqa: PLC0415 - takes longer than most commands

    runs, others = imported.leave_runs(files, out, level=level)
    for name, count in sorted(others.items()):
        warn(f"{count:,} {name} results of HiPerConTracer are passed over: not single round trips")
    _show(runs, json=json)


def _show(runs: list[tuple[str, Path, Summary]], *, json: bool) -> None:
    summaries = [summary for _, _, summary in runs]
    if json:
        for summary in summaries:
            say(summary.text)
    else:
        from tailtrim.publishing.report.terminal.run_text import render  # noqa: PLC0415 - not for --json

        show(render(summaries, [name for name, _, _ in runs]))
        for _, place, _ in runs:
            say(f"Run directory: {place}")
    if not any(summary.samples for summary in summaries):
        raise typer.Exit(ExitCode.NEGATIVE)
