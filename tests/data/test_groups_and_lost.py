"""Groups of packets by a field, and the frames of lost packets."""

from __future__ import annotations

import csv
import json
import random
import struct
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import tailtrim
from tailtrim.analysis.groups import FIELDS, by
from tailtrim.analysis.lost import clusters
from tailtrim.cli.application import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SCHEMA = Path(__file__).parents[2] / "schema"
T0, APART_NS, COUNT = 1_700_000_000_000_000_000, 20_000, 3_000


def frame(number: int, *, ttl: int = 64, back: bool = False) -> bytes:
    """Return a datagram in a VLAN; VLAN, DSCP and ports follow from its number."""
    vlan, dscp, port = 10 + number % 3, (0, 46)[number % 5 == 0], 4_000 + number % 20
    payload = struct.pack(">HHHHQ", 1_000, port, 16 + 40, 0, number) + bytes(40)
    ends = [bytes([10, 0, 0, 1]), bytes([10, 0, 1, number % 7])]
    addresses = b"".join(reversed(ends) if back else ends)
    head = struct.pack(">BBHHHBBH", 0x45, dscp << 2, 20 + len(payload), 0, 0, ttl, 17, 0)
    tag = struct.pack(">HHH", 0x8100, vlan, 0x0800)
    return bytes(12) + tag + head + addresses + payload


