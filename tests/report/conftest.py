from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import late_run
import pytest

import tailtrim
from tailtrim.report import write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "testpmd"
PUBLISHED = Path(os.environ.get("TAILTRIM_DATA", ROOT.parent / "shared" / "data"))
FRAME = bytes.fromhex("0200000000010200000000020800") + bytes.fromhex(
    "4500002e0000000040110000010203040506070800350035001a0000"
)


def write_pcap(path: Path, frames: Sequence[tuple[int, int]]) -> Path:
    """Write frames (stamp in ns, number that tells them apart) with nanosecond stamps."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for stamp_ns, number in frames:
            frame = FRAME + number.to_bytes(18, "big")
            file.write(struct.pack("<IIII", *divmod(stamp_ns, 10**9), len(frame), len(frame)))
            file.write(frame)
    return path


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., tailtrim.RunDirectory]:
    """Make a run directory of packets 100 µs apart, given their latencies (None: lost)."""

    def make(
        latencies_ns: Sequence[int | None],
        *,
        name: str = "synthetic",
        capture: str = "in.pcap",
        at: Callable[[int], int] = lambda number: number * 100_000,
        copied: int = 0,
    ) -> tailtrim.RunDirectory:
        sent = [(10**9 + at(number), number) for number in range(len(latencies_ns))]
        received = [
            (stamp + latency, number)
            for (stamp, number), latency in zip(sent, latencies_ns, strict=True)
            if latency is not None
        ]
        # The device sends the first packets twice.
        received += [(stamp + 1_000, number) for stamp, number in received[:copied]]
        place = tmp_path / name
        tailtrim.analyze(
            write_pcap(tmp_path / capture, sent),
            write_pcap(tmp_path / "out.pcap", sorted(received)),
            trim_s=0,
            allow_negative=True,
            out=place,
        )
        return tailtrim.RunDirectory(place)

    return make


@pytest.fixture
def explained_run(make_run: Callable[..., tailtrim.RunDirectory]) -> tailtrim.RunDirectory:
    """A run with an explanation and a trace, see ``late_run``."""
    run = make_run(late_run.latencies())
    late_run.store(run, late_run.explanation(), late_run.events())
    return run


@pytest.fixture(scope="session")
def testpmd(tmp_path_factory: pytest.TempPathFactory) -> tailtrim.RunDirectory:
    """The example captures, analyzed with the default trim of one second."""
    if not (EXAMPLES / "ingress.pcap.zst").exists():
        pytest.skip("examples/testpmd has no captures: record them with its record.sh")
    place = tmp_path_factory.mktemp("runs") / "testpmd"
    tailtrim.analyze(EXAMPLES / "ingress.pcap.zst", EXAMPLES / "egress.pcap.zst", out=place)
    return tailtrim.RunDirectory(place)


@pytest.fixture(scope="session")
def report(testpmd: tailtrim.RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the report of the example captures is; not to be altered."""
    place = tmp_path_factory.mktemp("report")
    write([testpmd], place)
    return place


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tailtrim.RunDirectory]:
    """Analyze a published pair, named as in its folder: ``dpdk-l2fwd/hw``."""
    runs: dict[str, tailtrim.RunDirectory] = {}
    folder = tmp_path_factory.mktemp("published")

    def analyze(name: str) -> tailtrim.RunDirectory:
        if name not in runs:
            pre = sorted((PUBLISHED / "low-latency" / name).glob("*latencies-pre-*"))
            if not pre:
                pytest.skip(f"{PUBLISHED} has no captures of {name}: set TAILTRIM_DATA")
            ingress = pre[-1]
            egress = ingress.with_name(ingress.name.replace("latencies-pre", "latencies-post"))
            place = folder / name.replace("/", "-")
            tailtrim.analyze(ingress, egress, out=place)
            runs[name] = tailtrim.RunDirectory(place)
        return runs[name]

    return analyze
