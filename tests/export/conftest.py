from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tailtrim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EXAMPLES = Path(__file__).parents[2] / "examples" / "testpmd"
IPV4_UDP = bytes.fromhex("0200000000010200000000020800") + bytes.fromhex(
    "4500002e0000000040110000010203040506070800350035001a0000"
)


def write_pcap(path: Path, frames: Iterable[tuple[int, int]]) -> Path:
    """Write frames (stamp in ns, number that tells them apart) with nanosecond stamps."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for stamp_ns, number in frames:
            frame = IPV4_UDP + number.to_bytes(18, "big")
            file.write(
                struct.pack("<IIII", *divmod(stamp_ns, 10**9), len(frame), len(frame)) + frame
            )
    return path


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., tailtrim.RunDirectory]:
    """Make a run directory of packets given as (ingress stamp, latency or None if lost), in ns."""

    def make(
        packets: Iterable[tuple[int, int | None]],
        *,
        skip_s: float = 0,
        name: str = "synthetic",
        capture: str = "in.pcap",
    ) -> tailtrim.RunDirectory:
        numbered = list(enumerate(packets))
        sent = [(stamp, number) for number, (stamp, _) in numbered]
        received = [
            (stamp + latency, number)
            for number, (stamp, latency) in numbered
            if latency is not None
        ]
        folder = tmp_path / f"{name}-captures"
        folder.mkdir()
        place = tmp_path / name
        tailtrim.analyze(
            write_pcap(folder / capture, sent),
            write_pcap(folder / "out.pcap", sorted(received)),
            skip_s=skip_s,
            allow_negative=True,
            out=place,
        )
        return tailtrim.RunDirectory(place)

    return make


@pytest.fixture(scope="session")
def testpmd(tmp_path_factory: pytest.TempPathFactory) -> tailtrim.RunDirectory:
    """The example captures, analyzed with the default trim of one second."""
    if not (EXAMPLES / "ingress.pcap.zst").exists():
        pytest.skip("examples/testpmd has no captures: record them with its record.sh")
    place = tmp_path_factory.mktemp("runs") / "testpmd"
    tailtrim.analyze(
        EXAMPLES / "ingress.pcap.zst", EXAMPLES / "egress.pcap.zst", skip_s=1, out=place
    )
    return tailtrim.RunDirectory(place)
