"""Results of pos that have only MoonGen's logs of rates become runs, a figure and a comparison."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import pytest
from pos_folders import PosFolder
from typer.testing import CliRunner, Result

from tailtrim.cli.application import app
from tailtrim.results.experiments import recorded
from tailtrim_pos.results import import_pos

if TYPE_CHECKING:
    from pathlib import Path

LOOP = {"pkt_sz": [64, 1500], "pkt_rate": [100_000, 1_700_000, 2_000_000]}


def tailtrim(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def log(sent_mpps: float, received_mpps: float, seconds: int = 29, rx: str = "Device: id=1") -> str:
    """Return MoonGen's log as in gallenmu/pos-artifacts (throughput_run003.log): edges, totals."""
    lines = ["[INFO]  2 devices are up."]
    edges = [0.9, *[1.0] * seconds, 0.845, 0.0]
    for share in edges:
        for name, way, mpps in (
            ("Device: id=0", "TX", sent_mpps * share),
            (rx, "RX", received_mpps * share),
        ):
            rest = f"{544 * mpps:.2f} Mbit/s ({704 * mpps:.2f} Mbit/s with framing)"
            lines.append(f"[{name}] {way}: {mpps:.4f} Mpps, {rest}")
    lines.append("12000000")
    for name, way, mpps, total in (
        (rx, "RX", received_mpps, 11_982_780),
        ("Device: id=0", "TX", sent_mpps, 12_000_000),
    ):
        told = f"[{name}] {way}: {0.96 * mpps:.4f} (StdDev 0.0730) Mpps, 210.17 (StdDev 40) Mbit/s"
        lines.append(f"{told} (271.98 Mbit/s with framing), total {total} packets with 9 bytes")
    return "\n".join(lines) + "\n"


def published(path: Path, limit_mpps: float) -> PosFolder:
    """Lay out a router that forwards at most so many packets/s, as the figure of the paper has."""
    folder = PosFolder(path, LOOP)
    for number, loop in enumerate(folder.loops):
        sent = loop["pkt_rate"] / 1e6 if loop["pkt_sz"] == 64 else min(loop["pkt_rate"] / 1e6, 0.82)
        folder.upload(number, "throughput.log", log(sent, min(sent, limit_mpps)).encode())
    return folder


def test_the_throughput_figure_of_a_paper_comes_out_of_its_logs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    folder = published(tmp_path / "2020-10-07_23-22-39_868017", 1.738)
    done = tailtrim("import", "pos", folder.path, "--out", out)
    assert done.exit_code == 0, done.output
    assert (
        "pkt_sz=64, pkt_rate=2000000: 2,000.0 kpkt/s sent, 1,738.0 kpkt/s received" in done.stdout
    )
    table = recorded(out).table("runs").to_pydict()
    assert table["rate_pps"] == [1e5, 1.7e6, 2e6, 1e5, 8.2e5, 8.2e5]
    assert table["received_pps"] == [1e5, 1.7e6, 1.738e6, 1e5, 8.2e5, 8.2e5]
    assert table["loss"] == [None] * 6
    report = tailtrim("report", out, "--out", tmp_path / "report")
    assert report.exit_code == 0, report.output
    place = tmp_path / "report" / "figures" / "sweep-pkt_rate-throughput.csv"
    points = [
        (row["name"], row["Offered load (kpkt/s)"], row["y"])
        for row in csv.DictReader(place.read_text().splitlines())
    ]
    assert ("pkt_sz=64 received", "2000", "1738") in points
    assert ("pkt_sz=1500 sent", "2000", "820") in points
    judged = tailtrim("report", out, "--out", tmp_path / "report", "--assert", "p99 < 1ms")
    assert (judged.exit_code, "no latency is known" in judged.output) == (5, True)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Throughput against offered load" in page
    assert "<h2>Latency</h2>" not in page


def test_two_devices_are_compared_by_the_rates_they_forward(tmp_path: Path) -> None:
    for name, limit in (("a", 1.738), ("b", 0.5)):
        import_pos(published(tmp_path / name, limit).path, tmp_path / f"out-{name}")
    sides = tmp_path / "out-a", tmp_path / "out-b"
    page = tmp_path / "compared.html"
    done = tailtrim("compare", *sides, "--out", page)
    assert done.exit_code == 0, done.output
    (line,) = (one for one in done.stdout.splitlines() if "pkt_sz=64, pkt_rate=2000000" in one)
    assert line.split()[-5:] == ["2,000.0", "1,738.0", "2,000.0", "500.0", "0.288"]
    assert "not tested" in page.read_text()
    halves = tailtrim("compare", sides[0], "--halves")
    assert (halves.exit_code, "not tested" in halves.stdout) == (0, False)
    explained = tailtrim("explain", sides[0])
    assert (explained.exit_code, "no latency of a packet" in explained.stderr) == (2, True)


def test_packets_that_a_script_counts_again_are_not_counted_twice(tmp_path: Path) -> None:
    folder = PosFolder(tmp_path / "results", {"n": [1]})
    both = log(0.4, 0.4) + log(0.4, 0.4, rx="Packets counted").replace("[Device: id=0]", "[nil]")
    folder.upload(0, "throughput.log", f"\x1b[36m{both}".encode())
    import_pos(folder.path, tmp_path / "out")
    ((_, run),) = recorded(tmp_path / "out").complete
    assert run.summary.throughput is not None
    assert run.summary.throughput.received_pps == 400_000
    assert recorded(tmp_path / "out").runs[0].traffic == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (log(0.4, 0.4, seconds=2), "fewer than 6 seconds of TX"),
        (log(0.4, 0.4).replace("RX", "XX"), r"no rates of MoonGen, .* \[Device: id=0\] RX"),
    ],
)
def test_logs_that_have_no_rates_are_told(tmp_path: Path, content: str, told: str) -> None:
    folder = PosFolder(tmp_path / "results", {"n": [1]})
    folder.upload(0, "throughput.log", content.encode())
    done = tailtrim("import", "pos", folder.path, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert re.search(told, " ".join(done.stderr.split()))