def capture(path: Path, packets: Iterable[tuple[int, bytes]]) -> Path:
    """Write packets with their stamps in ns, in order of time."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for stamp_ns, data in sorted(packets):
            file.write(struct.pack("<IIII", *divmod(stamp_ns, 10**9), len(data), len(data)) + data)
    return path


class Pair:
    """Two captures of packets of which some were lost, and all latencies."""

    def __init__(self, folder: Path) -> None:
        draw = random.Random(5)  # noqa: S311 - latencies, not secrets
        begins = draw.sample(range(100, COUNT - 100), 12)
        lost = {begin + k for begin in begins for k in range(draw.randint(1, 9))}
        self.lost = sorted(lost)
        self.latency_ns = {n: draw.randint(3_000, 90_000) for n in range(COUNT) if n not in lost}
        at = [T0 + n * APART_NS for n in range(COUNT)]
        self.ingress = capture(folder / "in.pcap", [(at[n], frame(n)) for n in range(COUNT)])
        left = [(at[n] + ns, frame(n, ttl=63)) for n, ns in self.latency_ns.items()]
        self.egress = capture(folder / "out.pcap", left)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("pair"))


VALUES: dict[str, Callable[[int], str]] = {
    "vlan": lambda n: str(10 + n % 3),
    "dscp": lambda n: "46" if n % 5 == 0 else "0",
    "flow": lambda n: f"udp 10.0.0.1 1000 > 10.0.1.{n % 7} {4_000 + n % 20}",
    "source": lambda _: "10.0.0.1",
    "destination": lambda n: f"10.0.1.{n % 7}",
    "port": lambda n: str(4_000 + n % 20),
    "protocol": lambda _: "17",
}


@pytest.mark.parametrize("field", FIELDS)
def test_groups_are_those_of_the_field_and_add_up(pair: Pair, field: str) -> None:
    total = tailtrim.analyze(pair.ingress, pair.egress, skip_s=0).summary
    groups = by(pair.ingress, pair.egress, f"{field}:5", skip_s=0)
    packets = Counter(VALUES[field](n) for n in range(COUNT))
    assert len(groups) == min(5, len(packets)) + 1
    assert groups[-1].value is None
    largest = sorted(packets.values(), reverse=True)[:5]
    assert [group.summary.ingress.packets for group in groups[:-1]] == largest
    for group in groups[:-1]:
        of = [ns for n, ns in pair.latency_ns.items() if VALUES[field](n) == group.value]
        assert group.summary.samples == len(of)
        assert (group.summary.latency_ns.min, group.summary.latency_ns.max) == (min(of), max(of))
    for outcome in ("packets", "matched", "lost", "cut"):
        parts = [getattr(group.summary.ingress, outcome) for group in groups]
        assert sum(parts) == getattr(total.ingress, outcome), outcome


def test_lost_packets_are_found_with_frame_flow_and_cluster(pair: Pair, tmp_path: Path) -> None:
    out = tmp_path / "run"
    analysis = tailtrim.analyze(pair.ingress, pair.egress, skip_s=0, keep_lost=True, out=out)
    assert analysis.summary.ingress.lost == len(pair.lost) == analysis.lost.num_rows
    rows = analysis.lost.to_pydict()
    assert rows["frame"] == [n + 1 for n in pair.lost]
    assert rows["ingress_ns"] == [T0 + n * APART_NS for n in pair.lost]
    assert rows["destination"] == [f"10.0.1.{n % 7}" for n in pair.lost]
    assert rows["destination_port"] == [4_000 + n % 20 for n in pair.lost]
    starts = [n for n in pair.lost if n - 1 not in pair.lost]
    found = clusters(analysis.lost)
    assert sorted(one.first_frame - 1 for one in found) == starts
    assert [one.packets for one in found] == sorted((one.packets for one in found), reverse=True)
    assert tailtrim.RunDirectory(out).table("lost").equals(analysis.lost)


def test_columns_of_lost_packets(pair: Pair) -> None:
    described = tomllib.loads((SCHEMA / "lost.toml").read_text())["column"]
    schema = tailtrim.analyze(pair.ingress, pair.egress, skip_s=0, keep_lost=True).lost.schema
    types = {"int64": pa.int64(), "string": pa.string()}
    columns = [(one["name"], types[one["type"]], one.get("nullable", False)) for one in described]
    assert [(one.name, one.type, one.nullable) for one in schema] == columns


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_groups_and_lost_packets_of_a_direction(direction: str, tmp_path: Path) -> None:
    is_back = direction == "reverse"
    lost = {False: (100, 101, 200), True: (50, 300, 301)}
    # Side, stamp, number and whether it comes back, of each packet of both captures.
    seen = [
        (side, T0 + n * APART_NS + at_ns, n, back)
        for n in range(COUNT)
        for back, entered, entered_ns, left_ns in ((False, 0, 0, 5_000), (True, 1, 9_000, 16_000))
        for side, at_ns in ((entered, entered_ns), (1 - entered, left_ns))
        if side == entered or n not in lost[back]
    ]
    sides = [sorted((at, n, back) for one, at, n, back in seen if one == side) for side in (0, 1)]
    paths = [
        capture(tmp_path / name, [(at, frame(n, back=back)) for at, n, back in side])
        for name, side in zip(("in.pcap", "out.pcap"), sides, strict=True)
    ]
    found = tailtrim.analyze(*paths, direction=direction, keep_lost=True, by="flow:3")
    assert found.summary.samples == COUNT - 3
    assert sum(group.summary.ingress.packets for group in found.groups) == COUNT
    assert sum(group.summary.samples for group in found.groups) == COUNT - 3
    # The numbers are those of the whole capture; packets of the other direction end no cluster.
    entered = [(n, back) for _, n, back in sides[is_back]]
    frames = [entered.index((n, is_back)) + 1 for n in lost[is_back]]
    assert found.lost["frame"].to_pylist() == frames
    assert [one.packets for one in clusters(found.lost)] == [2, 1]


@pytest.mark.parametrize("asked", [{"by": "vlan"}, {"keep_lost": True}])
@pytest.mark.parametrize("changed", [{"in_order": True}, {"clock_fit": True}])
def test_groups_and_lost_packets_exclude(
    pair: Pair, asked: dict[str, Any], changed: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="by and keep_lost exclude clock_fit and in_order"):
        tailtrim.analyze(pair.ingress, pair.egress, **asked, **changed)


def test_the_command(pair: Pair, tmp_path: Path) -> None:
    run = CliRunner().invoke
    asked = ["analyze", str(pair.ingress), str(pair.egress), "--skip", "0"]
    listed, table, out = tmp_path / "lost.csv", tmp_path / "lost.parquet", tmp_path / "run"
    shown = run(app, [*asked, "--by", "dscp", "--lost", str(listed), "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    with listed.open(newline="") as file:
        assert [int(row["frame"]) for row in csv.DictReader(file)] == [n + 1 for n in pair.lost]
    assert f"{len(pair.lost)} lost packets in" in shown.output
    assert "dscp" in shown.output
    kept = json.loads((out / "groups.json").read_text())
    assert [group["value"] for group in kept["groups"]] == ["0", "46", None]
    as_json = run(app, [*asked, "--by", "dscp", "--json", "--lost", str(table)])
    assert json.loads(as_json.output)["by"] == kept
    assert pa.parquet.read_table(table).num_rows == len(pair.lost)
    page = tmp_path / "page"
    assert run(app, ["report", str(out), "--out", str(page)]).exit_code == 0
    html = next(page.glob("*.html")).read_text()
    assert "Clusters of lost packets" in html
    assert "By dscp" in html
    assert run(app, [*asked, "--by", "colour"]).exit_code == 2
    refused = run(app, [*asked, "--lost", str(table), "--in-order"])
    assert refused.exit_code == 2
    assert "--lost excludes --in-order and --clock-fit" in refused.output
    assert run(app, [*asked, "--by", "dscp", "--engine", "duckdb"]).exit_code == 2


def test_standard_input_cannot_be_read_again(pair: Pair) -> None:
    with pytest.raises(ValueError, match="expected a file"):
        tailtrim.analyze("-", pair.egress, keep_lost=True)
    with pytest.raises(ValueError, match="expected a file"):
        by("-", pair.egress, "vlan")
