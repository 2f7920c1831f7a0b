"""Scores of explanations: recall and precision of the causes that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from made_up import HEADER, traced

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.selftest.attribution import EXPECTED, AttributionScore, score
from tailtrim.results import DISTURBED, STALLS, RunDirectory

if TYPE_CHECKING:
    from pathlib import Path


def row(
    late: dict[str, int], undisturbed: dict[str, int], what: str = "stop:1ms,50ms"
) -> AttributionScore:
    return AttributionScore(what, 10, 1_000, 9_000, late, undisturbed, mixed=0)


def test_recall_is_of_the_late_packets_that_were_disturbed() -> None:
    scored = row({"device stopped": 95, "other": 5}, {"other": 90})
    assert scored.due == 100
    assert scored.recall == pytest.approx(0.95)
    assert scored.precision == 1


def test_a_cause_that_is_named_wrongly_costs_precision() -> None:
    scored = row({"device stopped": 90}, {"device stopped": 10, "other": 80})
    assert scored.wrong == 10
    assert scored.precision == pytest.approx(0.9)


def test_a_control_has_neither() -> None:
    scored = row({}, {"other": 5}, what="")
    assert (scored.expected, scored.recall, scored.precision) == (None, None, None)


def test_every_disturbance_is_to_be_named() -> None:
    from tailtrim.laboratory.devices.disturbed import LASTING, MOMENTS  # noqa: PLC0415 - what this test is about

    assert set(EXPECTED) == {*MOMENTS, *LASTING}


@pytest.fixture
def disturbed(tmp_path: Path, testpmd: tuple[Path, Path]) -> RunDirectory:
    """A hundred shootdowns of 30 µs on purpose, among a hundred ticks of 9 µs."""
    traced(tmp_path / "run", testpmd, HEADER)
    done = [(n * 1_000_000 + 510_000, n * 1_000_000 + 550_000) for n in range(100)]
    stood = [
        (n * 1_000_000 + at, n * 1_000_000 + at + long)
        for n in range(100)
        for at, long in ((40_000, 9_000), (517_000, 30_000))
    ]
    for name, spans in ((DISTURBED, done), (STALLS, stood)):
        (tmp_path / "run" / name).write_text("".join(f"{a},{b}\n" for a, b in spans))
    return RunDirectory(tmp_path / "run")


def test_what_stood_still_when_it_was_disturbed_is_known(disturbed: RunDirectory) -> None:
    scored = score(disturbed, "munmap:1ms", late_from="0.99")
    assert scored.disturbances == 100
    # Each met those that came in its 30 µs, every 4 µs one, and a few behind them.
    assert 700 <= scored.disturbed <= 900
    assert 200 <= scored.due < 300
    assert scored.recall == 1
    assert scored.precision == 1
    assert scored.late_undisturbed.keys() <= {"other"}


def test_another_name_is_not_recall(disturbed: RunDirectory) -> None:
    scored = score(disturbed, "membarrier:1ms", late_from="0.99")
    assert scored.due > 0
    assert scored.recall == 0
    assert scored.late == {"TLB shootdown": scored.due}


def test_what_stood_still_for_others_is_no_disturbance(disturbed: RunDirectory) -> None:
    # The work stood still for 40 ms while one of 20 us was due: that was somebody else.
    (disturbed.path / STALLS).write_text("20000000,60000000\n")
    scored = score(disturbed, "munmap:1ms", late_from="0.99")
    assert scored.disturbed == 0
    assert scored.due == 0
    assert scored.recall is None


def test_a_thread_that_had_to_wait_itself_held_nobody_up(disturbed: RunDirectory) -> None:
    # It was busy for 5.4 ms by the clock instead of 2 ms: meanwhile the device passed packets.
    (disturbed.path / STALLS).unlink()
    (disturbed.path / DISTURBED).write_text("20000000,25400000\n")
    scored = score(disturbed, "thread:2ms", late_from="0.99")
    assert (scored.disturbances, scored.disturbed, scored.due) == (1, 0, 0)


def test_no_record_is_an_error(disturbed: RunDirectory) -> None:
    (disturbed.path / DISTURBED).write_text("1,x\n")
    with pytest.raises(RunDirectoryError, match=r"disturbed\.csv: .* ns"):
        score(disturbed, "munmap:1ms")
