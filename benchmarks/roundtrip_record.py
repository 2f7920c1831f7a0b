"""The record of round trips: its rows, and its tables."""

from __future__ import annotations

import csv
import re
import statistics
from collections import defaultdict
from dataclasses import astuple, dataclass
from pathlib import Path

import machine
from roundtrip_peers import ALONE, HALF, KERNEL, LATENCY_PPS, USER

from tailtrim.laboratory.nodes.agent import program

#: Numbers that are reported of a reflector.
SUSTAINED, MOST = "replies/s, 99.9 % answered", "replies/s"
QUANTILES = {"min": 0.0, "p50": 0.5, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one turn, or why there is none."""

    group: str
    client: str
    reflector: str
    definition: str
    turn: int
    what: str
    value: float | None
    note: str = ""


def read(path: Path) -> list[Row]:
    """Return what earlier turns have measured."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = []
        for raw in csv.DictReader(file):
            texts = (raw["group"], raw["client"], raw["reflector"], raw["definition"])
            value = float(raw["value"]) if raw["value"] else None
            rows.append(Row(*texts, int(raw["turn"]), raw["what"], value, raw["note"]))
        return rows


def write(place: Path, rows: list[Row], core_count: int) -> None:
    """Write the record."""
    place.mkdir(parents=True, exist_ok=True)
    columns = list(Row.__slots__)
    with (place / "roundtrip.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for row in rows:
            cells = list(astuple(row))
            cells[6] = "" if row.value is None else f"{row.value:.3f}"
            table.writerow(cells)
    facts = machine.facts(Path(__file__).resolve().parent.parent, Path(program()), core_count)
    kept = ("processor", "memory", "kernel", "tailtrim-agent")
    lines = ["# Round trips beside peers", ""]
    lines += ["Medians of turns, extremes in brackets.", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {facts[key]} |" for key in kept]
    for definition in (USER, ALONE, HALF, KERNEL):
        if by := [row for row in rows if row.definition == definition]:
            lines += ["", f"## {definition}, µs, {LATENCY_PPS:,} probes/s", "", *latency_table(by)]
    lines += rates(rows)
    told = dict.fromkeys((r.client, r.note) for r in rows if r.value is None)
    lines += ["", *(f"* {client}: {note}" for client, note in told)]
    foreign = [int(n) for r in rows for n in re.findall(r"others took (\d+) %", r.note)]
    if foreign:
        share = f"{statistics.median(foreign):.0f} % of a CPU, {max(foreign)} % at most"
        lines += ["", f"Others on the machine took {share} (median and maximum of measurements)."]
    (place / "roundtrip.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def rates(rows: list[Row]) -> list[str]:
    """Return the tables of rates."""
    lines = []
    asked = [row for row in rows if row.group == "sustained"]
    if asked:
        lines += ["", "## Round trips a second of which 99.9 % are answered"]
        lines += ["", "| client | reflector | | |", "|---|---|--:|---|"]
    for (client, reflector), same in grouped(asked).items():
        lines.append(f"| {client} | {reflector} | {spread(same, 0)} | {same[-1].note} |")
    answered = [row for row in rows if row.group == "reflectors"]
    if answered:
        lines += ["", "## Replies a second of a reflector on one CPU"]
        lines += ["", "| reflector | asked by | 99.9 % answered | most |", "|---|---|--:|--:|"]
    for (client, reflector), same in grouped(answered).items():
        cells = [spread([r for r in same if r.what == what], 0) for what in (SUSTAINED, MOST)]
        lines.append(f"| {reflector} | {client} | {' | '.join(cells)} |")
    return lines


def grouped(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return rows by client and reflector."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.client, row.reflector].append(row)
    return found


def latency_table(rows: list[Row]) -> list[str]:
    """Return a table, the lowest median first; the lowest of a column is in bold."""
    names = list(QUANTILES)
    by = grouped(rows)

    def middle(pairing: tuple[str, str], what: str) -> float:
        return statistics.median(row.value or 0.0 for row in by[pairing] if row.what == what)

    order = sorted(by, key=lambda one: middle(one, "p50"))
    lines = [f"| client | reflector | {' | '.join(names)} |", "|---|---|" + "--:|" * len(names)]
    for one in order:
        cells = []
        for what in names:
            text = spread([row for row in by[one] if row.what == what], 1)
            lowest = middle(one, what) <= min(middle(other, what) for other in by)
            cells.append(f"**{text}**" if lowest else text)
        lines.append(f"| {' | '.join((*one, *cells))} |")
    return lines


def spread(rows: list[Row], digits: int) -> str:
    """Return the median, and the extremes in brackets."""
    values = [row.value for row in rows if row.value is not None]
    if not values:
        return ""
    text = f"{statistics.median(values):,.{digits}f}"
    if len(values) > 1:
        text += f" ({min(values):,.{digits}f}-{max(values):,.{digits}f})"
    return text
