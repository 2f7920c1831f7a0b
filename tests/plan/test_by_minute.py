"""Plans of runs of hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans

if TYPE_CHECKING:
    from pathlib import Path

_PLAN = """\
name: hours
dut: {preset: forward}
traffic: {rate_pps: 10000, duration_s: 7200}
repeat: 3
by_minute: true
"""


def _load(folder: Path, more: str = "", plan: str = _PLAN) -> plans.Plan:
    path = folder / "plan.yml"
    path.write_text(plan + more, "utf-8")
    return plans.load(path)[0]


def test_a_record_names_it_where_it_is_asked_for_only(tmp_path: Path) -> None:
    assert _load(tmp_path).model_dump(mode="json")["by_minute"] is True
    other = _load(tmp_path, plan=_PLAN.replace("by_minute: true\n", ""))
    assert "by_minute" not in other.model_dump(mode="json")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("keep_captures: true\n", "keep_captures: not with by_minute"),
        ("trace: both\n", "trace: both .*by_minute, .*true or false"),
    ],
)
def test_what_grows_with_the_hours_is_refused(tmp_path: Path, more: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        _load(tmp_path, more)


def test_round_trips_are_not_kept_by_minute(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"by_minute: .*round trips"):
        _load(tmp_path, plan=_PLAN.replace("forward", "reflector"))
