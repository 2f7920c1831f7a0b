"""``tailtrim explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options, spans, watch_explain
from tailtrim.cli.console import say_json, say_lines, tell, warn
from tailtrim.results.minutes import by_minute

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tailtrim.analysis.explain import Explanation, WorstPackets
    from tailtrim.analysis.explain.catches import Catch
    from tailtrim.results import RunDirectory

EXAMPLES = """\b
Examples:
  tailtrim explain results/hw
  tailtrim explain results/hw --interrupts irq.csv
  tailtrim explain results/rtt --trace events.jsonl.zst   # of tailtrim trace, at that time
  tailtrim explain results/hw --json | jq .periodic
  tailtrim explain results/forwarder-tail       # each run of an experiment
  tailtrim explain results/two-hours            # by minute: the worst packets
  tailtrim explain minutes/gateway@08:00..09:00         # minutes of watch
  tailtrim explain minutes/gateway              # of a watch: the late probes it has caught
"""


def command(  # noqa: PLR0913 - one parameter an option
    directory: options.RunOrExperiment,
    *,
    interrupts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Counters of interrupts during the run (columns separated by ';', one of them"
            " timestamp_us). Repeatable, for host and guest.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A trace of the host that served the packets, recorded meanwhile by trace --out."
            " Default: that in the run directory.",
        ),
    ] = None,
    cpu: options.Cpu = None,
    late_from: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Packets above this quantile are explained one by one, with a trace. Default:"
            " 0.999.",
        ),
    ] = None,
    json: Annotated[
        bool,
        options.json("Print the explanation as JSON; of an experiment a line for each run."),
    ] = False,
) -> None:
    """Attribute late packets to causes: periodic ones, and with a trace those of each packet.

    Of a run that was kept by minute, the worst packets are explained, if there was a trace. Of a
    target of tailtrim watch, the late probes that it has caught are.
    """
    from tailtrim.analysis.explain import catches  # noqa: PLC0415 - others start without
    from tailtrim.results.experiments import is_experiment, runs_of  # noqa: PLC0415

    if "@" in str(directory) and (chosen := spans.selected(str(directory))):
        watch_explain.explain(
            chosen,
            lambda run: _of_packets(run, interrupts or (), cpu, late_from, trace),
            _lines,
            json=json,
        )
        return
    if found_catches := catches.below(directory):
        _print_catches(found_catches, json=json)
        return
    several = is_experiment(directory)
    for label, run in runs_of(directory):
        found = _explained(run, interrupts or (), cpu, late_from, trace)
        if json and several:
            # A line for each run: one of many hours need not be held until all are done.
            say_json({"run": run.name, "label": label, **found.as_json()}, ensure_ascii=False)
        elif json:
            say_json(found.as_json(), indent=2, ensure_ascii=False)
        else:
            _print(found, f"{run.name} ({label})" if several else "")
        for warning in found.warnings:
            where = f"{run.name}: " if several else ""
            warn(where + warning)


def _print_catches(found: Sequence[Catch], *, json: bool) -> None:
    from tailtrim.publishing.report.cause_wording import packet_sentences  # noqa: PLC0415

    for catch in found:
        if json:
            say_json(catch.as_json(), ensure_ascii=False)
            continue
        tell(f"{catch.target}, {catch.path.name}:")
        say_lines(f"  {line}" for line in packet_sentences(catch.worst))
        if catch.no_trace:
            tell(f"  no trace: {catch.no_trace}")


def _explained(
    run: RunDirectory,
    interrupts: Sequence[Path],
    cpu: int | None,
    late_from: str | None,
    trace: Path | None,
) -> Explanation | WorstPackets:
    from tailtrim.analysis.explain import worst_packets  # noqa: PLC0415 - others start without

    if by_minute(run.path):
        return worst_packets(run, cpu=cpu)
    return _of_packets(run, interrupts, cpu, late_from, trace)


def _of_packets(
    run: RunDirectory,
    interrupts: Sequence[Path],
    cpu: int | None,
    late_from: str | None,
    trace: Path | None,
) -> Explanation:
    from tailtrim.analysis.explain import explain  # noqa: PLC0415 - others start without

    return explain(run, interrupts=interrupts, cpu=cpu, late_from=late_from, trace=trace)


def _print(found: Explanation | WorstPackets, name: str) -> None:
    if name:
        tell(f"{name}:")
    say_lines(f"  {line}" if name and line else line for line in _lines(found))


def _lines(found: Explanation | WorstPackets) -> Iterable[str]:
    from tailtrim.analysis.explain import WorstPackets  # noqa: PLC0415 - others start without
    from tailtrim.analysis.explain.host_explanation import of_packets  # noqa: PLC0415
    from tailtrim.publishing.report.cause_wording import packet_sentences  # noqa: PLC0415
    from tailtrim.publishing.report.terminal.explanation_text import lines  # noqa: PLC0415

    if isinstance(found, WorstPackets):
        return packet_sentences(of_packets(found))
    return lines(found)
