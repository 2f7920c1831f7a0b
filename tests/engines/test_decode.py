"""``decode``: files that exist are whole, and interrupted work is completed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from decoded_rows import rows
from random_captures import START_NS, Trouble, pair, write

from tailtrim.analysis.decode import Decoded, decode, decoding
from tailtrim.analysis.decode.dataset import COLUMNS, LABEL
from tailtrim.errors import DecodedError, TailtrimError

SCHEMA = Path(__file__).parents[2] / "schema" / "packet.toml"


def test_columns_are_those_of_the_schema(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    decoded = decode(testpmd, tmp_path / "decoded", buckets=4)
    columns = tomllib.loads(SCHEMA.read_text())["column"]
    described = [(one["name"], one["type"], one.get("nullable", False)) for one in columns]
    assert tuple(name for name, _, _ in described) == COLUMNS
    assert tuple(name for name, _, nullable in described if nullable) == LABEL
    for number in (0, 1):
        for path in decoded.files(number):
            found = pq.read_schema(path)
            assert [(one.name, str(one.type), one.nullable) for one in found] == described


def test_what_depends_on_the_order_of_the_file(tmp_path: Path) -> None:
    # Bursts of four frames, of which some are written too late.
    stamps_ns = [
        START_NS + burst * 100_000 + frame * 100
        for burst in range(500)
        for frame in ((0, 2, 1, 3) if burst % 5 == 0 else range(4))
    ]
    capture = write(tmp_path / "one.pcap", list(zip(stamps_ns, range(2_000), strict=True)))
    found = rows(decode([capture], tmp_path / "decoded", buckets=8), 0)
    largest_ns = 0
    for index, (stamp_ns, row) in enumerate(zip(stamps_ns, found, strict=True)):
        largest_ns = max(largest_ns, stamp_ns)
        assert (*row[:3], row[7]) == (index, stamp_ns, largest_ns, index % 4)


def test_packets_of_a_signature_share_a_bucket(tmp_path: Path) -> None:
    captures = pair(tmp_path, 5, Trouble(packets=2_000, reused=0.2))
    decoded = decode(captures, tmp_path / "decoded", buckets=8)
    bucket_of: dict[tuple[int, int], str] = {}
    for path in [*decoded.files(0), *decoded.files(1)]:
        with path.open("rb") as file:
            columns = pq.ParquetFile(file).read().to_pydict()
        for signature in zip(columns["signature_high"], columns["signature_low"], strict=True):
            assert bucket_of.setdefault(signature, path.parent.name) == path.parent.name
    assert len(set(bucket_of.values())) == 8


def test_parts_make_no_difference(
    testpmd: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = decode(testpmd, tmp_path / "whole", buckets=2)
    monkeypatch.setattr(decoding, "_ROWS_OF_PART", 7_000)
    parted = decode(testpmd, tmp_path / "parted", buckets=2)
    assert len(list(parted.files(0))) == 12
    for number in (0, 1):
        assert rows(parted, number) == rows(whole, number)


PROGRAM = """
import sys
from tailtrim.analysis.decode import decode, decoding
decoding._ROWS_OF_PART = 5_000
decode(sys.argv[1:3], sys.argv[3], buckets=2)
"""


@pytest.mark.parametrize("delay_s", [0.1, 0.2, 0.3, 0.4, 0.6])
def test_a_killed_decoder_goes_on(tmp_path: Path, delay_s: float) -> None:
    captures = pair(tmp_path, 6, Trouble(packets=60_000, step_ns=1_000))
    out = tmp_path / "decoded"
    command = [sys.executable, "-c", PROGRAM, *map(str, captures), str(out)]
    process = subprocess.Popen(command, env={**os.environ})
    end_s = time.monotonic() + 30
    while not (out / ".decode").exists() and time.monotonic() < end_s and process.poll() is None:
        time.sleep(0.005)
    time.sleep(delay_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if not (out / "decode.json").exists():
        with pytest.raises(DecodedError, match="not a decoded directory"):
            Decoded(out)
    subprocess.run(command, check=True)
    whole = decode(captures, tmp_path / "whole", buckets=2)
    for number in (0, 1):
        assert rows(Decoded(out), number) == rows(whole, number)
    assert not (out / ".decode").exists()
    assert not list(out.rglob(".*.parquet"))


def test_nothing_else_is_replaced(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DecodedError, match=r"nothing .*is replaced"):
        decode(testpmd, tmp_path)
    decode(testpmd, tmp_path / "decoded")
    with pytest.raises(DecodedError, match="other captures"):
        decode([testpmd[0]], tmp_path / "decoded")
    with pytest.raises(DecodedError, match="other captures"):
        decode(testpmd, tmp_path / "decoded", masks=["nat"])
    assert decode(testpmd, tmp_path / "decoded").captures[0].rows == 40_000


def test_an_interrupted_one_of_something_else(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(
        write(tmp_path / "one.pcap", [(10**18, 1), (10**18 + 5, 2)]).read_bytes()[:-3]
    )
    with pytest.raises(TailtrimError, match="ends"):
        decode([broken], tmp_path / "decoded")
    with pytest.raises(DecodedError, match=r"interrupted .*other captures"):
        decode(testpmd, tmp_path / "decoded")


@pytest.mark.parametrize("buckets", [0, 3, 1024])
def test_buckets_that_make_no_sense(
    testpmd: tuple[Path, Path], tmp_path: Path, buckets: int
) -> None:
    with pytest.raises(ValueError, match="power of two"):
        decode(testpmd, tmp_path / "decoded", buckets=buckets)
