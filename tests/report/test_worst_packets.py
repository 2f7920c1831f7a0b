"""The worst packets of a run by minute, on its page and in the terminal."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from report_page import page_of

from tailtrim import RunDirectoryError
from tailtrim.publishing.report import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim import RunDirectory

_INGRESS_NS = 1_795_000_000_000_001_234
_MINUTE = {"begin_ns": 0, "samples": 9, "lost": 0, "latency_ns": {"min": 1, "max": 9}}


def _host(late: list[dict[str, Any]]) -> dict[str, Any]:
    of_cause = {"events": 1, "late_packets": 1, "share_ppm": 900_000, "without_ns": [1]}
    cause = {"kind": "thread", "name": "kworker/0:1", "excess_ns": 900, **of_cause}
    verdict = {
        "service": {"base_ns": 1, "service_ns": 1},
        "error_ns": 100,
        "quantiles_ns": [1],
        "late_from_ns": 5,
        "excess_ns": 1_000,
        "queue_ns": 0,
        "unknown_ns": 100,
        "causes": [cause],
        "late": late,
    }
    return {"cpu": 1, "holes": 0, "missing": [], "quantiles": ["0.5"], "verdict": verdict}


_LATE = {
    "arrival_ns": _INGRESS_NS,
    "latency_ns": 2_000_000,
    "excess_ns": 1_000_000,
    "causes": [[0, 900_000]],
    "queue_ns": 0,
    "unknown_ns": 100_000,
}


@pytest.fixture
def page(make_run: Callable[..., RunDirectory], tmp_path: Path) -> Callable[..., str]:
    """Return the page of a run by minute with this in its ``worst.json``."""
    run = make_run([5_000] * 200)

    def made(**told: Any) -> str:
        (run.path / "minute.jsonl").write_text(json.dumps(_MINUTE) + "\n")
        schema = {"schema": "tailtrim.worst-packets/1"}
        (run.path / "worst.json").write_text(json.dumps(schema | told))
        write([run], tmp_path / "report")
        return page_of(tmp_path / "report").text

    return made


def packet(host: dict[str, Any] | None, *, complete: bool = True) -> dict[str, Any]:
    told = {"ingress_ns": _INGRESS_NS, "latency_ns": 2_000_000}
    return told | {"complete": complete, "host": host}


@pytest.mark.parametrize(
    ("host", "told"),
    [
        (_host([_LATE]), "90.0 % kworker/0:1, 10.0 % unknown"),
        (_host([]), ".*nothing that delayed it"),
        (None, "no trace"),
    ],
)
def test_each_packet_has_its_causes(
    page: Callable[..., str], host: dict[str, Any] | None, told: str
) -> None:
    text = page(packets=[packet(host)])
    assert "The worst packets" in text
    assert re.search(f"2026-11-18 11:06:40.000001 UTC: 2.00 ms, {told}", text)


def test_a_time_that_is_not_whole_is_told(page: Callable[..., str]) -> None:
    text = page(packets=[packet(_host([_LATE]), complete=False)])
    assert re.search("unknown; captures or trace .*not have all", text)


def test_what_could_not_be_explained_is_told(page: Callable[..., str]) -> None:
    assert "Not known: a reason" in page(packets=[], problem="a reason")


def test_a_damaged_file_is_told(page: Callable[..., str]) -> None:
    with pytest.raises(RunDirectoryError, match=r"worst\.json: .*packets\.0\.in"):
        page(packets=[{"latency_ns": 1}])
