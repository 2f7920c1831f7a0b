"""``tailtrim analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tailtrim
from tailtrim._native import fields, protocols
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
  tailtrim analyze both.pcapng --ingress eth1 --egress eth2
  tailtrim analyze pre.pcap post.pcap --signature 42:4 --json | jq .latency_ns
  tailtrim analyze pre.pcap post.pcap --clock-fit
  tailtrim analyze ping.pcap --round-trip
  tailtrim analyze decoded --engine duckdb --memory 2GB
"""


IngressCapture = Annotated[
    str,
    typer.Argument(
        metavar="INGRESS",
        help="Capture of the packets that enter the device under test: pcap, pcapng, ERF or mscap,"
        " also .zst or .gz; - for standard input. Or a directory written by decode, DIR or"
        " DIR:NUMBER.",
    ),
]
EgressCapture = Annotated[
    str | None,
    typer.Argument(
        metavar="EGRESS",
        help="Capture of the packets that leave it; omitted if INGRESS is a decoded directory of"
        " two captures, or one capture of both sides.",
    ),
]
IngressInterface = Annotated[
    str | None,
    typer.Option(
        "--ingress",
        metavar="INTERFACE",
        help="Packets of the ingress capture to read: an interface of pcapng by name, number or"
        " description, of ERF or tcpdump -i any by number. INTERFACE:in and INTERFACE:out are those"
        " received and sent, which of tcpdump -i any is the default of ingress and egress.",
    ),
]
EgressInterface = Annotated[
    str | None,
    typer.Option(
        "--egress",
        metavar="INTERFACE",
        help="The same of the egress capture, which may be the same file.",
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
        " MPLS, PPPoE, GRE, ERSPAN, IP in IP, SRv6, VXLAN, GENEVE, GTP-U, L2TP or another"
        " encapsulation, or extension headers of IPv6: the innermost packet counts). Repeatable.",
    ),
]
Quantiles = Annotated[
    list[str] | None,
    typer.Option(
        metavar="P",
        help="A quantile in addition to 0.5, 0.9, 0.99 …, such as 0.9995 or 99.95%. Repeatable.",
    ),
]
Confidence = Annotated[str, typer.Option(metavar="P", help="Confidence level of the intervals.")]
AllowNegative = Annotated[
    bool,
    typer.Option(
        "--allow-negative",
        help="Accept captures in which many packets leave before they enter.",
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
        metavar="DIRECTION",
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
By = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD[:N]",
        help="Percentiles, loss and outcomes of the N largest groups of packets too (10), and of"
        f" the rest, by {', '.join(fields())} of the ingress packet; the port is that of the"
        " receiver.",
    ),
]
LostTo = Annotated[
    Path | None,
    typer.Option(
        "--lost",
        metavar="FILE",
        help="Write the lost packets here as CSV, or Parquet where the name ends .parquet: time,"
        " number of the frame in the ingress capture, flow, and the cluster of losses.",
    ),
]
ClockFit = Annotated[
    bool,
    typer.Option(
        "--clock-fit",
        help="Correct the clocks of the taps: steps and drift that the fastest packets show. Only"
        " latency beyond that of the fastest packets is known then. Captures are read twice.",
    ),
]
RoundTrip = Annotated[
    bool,
    typer.Option(
        "--round-trip",
        help="Match requests with their replies in one capture: at the requester these are round"
        " trips, at the far host the time that it took to reply.",
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        metavar="PROTOCOL",
        help=f"Protocol of the requests of --round-trip, one of {', '.join(protocols())}. Default:"
        " that of most exchanges.",
    ),
]
RunDirectoryTo = Annotated[
    Path | None,
    options.out("Write a run directory here, for report, explain, compare and convert."),
]

_SPELLED = {
    "masks": "mask",
    "x552_trailer": "stamps",
    "nanoseconds": "stamps",
    "ingress_interface": "ingress",
    "egress_interface": "egress",
    "in_order": "in-order",
    "clock_fit": "clock-fit",
}


