"""Options and arguments that several commands have, as annotated types."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tailtrim.cli.console import say_lines


def out(told: str, metavar: str = "DIR") -> Any:
    """Return ``--out`` with its help."""
    return typer.Option("--out", "-o", metavar=metavar, help=told)


def json(told: str = "Print the result as JSON.") -> Any:
    """Return ``--json`` with its help."""
    return typer.Option("--json", help=told)


def asserts(told: str) -> Any:
    """Return ``--assert`` with its help; ``list`` prints the promises and ends the command."""
    return typer.Option(
        "--assert", metavar="OBJECTIVES", help=told, callback=_list_promises, is_eager=True
    )


def _list_promises(context: typer.Context, texts: list[str] | None = None) -> list[str] | None:
    if texts and "list" in texts and not context.resilient_parsing:
        from tailtrim.cli.objectives import promises  # noqa: PLC0415 - most calls have none

        say_lines(promises())
        raise typer.Exit
    return texts


class Mask(StrEnum):
    """Fields that the device under test may rewrite."""

    NAT = "nat"
    TOS = "tos"
    TUNNEL = "tunnel"


class Direction(StrEnum):
    """Directions of packets through the device under test."""

    FORWARD = "forward"
    REVERSE = "reverse"


class Stamps(StrEnum):
    """Sources of time stamps."""

    HEADER = "header"
    NANOSECONDS = "nanoseconds"
    X552 = "x552"


RunOrExperiment = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="A run directory, written by analyze --out, or an experiment, written by run: each"
        " of its runs. Or minutes of watch: WATCH@SPAN or WATCH/TARGET@SPAN.",
    ),
]
Results = Annotated[
    Path | None, out("Directory of the results. Default: results/NAME of the plan.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted experiment.")]
Json = Annotated[bool, json()]
Skip = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Leave out samples within this time of the first match, such as 1s or 500ms.",
    ),
]
StampSource = Annotated[
    Stamps,
    typer.Option(
        metavar="SOURCE",
        help="header: stamps of the capture file; nanoseconds: the same, with fractions of seconds"
        " in nanoseconds although a pcap says microseconds; x552: the last eight bytes of each"
        " frame.",
    ),
]
Salvage = Annotated[
    bool, typer.Option("--salvage", help="Analyse a damaged capture up to the damage.")
]
Cpu = Annotated[
    int | None,
    typer.Option(
        metavar="CPU",
        min=0,
        help="The CPU that serves the packets, if the trace covers several.",
    ),
]
Asserts = Annotated[
    list[str] | None,
    asserts(
        "Objectives, such as 'p99.9 < 50us, loss < 0.01%'; also max, mean and 'adjusted p99' (lost"
        " packets count as infinitely late). Or a promise by name, such as urllc-1ms, for all runs"
        " together; list prints them with their sources. Exit code 1: failed; 5: not decided, the"
        " confidence interval contains the limit."
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write the results of --assert as JUnit XML."),
]


def duration_s(text: str) -> float:
    """Return the seconds of ``--duration``.

    Raises:
        ValueError: the text is not a time, or the time is 0.

    """
    from tailtrim.analysis.options import nanoseconds  # noqa: PLC0415 - the help does without

    example = "90s, 20min or 2h"
    time_ns = nanoseconds("duration", text, example=example)
    if time_ns == 0:
        raise ValueError(f"invalid duration {text!r}, expected more than 0, such as {example}")
    return time_ns / 1e9
