"""Writes a record: every raw measurement, a summary, and the facts needed to repeat it."""

from __future__ import annotations

import csv
import math
from dataclasses import asdict, dataclass, fields
from statistics import median
from typing import TYPE_CHECKING

from measure import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MEASURED = "measured"

#: The program that the others are compared with.
AGENT = "tailtrim-agent (1 core)"

# Blocks of 512 bytes: fewer are a page of a library, not a capture that was not in memory.
NOTED_BLOCKS = 2048

COLUMNS = (
    "program",
    "wall s",
    "CPU s",
    "M pairs/s",
    "per CPU second",
    "anonymous MB",
    "mapped MB",
    "ratio of wall times",
)

RULES = """\
* Whole processes: start, work, exit. The files were read once immediately before each start (warm
  page cache), and each program ran once unmeasured; large `read_blocks` in `raw.csv` (512 bytes
  each) show where that was not enough.
* The programs of a case take turns, so that a disturbance hits all of them. A ratio is the wall
  time of a program over that of `tailtrim-agent` in the same turn.
* Every time stands for a right answer: samples, minimum, maximum and seven quantiles (p50 to
  p99.9999) are right to the nanosecond, or the program, be it tailtrim, is listed as refused. What
  is right is computed without matching (`benchmarks/truth.py`) or known of the published captures.
* DuckDB reads captures that were decoded to uncompressed Parquet before (not timed); tailtrim and
  PostgreSQL start from the captures. PostgreSQL's time and memory include its server; its settings
  are the stock ones but for `SETTINGS` in `benchmarks/cluster.py`. `unique` and `papers` are the
  work as published; `plain` and `lean` are the least that gives the same histogram.
* tailtrim does more in its time than the peers: outcomes, confidence intervals, clusters, gaps,
  delay variation and the worst packets.
* `anonymous` is what a program allocates; `mapped` are pages of files, which the kernel takes back
  when it needs them. Both are the largest of about 20 samples a second. `ru_maxrss_kib` in
  `raw.csv` cannot be less than the size of the script that measures (Linux counts the time before
  exec); `high_water_kib` (VmHWM) has no such floor.
* `fifo`: two generators write while tailtrim reads. Wall time is that of the slowest of the three;
  the column per CPU second is about tailtrim alone.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, or why there is none."""

    case: str
    pairs: int
    program: str
    repetition: int
    status: str
    measurement: Measurement | None
    note: str
    command: str


def folder_for(runs: Path, name: str) -> Path:
    """Return a folder of this name that does not exist yet."""
    candidate, number = runs / name, 1
    while candidate.exists():
        number += 1
        candidate = runs / f"{name}-{number}"
    return candidate


def write(folder: Path, rows: list[Row], facts: dict[str, str], invocation: str) -> None:
    """Write README.md, raw.csv and summary.md to a new folder."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(readme(folder.name, rows, facts, invocation))
    (folder / "summary.md").write_text(summary(rows))
    measured = [field.name for field in fields(Measurement)]
    others = [field.name for field in fields(Row) if field.name != "measurement"]
    with (folder / "raw.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*others[:-2], *measured, *others[-2:]], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            cells = asdict(row)
            cells |= cells.pop("measurement") or {}
            writer.writerow(
                {
                    key: f"{cell:.6f}" if isinstance(cell, float) else cell
                    for key, cell in cells.items()
                }
            )


def readme(name: str, rows: list[Row], facts: dict[str, str], invocation: str) -> str:
    """Say what was run, where and how."""
    commands = dict.fromkeys((row.program, row.command) for row in rows if row.command)
    return "\n".join(
        [
            f"# Benchmark run {name}",
            "",
            "`summary.md` has the medians, `raw.csv` every measurement.",
            "",
            f"    {invocation}",
            "",
            "| | |",
            "|---|---|",
            *(f"| {key} | {value} |" for key, value in facts.items()),
            "",
            "## How it was measured",
            "",
            RULES,
            "## Commands",
            "",
            "The captures of a case such as `60B-1M-file` (60-byte frames, 1,000,000 pairs) come",
            "from `synthesize ingress 1000000 60 > ingress.pcap` and the same with `egress`.",
            "Programs run in the folder of their case; `SCRATCH` is the scratch folder, `DATA` the",
            "folder of the published captures.",
            "",
            *(f"* {program}: `{command}`" for program, command in commands),
            "",
        ]
    )


def summary(rows: list[Row]) -> str:
    """Return a table for each case."""
    lines = ["# Summary", "", "Medians; smallest and largest in brackets.", ""]
    for case in dict.fromkeys(row.case for row in rows):
        of_case = [row for row in rows if row.case == case]
        lines += [
            f"## {case}",
            "",
            f"| {' | '.join(COLUMNS)} |",
            "|---" + "|--:" * (len(COLUMNS) - 1) + "|",
            *(
                _line(name, [row for row in of_case if row.program == name], of_case)
                for name in dict.fromkeys(row.program for row in of_case)
            ),
            "",
            *(f"{note}\n" for note in dict.fromkeys(_case_notes(of_case))),
        ]
    return "\n".join(lines)


def _line(program: str, rows: list[Row], of_case: list[Row]) -> str:
    taken = [(row.repetition, row.measurement) for row in rows if row.measurement is not None]
    if not taken:
        return f"| {program} | {rows[0].status} " + "| " * (len(COLUMNS) - 2) + "|"
    agent_s = {
        row.repetition: row.measurement.wall_s
        for row in of_case
        if row.program == AGENT and row.measurement is not None
    }
    pairs = rows[0].pairs
    measurements = [measurement for _, measurement in taken]
    cpu_s = [measurement.user_s + measurement.sys_s for measurement in measurements]
    cells = [
        _spread([measurement.wall_s for measurement in measurements]),
        f"{median(cpu_s):.3f}",
        f"{pairs / median(measurement.wall_s for measurement in measurements) / 1e6:.3f}",
        f"{pairs / median(cpu_s) / 1e6:.3f}",
        f"{median(measurement.anonymous_kib for measurement in measurements) * 1024 / 1e6:.1f}",
        f"{median(measurement.file_mapped_kib for measurement in measurements) * 1024 / 1e6:.1f}",
        "1"
        if program == AGENT
        else _spread([one.wall_s / agent_s[turn] for turn, one in taken if turn in agent_s]),
    ]
    return f"| {program} | " + " | ".join(cells) + " |"


def _spread(numbers: list[float]) -> str:
    if not numbers:
        return ""
    # About four digits, but no finer than milliseconds.
    digits = min(3, max(0, 3 - math.floor(math.log10(median(numbers)))))
    return f"{median(numbers):.{digits}f} ({min(numbers):.{digits}f}–{max(numbers):.{digits}f})"  # noqa: RUF001


def _case_notes(rows: list[Row]) -> Iterable[str]:
    measured = [row for row in rows if row.measurement is not None]
    disk = {
        row.program
        for row in measured
        if row.measurement and row.measurement.read_blocks >= NOTED_BLOCKS
    }
    if disk:
        yield f"Read from the disk in spite of the warm page cache: {', '.join(sorted(disk))}."
    yield from (
        f"{row.program}: {row.note}." for row in measured if row.note and row.repetition == 1
    )
