"""``tailtrim analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tailtrim
from tailtrim.cli import engine_options, options
from tailtrim.cli.console import Progress, say, show, show_run
from tailtrim.cli.engine_options import EngineName, Memory, Scratch, Server, is_decoded
from tailtrim.cli.objectives import judge, need_samples, needed_quantiles, read_asserts
from tailtrim.errors import ExitCode, TwoDirectionsError
from tailtrim.results import Summary

EXAMPLES = """\b
Examples:
  tailtrim analyze ingress.pcap.zst egress.pcap.zst
  tailtrim analyze pre.pcap post.pcap --out results/hw
  tailtrim analyze pre.pcap post.pcap --assert 'p99.9 < 50us, loss < 0.01%' --junit slo.xml
  tailtrim analyze pre.pcap post.pcap --mask nat --quantile 99.99999%
  tailtrim analyze pre.pcap post.pcap --signature 42:4 --json | jq .latency_ns
  tailtrim analyze decoded --engine duckdb --memory 2GB
"""


IngressCapture = Annotated[
    str,
    typer.Argument(
        metavar="INGRESS",
        help="Capture of the packets that enter the device under test: pcap, pcapng or mscap, also"
        " .zst or .gz; - for standard input. Or a directory written by decode, DIR or DIR:NUMBER.",
    ),
]
EgressCapture = Annotated[
    str | None,
    typer.Argument(
        metavar="EGRESS",
        help="Capture of the packets that leave it; omitted if INGRESS is a decoded directory of"
        " two captures.",
    ),
]
Window = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Longest latency: later packets are not matched, such as 5s or 500ms.",
    ),
]
Signature = Annotated[
    str | None,
    typer.Option(
        metavar="OFFSET:LENGTH,…",
        help="Bytes that identify a packet, counted from the start of the frame. Default: the "
        "first 64 bytes after the L2 header without TTL and checksums.",
    ),
]
Masks = Annotated[
    list[options.Mask] | None,
    typer.Option(
        metavar="FIELDS",
        help="Fields that the device rewrites, in addition to MAC addresses, VLAN tags, TTL"
        " and checksums: nat (addresses and ports), tos (DSCP and ECN), tunnel (adds or removes"
        " VXLAN or GRE). Repeatable.",
    ),
]
Quantiles = Annotated[
    list[str] | None,
    typer.Option(
        metavar="P",
        help="A quantile in addition to 0.5, 0.9, 0.99 …, such as 0.9995 or 99.95%. Repeatable.",
    ),
]
AllowNegative = Annotated[
    bool,
    typer.Option(
        "--allow-negative",
        help="Accept captures in which most packets leave before they enter.",
    ),
]
InOrder = Annotated[
    bool,
    typer.Option(
        "--in-order",
        help="Match frames that nothing tells apart in their order: the n-th that leaves with the"
        " n-th that entered. Neither losses nor changes of the order are seen.",
    ),
]
Way = Annotated[
    options.Direction | None,
    typer.Option(
        help="Of captures with packets of both directions, those that go forward (ingress to"
        " egress) or in reverse. Default: both, one after the other.",
    ),
]
Where = Annotated[
    EngineName | None,
    typer.Option(
        metavar="ENGINE",
        help="Engine that matches: native (captures, in one pass), duckdb, postgres or spark."
        " Default: native for captures, duckdb for decoded directories. All give the same"
        " result.",
    ),
]

Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Cores that the native matcher uses at most. Default: all.",
    ),
]
RunDirectoryTo = Annotated[
    Path | None,
    options.out("Write a run directory here, for report, explain, compare and convert."),
]


def command(  # noqa: PLR0913 - one parameter an option
    ingress: IngressCapture,
    egress: EgressCapture = None,
    *,
    signature: Signature = None,
    mask: Masks = None,
    skip: options.Skip = "1s",
    trim: options.FormerTrim = None,
    window: Window = "5s",
    quantile: Quantiles = None,
    confidence: Annotated[
        str, typer.Option(metavar="P", help="Confidence level of the intervals.")
    ] = "0.95",
    stamps: options.StampSource = options.Stamps.HEADER,
    salvage: options.Salvage = False,
    allow_negative: AllowNegative = False,
    in_order: InOrder = False,
    direction: Way = None,
    asserts: options.Asserts = None,
    junit: options.Junit = None,
    engine: Where = None,
    jobs: Jobs = None,
    server: Server = None,
    memory: Memory = None,
    scratch: Scratch = None,
    json: Annotated[bool, options.json("Print the summary as JSON.")] = False,
    out: RunDirectoryTo = None,
) -> None:
    """Match an ingress and an egress capture and print the tail of the latency."""
    objectives = read_asserts(asserts, junit)
    captures = [ingress] if egress is None else [ingress, egress]
    if engine is None:
        engine = EngineName.DUCKDB if is_decoded(captures) else EngineName.NATIVE
    matching: dict[str, Any] = {
        "skip_s": options.skip(skip, trim),
        "window_s": window,
        "quantiles": [*(quantile or ()), *needed_quantiles(objectives)],
        "confidence": confidence,
        "allow_negative": allow_negative,
        "keep_samples": need_samples(objectives),
        "out": out,
    }
    decoding: dict[str, Any] = {
        "signature": signature,
        "masks": mask or (),
        "x552_trailer": stamps is options.Stamps.X552,
        "salvage": salvage,
    }
    at: dict[str, Any] = {"engine": engine, "server": server, "memory": memory, "scratch": scratch}
    if jobs is not None and engine is not EngineName.NATIVE:
        raise ValueError(f"--jobs is for the native matcher, engine {engine} has none")
    if engine is not EngineName.NATIVE and (in_order or direction):
        option = "--in-order" if in_order else "--direction"
        raise ValueError(f"{option} is for the native matcher, engine {engine} has none")
    native = {"jobs": jobs, "in_order": in_order, "direction": direction}
    try:
        analysis = (
            _in_one_pass(captures, decoding | matching | native)
            if engine is EngineName.NATIVE
            else engine_options.analyze(captures, **at, decoding=decoding, matching=matching)
        )
    except TwoDirectionsError:
        if json or objectives or out is not None:
            raise
        _print_both(captures, decoding | matching | native)
        return
    if json:
        say(analysis.summary.text)
    else:
        _print([analysis.summary], names=[out.name if out else Path(ingress).name], out=out)
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415 - the help does without

    judge([JudgedRun(Path(ingress).name, analysis)], objectives, junit)
    if analysis.summary.samples == 0 or analysis.summary.invalid:
        raise typer.Exit(ExitCode.NEGATIVE)


def _in_one_pass(captures: list[str], matching: dict[str, Any]) -> tailtrim.Analysis:
    if is_decoded(captures):
        raise ValueError(
            "engine native cannot read decoded captures: expected duckdb, postgres or spark"
        )
    if len(captures) == 1:
        raise ValueError(f"{captures[0]}: is one capture, expected ingress and egress")
    with Progress("matching") as progress:
        return tailtrim.analyze(*captures, progress=progress, **matching)


def _print_both(captures: list[str], matching: dict[str, Any]) -> None:
    """Print the results of two directions."""
    summaries = [
        _in_one_pass(captures, matching | {"direction": direction}).summary
        for direction in options.Direction
    ]
    _print(summaries, names=list(options.Direction))
    if any(summary.samples == 0 or summary.invalid for summary in summaries):
        raise typer.Exit(ExitCode.NEGATIVE)


def _print(summaries: list[Summary], *, names: list[str], out: Path | None = None) -> None:
    from tailtrim.publishing.report.terminal.run_text import render  # noqa: PLC0415 - not for --json

    show(render(summaries, names))
    if out is not None:
        show_run(out, out)
