"""Departures of live runs: lateness, and when the generator's CPU stood still."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from swept_experiment import latencies
from synthetic import run_of

from tailtrim.publishing.report.live_runs import departures

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim import RunDirectory


def sent(folder: Path, name: str, *counts: int, shared: bool = False) -> tuple[str, RunDirectory]:
    """Return a run whose generator stood still so often in the middle of sending, and waiting."""
    run = run_of(folder, latencies(2_000), name=name)
    sending, waiting = (
        {"count": count, "total_ns": count * 10_000, "longest_ns": 10_000 if count else 0}
        for count in counts
    )
    told = {
        "sent": 300,
        "shares_cpu": shared,
        "lateness_ns": {"quantiles": [{"p": "0.5", "value": 150}], "max": 9_000},
        "stalls": {"departed_late": 0, "sending": sending, "waiting": waiting},
    }
    (run.path / "generator.json").write_text(json.dumps(told))
    return name, run


@pytest.mark.parametrize(
    ("runs", "note"),
    [
        ([(0, 0)], None),
        (
            [(2, 3)],
            (
                "The generator's CPU stood still: 5 times (50.0 µs, 10.0 µs at most), 2 times in"
                " the middle of sending."
            ),
        ),
        (
            [(2, 3), (0, 0), (1, 0)],
            (
                "The generator's CPU stood still in 2 of 3 runs: 1 to 5 times (10.0 µs to 50.0 µs,"
                " 10.0 µs at most), 1 to 2 times in the middle of sending."
            ),
        ),
    ],
)
def test_stalls_of_all_runs_are_one_sentence(
    tmp_path: Path, runs: list[tuple[int, int]], note: str | None
) -> None:
    found = departures([sent(tmp_path, f"run-{n}", *counts) for n, counts in enumerate(runs)])
    assert found is not None
    assert found.notes == ([] if note is None else [note])
    assert len(found.table.rows) == len(runs)


def test_a_shared_cpu_is_told(tmp_path: Path) -> None:
    runs = [sent(tmp_path, "a", 1, 0, shared=True), sent(tmp_path, "b", 1, 0)]
    found = departures(runs)
    assert found is not None
    (note,) = found.notes
    assert note.endswith(
        " 1 time in the middle of sending; in 1 of them that CPU serves the device, too, so no"
        " packet is set aside."
    )


def test_means_and_stamps_of_departures_are_told(tmp_path: Path) -> None:
    def stamped(p99_ns: int, unstamped: int) -> dict[str, Any]:
        errors = {"quantiles": [{"p": "0.99", "value": p99_ns}], "max": 2 * p99_ns}
        return {"stamped": 300 - unstamped, "unstamped": unstamped, "gap_error_ns": errors}

    runs = [sent(tmp_path, "a", 0, 0), sent(tmp_path, "b", 0, 0)]
    more: list[dict[str, Any]] = [
        {"departures_by": "busy-waiting", "transmit_stamps": {"nic": stamped(40, 200)}},
        {
            "departures_by": "etf",
            "missed": 3,
            "transmit_stamps": {"nic": stamped(90, 20), "kernel": stamped(5_000, 0)},
        },
    ]
    for (_, run), told in zip(runs, more, strict=True):
        place = run.path / "generator.json"
        place.write_text(json.dumps(json.loads(place.read_text()) | told))
    found = departures(runs)
    assert found is not None
    assert found.notes == [
        (
            "Kept to their time by the kernel (etf) in 1 of 2 runs; it dropped 3 packets that were"
            " late."
        ),
        (
            "By the NIC's stamps of sent packets, the gaps between them were off by up to 90 ns at"
            " p99, 180 ns at most; 220 packets have no stamp."
        ),
        (
            "By the kernel's stamps of sent packets, the gaps between them were off by up to"
            " 5.00 µs at p99, 10.0 µs at most."
        ),
    ]
