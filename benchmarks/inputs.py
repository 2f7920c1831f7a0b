"""Times the agent on captures of the kinds that people have, beside programs that only read them.

    python benchmarks/inputs.py [--pairs 3000000] [--turns 3] [--scratch DIR] [--out DIR]

All captures have the same packets a second, but other frames, formats and compressions. Writes
``inputs.md`` and ``inputs.csv`` into ``runs/<date>-<machine>-inputs/``. The agent matches both
files of a pair and computes everything; the others read both, one after the other: Wireshark's
reader (``capinfos -c``, ``editcap`` to nowhere), and ``cat``, ``zcat`` or ``zstdcat`` to ``wc -c``.
Programs that are not installed, or fail at a kind, are left out there.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import machine
import numpy as np
from captures import SIDES, pinned, warm
from ending import end_with
from gate import MILLION, taken_s
from session import ROOT

from tailtrim.laboratory.nodes.agent import program

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = Path(__file__).resolve().parent / "runs"
#: Bytes of frames, in turns: the usual mix has 7 small, 4 middle and 1 large ones.
SMALL, LARGE = (60,), (1514,)
MIX = (60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 590, 60)
INTERVAL_NS, LATENCY_NS, JITTER_NS = 1_000, 4_000, 512
BEGIN_NS = 1_700_000_000_000_000_000
#: Packets that are written at once, and bytes of a frame of zstd where there are many.
CHUNK, FRAME_BYTES = 120_000, 64 << 20
ETHERNET = bytes.fromhex("020000000002 020000000001")
TAG = bytes.fromhex("8100 0064")
#: Type and length of a section header and an interface with stamps in ns, little-endian.
SECTION = bytes.fromhex(
    "0a0d0d0a 1c000000 4d3c2b1a 01000000 ffffffffffffffff 1c000000"
    "01000000 20000000 01000000 00000400 09000100 09000000 00000000 20000000"
)
HEADER = bytes.fromhex("4d3cb2a1 02000400 00000000 00000000 00000400 01000000")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of capture."""

    name: str
    frames: tuple[int, ...] = SMALL
    tagged: bool = False
    blocks: bool = False
    #: Command that compresses standard input, and whether each part becomes a frame of its own.
    compression: tuple[str, ...] = ()
    many: bool = False

    @property
    def reader(self) -> list[str]:
        """Program that writes its bytes to standard output."""
        return [{"gzip": "zcat", "zstd": "zstdcat"}.get("".join(self.compression[:1]), "cat")]


KINDS = (
    Kind("pcap, 60 bytes"),
    Kind("pcap, 60 bytes and a VLAN tag", tagged=True),
    Kind("pcap, mix of 60, 590 and 1,514 bytes", MIX),
    Kind("pcap, 1,514 bytes", LARGE),
    Kind("pcapng, 60 bytes", blocks=True),
    Kind("pcap, 60 bytes, gzip", compression=("gzip", "-1")),
    Kind("pcap, 60 bytes, zstd, one frame", compression=("zstd", "-q", "-3")),
    Kind("pcap, 60 bytes, zstd, many frames", compression=("zstd", "-q", "-3"), many=True),
)


def layout(kind: Kind) -> np.dtype[Any]:
    """Return the layout of one turn of frames with their record headers."""
    fields: list[tuple[str, str]] = []
    for number, size in enumerate(kind.frames):
        head, ethernet = "V28" if kind.blocks else "V16", 14 + 4 * kind.tagged
        fields += [(f"header{number}", head), (f"ethernet{number}", f"V{ethernet}")]
        # IP and UDP take 28 bytes. The rest behind the number is random, as if encrypted.
        fields += [(f"ip{number}", "V28"), (f"number{number}", "<u8")]
        fields += [(f"rest{number}", f"V{size - 14 - 28 - 8}")]
        if kind.blocks:
            fields += [(f"end{number}", f"V{-(ethernet + size - 14) % 4 + 4}")]
    return np.dtype(fields)


