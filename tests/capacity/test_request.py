"""Request for a search, made of a plan and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trials import plan

from tailtrim.errors import PlanError
from tailtrim.laboratory.capacity.estimate import needs, refuse_undecidable
from tailtrim.laboratory.capacity.request import SearchRequest, search_request
from tailtrim.laboratory.plan import load

if TYPE_CHECKING:
    from pathlib import Path


def of(folder: Path, text: str = "", **options: Any) -> SearchRequest:
    return search_request(*load(plan(folder, text)), **options)


@pytest.mark.parametrize(
    ("traffic", "unit", "largest", "pps"),
    [
        ("rate_pps: 120000", "packets/s", 120_000, 120_000),
        ("rate: 1.5Mpps", "packets/s", 1_500_000, 1_500_000),
        # 64 bytes with FCS and 20 around them: 10 Gbit/s are 14.88 million packets/s.
        ("rate: 10Gbit/s", "bit/s", 10**10, 14_880_952),
        ("rate: 1Gbit/s, frame_bytes: 1518", "bit/s", 10**9, 81_274.38),
        ("rate: 1Gbit/s, frame_bytes: imix", "bit/s", 10**9, 327_367.96),
    ],
)
def test_the_load_is_what_the_plan_has(
    tmp_path: Path, traffic: str, unit: str, largest: int, pps: float
) -> None:
    asked = of(tmp_path, f"traffic: {{{traffic}, duration_s: 1}}")
    assert (asked.loads.unit, asked.search.largest) == (unit, largest)
    assert asked.loads.pps(largest) == pytest.approx(pps, rel=1e-6)
    half = asked.loads.sent(largest // 2, 3.0)
    assert half.duration_s == 3
    assert half.rate_pps == (largest // 2 if unit == "packets/s" else None)
    assert half.rate == (f"{largest // 2}bit/s" if unit == "bit/s" else None)


def test_bursts_are_searched_for_at_the_mean_rate(tmp_path: Path) -> None:
    text = "traffic: {rate_pps: 10000, schedule: 'burst:64', duration_s: 1}"
    asked = of(tmp_path, text, searched="burst")
    assert (asked.search.smallest, asked.search.largest) == (1, 64)
    assert asked.search.loads[:5] == [1, 2, 3, 4, 5]
    sent = asked.loads.sent(8, 1.0)
    assert (str(sent.schedule), sent.rate_pps) == ("burst:8", 10_000)
    assert str(asked.loads.sent(1, 1.0).schedule) == "cbr"
    assert asked.loads.pps(8) == 10_000


def test_the_trim_is_not_of_a_trial(tmp_path: Path) -> None:
    text = "traffic: {rate_pps: 1000, duration_s: 2.5}\n"
    place = plan(tmp_path, text)
    place.write_text(place.read_text().replace("skip_s: 0", "skip_s: 0.5"))
    asked = search_request(*load(place))
    assert asked.search.trial_s == 2
    first = asked.search.next_trial([])
    assert first is not None
    assert asked.run_of(0, first, 0).traffic.duration_s == 2.5


def test_round_trips_have_a_capacity(tmp_path: Path) -> None:
    place = plan(tmp_path, "traffic: {rate_pps: 5000, frame_bytes: 70, duration_s: 2}\n")
    text = place.read_text().replace("forward", "reflector").replace("skip_s: 0\n", "")
    place.write_text(text)
    asked = search_request(*load(place), slo="p99 < 1ms")
    assert (asked.search.trial_s, asked.lead_s, asked.search.largest) == (2, 0, 5_000)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("repeat: 2", "2 runs"),
        ("loop: {rate: [1000, 2000]}\ntraffic: {rate_pps: $rate, duration_s: 1}", "2 runs"),
        ("trace: both", "2 runs"),
        ("by_minute: true", "by_minute: .*search of capacity"),
    ],
)
def test_a_plan_of_what_is_no_trial_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        of(tmp_path, text)


def test_bursts_need_a_burst(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="expected burst:N"):
        of(tmp_path, searched="burst")


@pytest.mark.parametrize("options", [{"width": 0.0}, {"width": 0.5}, {"confidence": 1.0}])
def test_options_without_sense_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="invalid"):
        of(tmp_path, **options)


def test_what_a_promise_takes_is_told_beforehand(tmp_path: Path) -> None:
    lines = list(needs(of(tmp_path, slo="p99.999 < 1ms")))
    for fact in ("p99.999 < 1ms: ", " 368,887 independent packets", " 184.4 s", "3,688.9 s"):
        assert fact in lines[0]
    assert lines[1].startswith("about ")


def test_what_the_budget_cannot_decide_is_refused_with_what_it_takes(tmp_path: Path) -> None:
    asked = of(tmp_path, slo="p99.999 < 1ms", budget_s=300)
    with pytest.raises(PlanError, match=r"p99\.999 < 1ms: .*300 s") as error:
        refuse_undecidable(asked.search)
    assert "budget" in error.value.__notes__[0]
    assert "width" not in error.value.__notes__[0]
    refuse_undecidable(of(tmp_path, slo="p99 < 1ms", budget_s=300).search)
