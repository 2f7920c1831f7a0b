"""How explanations are scored."""

from __future__ import annotations

import pytest

from tailtrim.attribution import EXPECTED, Row


def row(late: dict[str, int], undisturbed: dict[str, int], what: str = "stop:1ms,50ms") -> Row:
    return Row(what, 10, 1_000, 9_000, late, undisturbed, mixed=0)


def test_those_that_would_be_late_anyway_are_not_asked_for() -> None:
    # One in a hundred is late where nothing was done: of 1,000 disturbed ones 10 would have been.
    scored = row({"device stopped": 95, "other": 15}, {"other": 90})
    assert scored.due == pytest.approx(100)
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
    from tailtrim.plan.model import LASTING, MOMENTS  # noqa: PLC0415 - what this test is about

    assert set(EXPECTED) == {*MOMENTS, *LASTING}
