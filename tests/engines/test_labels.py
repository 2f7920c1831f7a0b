"""Flow and sequence number, where packets say them: decoded, loaded and asked for."""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from decoded_rows import rows
from random_captures import START_NS, write

import tailtrim
from tailtrim.analysis import engines
from tailtrim.analysis.decode import Decoded, decode
from tailtrim.analysis.engines import EngineOptions, binary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytest.importorskip("ibis", reason="engines need ibis-framework")

FLOWS = 7
PACKETS = 2_000
#: Packets that never left: of flow 3 more than of the others.
LOST = {number for number in range(PACKETS) if number % 101 == 0 or number % 70 == 3}
LOSS_OF_FLOWS = """
    SELECT flow, count(*) AS lost FROM packet AS entered
    WHERE capture = {ingress} AND sequence IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM packet AS departed
        WHERE departed.capture = {egress} AND departed.flow = entered.flow
        AND departed.sequence = entered.sequence)
    GROUP BY flow ORDER BY flow
"""


def said(number: int) -> tuple[int | None, int | None]:
    """Return what the packet of a number says of itself."""
    return (number % FLOWS, number) if number % 5 else (None, None)


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Decoded:
    folder = tmp_path_factory.mktemp("labels")
    entered = [(START_NS + number * 1_000_000, number) for number in range(PACKETS)]
    left = [(stamp_ns + 4_000, number) for stamp_ns, number in entered if number not in LOST]
    captures = [
        write(folder / "ingress.pcap", entered, flows=FLOWS),
        write(folder / "egress.pcap", left, flows=FLOWS),
    ]
    return decode(captures, folder / "decoded", buckets=4)


def losses(rows: Sequence[dict[str, int]]) -> dict[int, int]:
    return {row["flow"]: row["lost"] for row in rows}


EXPECTED = Counter(number % FLOWS for number in LOST if number % 5)


def test_what_packets_say_is_decoded(decoded: Decoded) -> None:
    assert [row[-2:] for row in rows(decoded, 0)] == [said(number) for number in range(PACKETS)]
    left = [number for number in range(PACKETS) if number not in LOST]
    assert [row[-2:] for row in rows(decoded, 1)] == [said(number) for number in left]


def test_moonsniff_has_a_number(tmp_path: Path) -> None:
    capture = tmp_path / "one.mscap"
    capture.write_bytes(b"".join(struct.pack("<QI", START_NS + n, 5 + n) for n in range(9)))
    found = rows(decode([capture], tmp_path / "decoded", buckets=2), 0)
    assert [row[-2:] for row in found] == [(None, 5 + n) for n in range(9)]


def test_loss_by_flow_on_files(decoded: Decoded) -> None:
    asked = LOSS_OF_FLOWS.format(ingress=0, egress=1)
    with engines.connect("duckdb") as at:
        batches = engines.query(at, asked, [decoded.path])
        assert losses([row for batch in batches for row in batch.to_pylist()]) == EXPECTED


def test_loss_by_flow_on_a_server(decoded: Decoded, postgres_dsn: str) -> None:
    with engines.connect("postgres", EngineOptions(server=postgres_dsn)) as at:
        at.load(decoded)
        asked = f"SELECT capture FROM capture WHERE dataset = '{decoded.id}' ORDER BY number"  # noqa: S608
        ingress, egress = [
            row["capture"] for batch in engines.query(at, asked) for row in batch.to_pylist()
        ]
        asked = LOSS_OF_FLOWS.format(ingress=ingress, egress=egress)
        found = [row for batch in engines.query(at, asked) for row in batch.to_pylist()]
        assert losses(found) == EXPECTED
        summary = engines.analyze(at, decoded).summary.text
    captures = [captured.name for captured in decoded.captures]
    assert summary == tailtrim.analyze(*captures).summary.text


def test_nulls_in_what_postgres_is_sent() -> None:
    batch = pa.record_batch({"one": [1, 2, 3], "other": [None, 5, None]})
    one = [struct.pack(">hiq", 2, 8, number) for number in (1, 2, 3)]
    null, five = struct.pack(">i", -1), struct.pack(">iq", 8, 5)
    assert binary.encode(batch) == one[0] + null + one[1] + five + one[2] + null
