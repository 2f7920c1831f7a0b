"""A known delay is compared with the same device that keeps packets for no time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.selftest.known_delays import check
from tailtrim.laboratory.selftest.path_delay import PathDelays, path_delays

if TYPE_CHECKING:
    from pathlib import Path

PACKETS = 10_000
RANDOM = np.random.default_rng(7)


def between(low: int, high: int) -> Any:
    return RANDOM.integers(low, high, PACKETS)


def passed(kept: Any, *, in_ns: int = 700, out_ns: int = 900) -> PathDelays:
    """Return packets around a device: each way takes some time, more or less."""
    return PathDelays(between(in_ns, in_ns + 200), kept, between(out_ns, out_ns + 400))


def floors() -> list[PathDelays]:
    """Return rounds of a device that keeps packets for no time, but takes some to handle them."""
    return [passed(between(500, 800)) for _ in range(3)]


@pytest.mark.parametrize(
    "kept",
    [np.full(PACKETS, 20_000), (20_000 * (1 + RANDOM.pareto(3, PACKETS))).astype(np.int64)],
    ids=["constant", "heavy"],
)
def test_the_floor_is_the_same_device_without_a_delay(kept: Any) -> None:
    # 1.6 to 2.2 µs are the way's: more than the bound of 1 µs, were it not for the floor.
    found = check("some", [passed(kept) for _ in range(3)], floors(), [])
    assert found.recovered
    assert found.packets == 3 * PACKETS
    for one in found.truth:
        assert one.measured == one.true + one.floor_ns + one.error_ns
        assert one.floor_ns > 1_000
        assert abs(one.error_ns) <= one.bound_ns
        assert one.reason is None


@pytest.mark.parametrize(
    ("slow", "part"),
    [({"in_ns": 3_700}, "to_device_ns"), ({"out_ns": 3_900}, "from_device_ns")],
)
def test_a_delay_that_is_not_recovered_names_the_part_of_the_way(
    slow: dict[str, int], part: str
) -> None:
    kept = np.full(PACKETS, 20_000)
    found = check("some", [passed(kept, **slow) for _ in range(3)], floors(), [])
    assert not found.recovered
    for one in found.truth:
        assert one.reason is not None
        assert one.reason.part == part
        assert 2_900 < one.reason.ns - one.reason.floor_ns < 3_100
        assert 2_500 < one.error_ns < 3_500


def test_one_round_of_three_that_was_disturbed_does_not_count() -> None:
    kept = np.full(PACKETS, 20_000)
    rounds = [passed(kept), passed(kept, out_ns=50_000), passed(kept)]
    assert check("some", rounds, floors(), []).recovered


def recorded(folder: Path, log: list[tuple[int, int, int]]) -> Any:
    """Return a run of three packets, which come and leave at these times."""
    np.array(log, dtype="<i8").tofile(folder / "truth.bin")
    samples = pa.table({"ingress_ns": [200, 100, 300], "egress_ns": [260, 170, 390]})
    return SimpleNamespace(path=folder, table=lambda *_, **__: samples)


def test_the_parts_of_the_way_add_up_to_the_latency(tmp_path: Path) -> None:
    way = path_delays(recorded(tmp_path, [(0, 110, 40), (1, 215, 30), (2, 305, 60)]))
    assert way.to_device_ns.tolist() == [10, 15, 5]
    assert way.kept_ns.tolist() == [40, 30, 60]
    assert way.from_device_ns.tolist() == [20, 15, 25]
    assert way.latency_ns.tolist() == [70, 60, 90]


def test_a_packet_that_was_set_aside_is_in_the_log_only(tmp_path: Path) -> None:
    log = [(0, 110, 40), (1, 150, 20), (2, 215, 30), (3, 305, 60)]
    assert path_delays(recorded(tmp_path, log)).to_device_ns.tolist() == [10, 15, 5]


@pytest.mark.parametrize("log", [[(0, 50, 40)], [(0, 110, 40), (1, 111, 40)], []])
def test_a_log_that_does_not_fit_the_packets(
    tmp_path: Path, log: list[tuple[int, int, int]]
) -> None:
    with pytest.raises(RunDirectoryError, match=r"truth\.bin: does not fit"):
        path_delays(recorded(tmp_path, log))