def command(  # noqa: PLR0913 - one parameter an option
    ingress: IngressCapture,
    egress: EgressCapture = None,
    *,
    ingress_interface: IngressInterface = None,
    egress_interface: EgressInterface = None,
    signature: Signature = None,
    mask: Masks = None,
    by: By = None,
    lost: LostTo = None,
    clock_fit: ClockFit = False,
    round_trip: RoundTrip = False,
    protocol: Protocol = None,
    skip: options.Skip = "0s",
    window: Window = "5s",
    quantile: Quantiles = None,
    confidence: Confidence = "0.95",
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
    objectives = read_asserts(asserts, junit, lost)
    captures = _captures(ingress, egress)
    engine = engine or (EngineName.DUCKDB if is_decoded(captures) else EngineName.NATIVE)
    matching: dict[str, Any] = {
        "skip_s": skip,
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
        "nanoseconds": stamps is options.Stamps.NANOSECONDS,
        "salvage": salvage,
    }
    at: dict[str, Any] = {"engine": engine, "server": server, "memory": memory, "scratch": scratch}
    of_pairs: dict[str, Any] = {"ingress_interface": ingress_interface, "jobs": jobs}
    of_pairs |= {"egress_interface": egress_interface, "direction": direction}
    of_pairs |= {"in_order": in_order, "clock_fit": clock_fit, "by": by, "lost": lost}
    if in_order or clock_fit:
        _refuse({"by": by, "lost": lost}, "excludes --in-order and --clock-fit")
    if round_trip:
        of_pairs |= at | {"engine": None, "allow-negative": allow_negative}
        _refuse(of_pairs | decoding, "does not go with --round-trip")
        analysis = _round_trips(captures, matching, salvage=salvage, protocol=protocol, quiet=json)
    elif engine is EngineName.NATIVE:
        _refuse(at | {"engine": None}, "is for engines (--engine), the native matcher has none")
        _refuse({"protocol": protocol}, "is that of --round-trip")
        asked = decoding | matching | of_pairs | {"keep_lost": lost is not None}
        analysis = _one_or_both(captures, asked, one=bool(json or objectives or out or by or lost))
    else:
        of_pairs["protocol"] = protocol
        _refuse(of_pairs, f"is for the native matcher, engine {engine} has none")
        analysis = engine_options.analyze(captures, **at, decoding=decoding, matching=matching)
    name = _name(ingress)
    _leave(analysis, by=by, lost=lost, json=json, name=name, out=out)
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415 - the help does without

    judge([JudgedRun(name, analysis)], objectives, junit)
    if analysis.summary.samples == 0 or analysis.summary.invalid:
        raise typer.Exit(ExitCode.NEGATIVE)


def _captures(ingress: str, egress: str | None) -> list[str]:
    captures = [ingress] if egress is None else [ingress, egress]
    if captures.count("-") > 1:
        raise ValueError("standard input (-) is one capture, expected a file or <(…) for the other")
    return captures


def _name(capture: str) -> str:
    """Return what to call the result of a capture: a pipe has no name but what the shell gave."""
    if capture == "-":
        return "standard input"
    return capture if capture.startswith("/dev/") else Path(capture).name


def _one_or_both(captures: list[str], asked: dict[str, Any], *, one: bool) -> tailtrim.Analysis:
    """Match captures; print both results of captures with two directions, and end, unless one."""
    del asked["lost"]
    try:
        return _in_one_pass(captures, asked)
    except TwoDirectionsError:
        if one:
            raise
    summaries = [
        _in_one_pass(captures, asked | {"direction": direction}).summary
        for direction in options.Direction
    ]
    _print(summaries, names=list(options.Direction))
    invalid = any(summary.samples == 0 or summary.invalid for summary in summaries)
    raise typer.Exit(ExitCode.NEGATIVE if invalid else ExitCode.SUCCESS)


def _leave(  # noqa: PLR0913 - what the command line asks for
    analysis: tailtrim.Analysis,
    *,
    by: str | None,
    lost: Path | None,
    json: bool,
    name: str,
    out: Path | None,
) -> None:
    """Write the lost packets and print the result."""
    if lost is not None:
        from tailtrim.analysis.lost import write  # noqa: PLC0415 - for --lost

        write(analysis.lost, lost)
    if json:
        say(_json(analysis, by))
        return
    _print([analysis.summary], names=[out.name if out else name])
    _print_more(analysis, by=by, lost=lost)
    if out is not None:
        show_run(out, out)


def _refuse(options: dict[str, Any], why: str) -> None:
    """Refuse options that are given, the first one by name."""
    given = [name for name, value in options.items() if value and name != "salvage"]
    if given:
        raise ValueError(f"--{_SPELLED.get(given[0], given[0])} {why}")


def _in_one_pass(captures: list[str], matching: dict[str, Any]) -> tailtrim.Analysis:
    if is_decoded(captures):
        raise ValueError(
            "engine native cannot read decoded captures: expected duckdb, postgres or spark"
        )
    with Progress("matching") as progress:
        return tailtrim.analyze(*captures, progress=progress, **matching)


def _round_trips(
    captures: list[str],
    matching: dict[str, Any],
    *,
    salvage: bool,
    protocol: str | None,
    quiet: bool,
) -> tailtrim.Analysis:
    from tailtrim.analysis.exchanges import analyze_exchanges  # noqa: PLC0415 - for --round-trip

    if len(captures) != 1:
        raise ValueError(f"{captures[1]}: --round-trip is within one capture, expected no second")
    del matching["allow_negative"]
    with Progress("matching") as progress:
        analysis, found = analyze_exchanges(
            captures[0], protocol=protocol, salvage=salvage, progress=progress, **matching
        )
    if not quiet:
        say(f"{captures[0]}: {found}")
    return analysis


def _json(analysis: tailtrim.Analysis, by: str | None) -> str:
    """Return the summary as it is, with the groups if there are any."""
    if by is None:
        return analysis.summary.text
    import json  # noqa: PLC0415 - for --by

    from tailtrim.analysis.groups import to_json  # noqa: PLC0415

    return json.dumps(json.loads(analysis.summary.text) | {"by": to_json(by, analysis.groups)})


def _print(summaries: list[Summary], *, names: list[str]) -> None:
    from tailtrim.publishing.report.terminal.run_text import render  # noqa: PLC0415 - not for --json

    show(render(summaries, names))


def _print_more(analysis: tailtrim.Analysis, *, by: str | None, lost: Path | None) -> None:
    from tailtrim.publishing.report.group_table import by_group, of_lost  # noqa: PLC0415

    if by is not None:
        say("")
        table = by_group(by, analysis.groups)
        show(table.terminal())
        say(table.caption)
    if lost is not None:
        say(f"\n{lost}: {of_lost(analysis.lost)}")