def records(kind: Kind, first: int, turns: int, side: str) -> np.ndarray[Any, Any]:
    """Return so many turns of records, from a packet on."""
    table = np.zeros(turns, layout(kind))
    # The same on both sides.
    random = np.random.default_rng(first)
    for place, size in enumerate(kind.frames):
        rest = size - 14 - 28 - 8
        table[f"rest{place}"] = np.frombuffer(random.bytes(turns * rest), f"V{rest}")
        number = first + place + np.arange(turns, dtype=np.uint64) * len(kind.frames)
        stamp_ns = BEGIN_NS + number * INTERVAL_NS
        if side == "egress":
            # Later by less than packets are apart: they leave in their order.
            stamp_ns += LATENCY_NS + number * 0x9E3779B1 % JITTER_NS
        captured = size + 4 * kind.tagged
        words = np.zeros((turns, 7 if kind.blocks else 4), "<u4")
        if kind.blocks:
            total = 32 + captured + -captured % 4
            fields = [6, total, 0, stamp_ns >> 32, stamp_ns & 0xFFFFFFFF, captured, captured]
            end = np.zeros((turns, -captured % 4 + 4), "u1")
            end[:, -4:] = np.frombuffer(np.uint32(total).tobytes(), "u1")
            table[f"end{place}"] = end.view(f"V{end.shape[1]}")[:, 0]
        else:
            fields = [stamp_ns // 10**9, stamp_ns % 10**9, captured, captured]
        for column, value in enumerate(fields):
            words[:, column] = value
        table[f"header{place}"] = words.view(f"V{4 * words.shape[1]}")[:, 0]
        ethernet = ETHERNET + TAG * kind.tagged + b"\x08\x00"
        table[f"ethernet{place}"] = np.void(ethernet)
        length = (size - 14).to_bytes(2, "big")
        ip = b"\x45\x00" + length + bytes.fromhex("0000 4000 40 11 0000 c6120001 c6130001")
        udp = bytes.fromhex("2710 4e20") + (size - 34).to_bytes(2, "big") + b"\0\0"
        table[f"ip{place}"] = np.void(ip + udp)
        table[f"number{place}"] = number
    return table


def write(kind: Kind, side: str, count: int, path: Path) -> int:
    """Write a capture; return its bytes before compression."""
    turns = CHUNK // len(kind.frames)
    size, first, begun = 0, 0, SECTION if kind.blocks else HEADER
    with path.open("wb") as file:

        def packed(raw: bytes) -> None:
            subprocess.run(kind.compression, input=raw, stdout=file, check=True)

        waiting = bytearray()
        while first < count:
            raw = begun + records(kind, first, turns, side).tobytes()
            begun, first, size = b"", first + turns * len(kind.frames), size + len(raw)
            if kind.compression:
                waiting += raw
            else:
                file.write(raw)
            if kind.many and len(waiting) >= FRAME_BYTES:
                packed(bytes(waiting))
                waiting.clear()
        if waiting:
            packed(bytes(waiting))
        file.flush()
        os.fsync(file.fileno())
    return size


@dataclass(frozen=True, slots=True)
class Row:
    """Time of a program on a pair of captures of one kind."""

    kind: str
    program: str
    turn: int
    wall_s: float
    pairs: int
    bytes: int


def programs(kind: Kind, captures: list[Path]) -> dict[str, list[str]]:
    """Return the commands that are timed."""
    cores = machine.cores()[-2:]
    names = list(map(str, captures))
    analyze = [program(), "analyze", "--skip", "0", "--jobs"]
    both = "for file; do {} ; done"

    def each(command: str) -> list[str]:
        return [*pinned(cores), "sh", "-c", both.format(command), "sh", *names]

    found = {
        "tailtrim, one core": [*pinned(cores[-1:]), *analyze, "1", *names],
        "tailtrim, two cores": [*pinned(cores), *analyze, "2", *names],
        "cat, zcat, zstdcat": each(f'{kind.reader[0]} "$file" | wc -c'),
        "capinfos -c": each('capinfos -c "$file"'),
        "editcap": each('editcap "$file" /dev/null'),
    }
    needed = {"capinfos -c": "capinfos", "editcap": "editcap", "cat, zcat, zstdcat": kind.reader[0]}
    return {
        name: command
        for name, command in found.items()
        if name not in needed or shutil.which(needed[name])
    }


def reads(command: list[str]) -> bool:
    """Whether a program ends well; Wireshark's do not at a zstd capture of several frames."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def measured(kind: Kind, count: int, turns: int, scratch: Path) -> Iterator[Row]:
    """Write captures of a kind and time all programs on them, every other turn backwards."""
    captures = [scratch / f"{side}.pcap" for side in SIDES]
    size = sum(write(kind, side, count, path) for side, path in zip(SIDES, captures, strict=True))
    timed = {
        name: command
        for name, command in programs(kind, captures).items()
        if name.startswith("tailtrim") or reads(command)
    }
    told = subprocess.run(
        timed["tailtrim, one core"], check=True, stdout=subprocess.PIPE, text=True
    )
    samples = json.loads(told.stdout)["samples"]
    if samples < count:
        raise SystemExit(f"error: {kind.name}: {samples:,} of {count:,} pairs matched")
    warm(captures)
    for turn in range(1, turns + 1):
        for name, command in list(timed.items())[:: 1 if turn % 2 else -1]:
            yield Row(kind.name, name, turn, taken_s(command), samples, size)
    for path in captures:
        path.unlink()


def table(rows: list[Row]) -> str:
    """Return the medians: pairs and bytes a second."""
    names = list(dict.fromkeys(row.program for row in rows))
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for kind in dict.fromkeys(row.kind for row in rows):
        cells = []
        for name in names:
            chosen = [row for row in rows if (row.kind, row.program) == (kind, name)]
            if not chosen:
                cells.append("")
                continue
            wall_s = statistics.median(row.wall_s for row in chosen)
            rate, volume = chosen[0].pairs / wall_s / MILLION, chosen[0].bytes / wall_s / 1e9
            cells.append(f"{rate:.1f} M, {volume:.2f} GB")
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description="Kinds of captures beside readers of others.")
    parser.add_argument("--pairs", type=int, default=3 * MILLION)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=None, metavar="DIR")
    parser.add_argument("--out", type=Path, default=None, metavar="DIR")
    arguments = parser.parse_args()
    name = f"{datetime.now(tz=UTC):%Y-%m-%d}-{machine.name(len(machine.cores()))}-inputs"
    place = arguments.out or RUNS / name
    place.mkdir(parents=True, exist_ok=True)
    facts = machine.facts(ROOT, Path(program()), len(machine.cores()))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tailtrim-inputs-", dir=arguments.scratch) as scratch:
        for kind in KINDS:
            for row in measured(kind, arguments.pairs, arguments.turns, Path(scratch)):
                print(f"{row.kind}: {row.program}: {row.wall_s:.3f} s", file=sys.stderr)
                rows.append(row)
    with (place / "inputs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row.__slots__)
        writer.writerows([getattr(row, key) for key in Row.__slots__] for row in rows)
    shown = ("processor", "kernel", "load average at the start", "tailtrim-agent", "zstd")
    about = "".join(f"| {key} | {facts[key]} |\n" for key in shown)
    title = (
        "# Kinds of captures\n\nPairs of packets and bytes (decompressed, of both files) a second"
    )
    heading = f"{title}, medians of {arguments.turns} turns.\n\n| | |\n|---|---|\n"
    text = f"{heading}{about}\n{table(rows)}\n"
    (place / "inputs.md").write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    end_with(main)
