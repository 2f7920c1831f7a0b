"""``tailtrim plan-length``."""

from __future__ import annotations

from typing import Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say, say_json, say_lines

EXAMPLES = """\b
Examples:
  tailtrim plan-length --quantile 0.9999 --precision 10% --rate 10kpps
  tailtrim plan-length --quantile 99.999% --precision 5% --pilot results/hw
  tailtrim plan-length --quantile 99.9% --pilot results/hw --assurance 90%
"""


def command(  # noqa: PLR0913 - one parameter an option
    *,
    quantile: Annotated[str, typer.Option(metavar="P", help="The quantile: 0.9999 or 99.99%.")],
    precision: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Half width of its confidence interval, relative to the quantile."
        ),
    ] = "10%",
    pilot: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="A pilot run: its rate, and the slope and the autocorrelation of its tail, are"
            " used. Without one, the precision is that of the share of late packets.",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Packets per second, such as 10kpps or 10000."),
    ] = None,
    cluster: Annotated[
        float, typer.Option(metavar="N", min=1, help="Mean number of late packets in a cluster.")
    ] = 1,
    confidence: Annotated[
        str, typer.Option(metavar="P", help="Confidence level of the interval.")
    ] = "0.95",
    assurance: Annotated[
        str,
        typer.Option(
            metavar="P",
            help="Share of the runs of this length whose interval is as narrow as asked.",
        ),
    ] = "80%",
    json: options.Json = False,
) -> None:
    """Estimate how long to measure for a quantile of a given precision."""
    from tailtrim.analysis.compare import plan_length as planned  # noqa: PLC0415 - others start without
    from tailtrim.analysis.options import packets_per_s  # noqa: PLC0415
    from tailtrim.publishing.report.terminal.comparison_text import length_lines  # noqa: PLC0415

    length = planned(
        quantile,
        precision=precision,
        confidence=confidence,
        assurance=assurance,
        cluster=cluster,
        rate_pps=packets_per_s(rate) if rate else None,
        pilot=pilot,
    )
    if json:
        say_json(length.as_json(), indent=2)
        return
    say_lines(length_lines(length, confidence))
    if not length.of_latency:
        say("  For the precision of the quantile itself, a pilot run is needed: --pilot RUN.")
