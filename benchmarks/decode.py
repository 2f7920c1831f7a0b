"""Decodes a synthetic capture to Parquet for engines that read no captures; not timed.

Columns: ``stamp_ns`` and the signature as two signed 64-bit integers, all int64. All records of a
synthetic capture have the same size, so numpy can view the file as an array. The signature mixes
the sequence number twice (the finalizer of SplitMix64, with two seeds): as random as the hash of
the frame that tailtrim takes, and unique as well.

    decode.py CAPTURE FRAME_BYTES PARQUET
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from captures import FILE_HEADER_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

NANOSECOND_MAGIC = bytes.fromhex("4d3cb2a1")
SEQUENCE_OFFSET = 42
# Threads of a reader share the work by row groups: as small as those that DuckDB writes.
ROW_GROUP = 122_880
CHUNK = 8 * ROW_GROUP
SCHEMA = pa.schema([(name, pa.int64()) for name in ("stamp_ns", "high", "low")])
SEEDS = {"high": 0x9E3779B97F4A7C15, "low": 0xD1B54A32D192ED03}


def main() -> None:
    """Decode one capture."""
    capture, frame_bytes, parquet = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    records = view(capture, frame_bytes)
    # Neither compressed nor encoded: the fastest form to scan.
    with pq.ParquetWriter(parquet, SCHEMA, compression="none", use_dictionary=False) as writer:
        for start in range(0, len(records), CHUNK):
            chunk = records[start : start + CHUNK]
            if (chunk["captured"] != frame_bytes).any():
                raise SystemExit(f"{capture}: a record is not {frame_bytes} bytes long")
            columns = {"stamp_ns": stamps_ns(chunk)} | {
                name: mix(chunk["sequence"], seed) for name, seed in SEEDS.items()
            }
            writer.write_table(pa.table(columns, schema=SCHEMA), row_group_size=ROW_GROUP)


def view(capture: Path, frame_bytes: int) -> NDArray[Any]:
    """Map the records of a capture as an array."""
    with capture.open("rb") as file:
        if file.read(4) != NANOSECOND_MAGIC:
            raise SystemExit(f"{capture}: no nanosecond pcap of this byte order")
    record = np.dtype(
        [
            ("seconds", "<u4"),
            ("nanoseconds", "<u4"),
            ("captured", "<u4"),
            ("length", "<u4"),
            ("headers", f"V{SEQUENCE_OFFSET}"),
            ("sequence", "<u8"),
            ("rest", f"V{frame_bytes - SEQUENCE_OFFSET - 8}"),
        ]
    )
    return np.memmap(capture, dtype=record, mode="r", offset=FILE_HEADER_BYTES)


def stamps_ns(records: NDArray[Any]) -> NDArray[np.int64]:
    """Return the stamps of records."""
    stamps: NDArray[np.int64] = records["seconds"].astype(np.int64) * 1_000_000_000
    stamps += records["nanoseconds"]
    return stamps


def mix(sequence: NDArray[np.uint64], seed: int) -> NDArray[np.int64]:
    """Turn sequence numbers into integers that look random, one to one."""
    value = sequence.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (value ^ (value >> np.uint64(31))).view(np.int64)


if __name__ == "__main__":
    main()
