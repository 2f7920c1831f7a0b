"""Matches two captures in PostgreSQL, step for step as the papers do; prints the histogram as JSON.

A reader per capture, both at once, masks the header of every packet and copies it into an unlogged
table; then SQL drops ingress packets whose signature is not unique, joins, and takes nearest-rank
percentiles. ``papers`` gives their eight outputs (histogram, percentiles and worst packets, the
latter two also trimmed, rates, gaps on both sides), each from a join of its own as their scripts
do. ``lean`` joins once, keeps the samples, and gives only histogram and percentiles.

    postgres_pipeline.py INGRESS EGRESS --form lean|papers --socket FOLDER [--skip-s SECONDS]
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]
    Rows = list[tuple[Any, ...]]

SIGNED_BYTES = 64
MAC_ADDRESSES = 12
IPV4_WITHOUT_OPTIONS = b"\x08\x00\x45"
PROTOCOL = 23
CHECKSUMS = {6: 50, 17: 40}
BYTE_ORDERS = {
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
}

# In `lean` a table that the earlier run left, in `papers` a view that goes with its table.
CLEAN = """
    drop table if exists packet cascade;
    drop table if exists sample;
"""

TABLE = "create unlogged table packet (capture text, stamp_ns int8, header bytea)"

SAMPLES = """
    with ingress as (
        select stamp_ns, header
        from (
            select stamp_ns, header, count(*) over (partition by header) as copies
            from packet
            where capture = 'ingress'
        ) as counted
        where copies = 1
    )
    select ingress.stamp_ns as ingress_ns, egress.stamp_ns as egress_ns,
           egress.stamp_ns - ingress.stamp_ns as latency_ns, header
    from ingress join packet as egress using (header)
    where egress.capture = 'egress'
      and egress.stamp_ns > ingress.stamp_ns
      and egress.stamp_ns < ingress.stamp_ns + 5000000000
"""

TRIMMED = """
    with every as materialized (select * from sample)
    select * from every where egress_ns >= (select min(egress_ns) from every) + {trim_ns}
"""

HISTOGRAM = "select latency_ns, count(*) from {source} group by latency_ns order by latency_ns"

PERCENTILES = """
    select percentile_disc(array[0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999])
        within group (order by latency_ns)
    from {source}
"""

WORST = """
    select latency_ns, ingress_ns, egress_ns, encode(header, 'hex')
    from {source} order by latency_ns desc limit 5000
"""

RATES = """
    select capture, stamp_ns / 1000000000 as second, count(*)
    from packet group by capture, second order by capture, second
"""

GAPS = """
    select gap_ns, count(*)
    from (
        select stamp_ns - lag(stamp_ns) over (order by stamp_ns) as gap_ns
        from packet
        where capture = '{capture}'
    ) as gaps
    group by gap_ns
    order by gap_ns
"""


def main() -> None:
    """Run the pipeline once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ingress", type=Path)
    parser.add_argument("egress", type=Path)
    parser.add_argument("--form", choices=("lean", "papers"), required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--skip-s", type=int, default=0)
    arguments = parser.parse_args()
    database = f"host={arguments.socket} user=benchmark dbname=postgres"
    start = time.perf_counter()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(CLEAN)
        connection.execute(TABLE)
        with ProcessPoolExecutor(2) as readers:
            captures = {"ingress": arguments.ingress, "egress": arguments.egress}
            jobs = [readers.submit(load, database, *capture) for capture in captures.items()]
            for job in jobs:
                job.result()
        connection.execute("create index on packet using brin (stamp_ns)")
        connection.execute("analyze packet")
        imported = time.perf_counter()
        answer = lean if arguments.form == "lean" else papers
        histogram, percentiles = answer(connection, arguments.skip_s * 1_000_000_000)
    result = {
        "histogram": histogram,
        "percentiles": percentiles[0][0],
        "note": f"import {imported - start:.2f} s, SQL {time.perf_counter() - imported:.2f} s",
    }
    json.dump(result, sys.stdout)


def lean(connection: Connection, trim_ns: int) -> tuple[Rows, Rows]:
    """Keep the samples of one join; return histogram and percentiles."""
    connection.execute(f"create unlogged table sample as {SAMPLES}".encode())
    trimmed = f"({TRIMMED.format(trim_ns=trim_ns)}) as trimmed" if trim_ns else "sample"
    histogram = rows(connection, HISTOGRAM.format(source=trimmed))
    return histogram, rows(connection, PERCENTILES.format(source=trimmed))


def papers(connection: Connection, trim_ns: int) -> tuple[Rows, Rows]:
    """Evaluate the join for each output that needs it; return histogram and percentiles."""
    connection.execute(f"create view sample as {SAMPLES}".encode())
    trimmed = f"({TRIMMED.format(trim_ns=trim_ns)}) as trimmed"
    histogram = rows(connection, HISTOGRAM.format(source=trimmed))
    percentiles = rows(connection, PERCENTILES.format(source=trimmed))
    rows(connection, PERCENTILES.format(source="sample"))
    rows(connection, WORST.format(source="sample"))
    rows(connection, WORST.format(source=trimmed))
    rows(connection, RATES)
    for capture in ("ingress", "egress"):
        rows(connection, GAPS.format(capture=capture))
    return histogram, percentiles


def rows(connection: Connection, query: str) -> Rows:
    """Fetch all rows of a query."""
    return connection.execute(query.encode()).fetchall()


def load(database: str, name: str, path: Path) -> None:
    """Copy a capture into the table, packet by packet."""
    with (
        psycopg.connect(database) as connection,
        connection.cursor().copy("copy packet from stdin (format binary)") as copy,
    ):
        copy.set_types(["text", "int8", "bytea"])
        for stamp_ns, header in packets(path):
            copy.write_row((name, stamp_ns, header))


def packets(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read stamps and masked headers from a pcap file."""
    with opened(path) as file:
        order, nanoseconds = BYTE_ORDERS[file.read(24)[:4]]
        record = struct.Struct(f"{order}IIII")
        while len(head := file.read(record.size)) == record.size:
            seconds, fraction, captured, _ = record.unpack(head)
            yield seconds * 1_000_000_000 + fraction * nanoseconds, masked(file.read(captured))


def masked(frame: bytes) -> bytes:
    """Return the first bytes without MAC addresses, and IPv4 and L4 checksums zeroed."""
    header = bytearray(frame[:SIGNED_BYTES])
    if header[MAC_ADDRESSES : MAC_ADDRESSES + 3] == IPV4_WITHOUT_OPTIONS:
        header[24:26] = b"\0\0"
        checksum = CHECKSUMS.get(header[PROTOCOL])
        if checksum:
            header[checksum : checksum + 2] = b"\0\0"
    return bytes(header[MAC_ADDRESSES:])


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a capture, through zstd if its name says so."""
    if path.suffix != ".zst":
        with path.open("rb", buffering=1 << 20) as file:
            yield file
        return
    command = ["zstd", "-dcq", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=1 << 20) as unpacking:
        assert unpacking.stdout is not None  # noqa: S101 - Popen made it, for the type checker
        yield unpacking.stdout  # type: ignore[misc]
    if unpacking.returncode:
        raise SystemExit(f"zstd {path}: exit status {unpacking.returncode}")


if __name__ == "__main__":
    main()
