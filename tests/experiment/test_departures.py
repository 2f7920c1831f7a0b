"""Departures by the kernel or a NIC: asked for before anything runs, and checked by stamps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from unwired import GENERATED, Nothing, conducted

from tailtrim.errors import HostError
from tailtrim.laboratory.experiment.validity import load_doubts
from tailtrim.laboratory.nodes.namespace_testbed import LocalTestbed
from tailtrim.laboratory.plan.model import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.experiment import Experiment


def stamps(p99_ns: int | None) -> dict[str, Any]:
    errors = {"quantiles": [{"p": "0.99", "value": p99_ns}], "max": p99_ns}
    return {"stamped": 90, "unstamped": 10, "gap_error_ns": errors}


@pytest.mark.parametrize(
    ("told", "doubts"),
    [
        ({}, []),
        ({"transmit_stamps": None}, []),
        ({"transmit_stamps": {"kernel": stamps(999_000), "nic": stamps(None)}}, []),
        (
            {"transmit_stamps": {"nic": stamps(1_200_000)}},
            ["the generator's gaps were off by the NIC's stamps of sent packets: p99 1.20 ms"],
        ),
        ({"missed": 1_000}, ["the kernel dropped 1,000 packets that were late"]),
    ],
)
def test_departures_that_were_not_at_their_time_are_doubts(
    told: dict[str, Any], doubts: list[str]
) -> None:
    assert load_doubts(Limits(), GENERATED | told) == doubts


def test_a_class_that_the_port_does_not_have_fails_before_anything_runs(
    experiment: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(_: Nothing, by: str) -> None:
        asked.append(by)
        raise HostError("traffic.departures: none")

    monkeypatch.setattr(Nothing, "require_departures", refuse, raising=False)
    traffic = "traffic: {rate_pps: 1000, duration_s: 2, departures: $by}"
    plan = f"dut: {{preset: wire}}\n{traffic}\nloop: {{by: [software, kernel]}}\n"
    with pytest.raises(HostError, match=r"traffic.departures: none"):
        conducted(experiment(plan))
    assert (asked, Nothing.wired) == (["kernel"], 0)


def test_this_host_is_asked_in_a_namespace_of_its_own() -> None:
    with pytest.raises(HostError, match=r"^traffic\.departures: local: ") as refused:
        LocalTestbed().require_departures("hardware")
    if os.geteuid() == 0:
        told = str(refused.value)
        assert "lo: no departures by hardware: launch time of AF_XDP: " in told
        assert "; etf offload: " in told
