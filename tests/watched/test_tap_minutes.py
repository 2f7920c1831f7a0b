"""Minutes of a device that is tapped, as runs and as rows of a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tailtrim.analysis import watched
from tailtrim.errors import RoundTripError
from tailtrim.publishing import watch_export
from tailtrim.publishing.watch_report import explanation
from tailtrim.publishing.watch_report.account_wording import notes

if TYPE_CHECKING:
    from pathlib import Path

BEGIN_NS = 1_893_456_000 * 10**9  # 2030-01-01, UTC
ENTERED = {
    **dict.fromkeys(("disturbed", "beyond_window", "copy", "unstamped", "cut"), 0),
    "packets": 11,
    "matched": 8,
    "lost": 2,
    "duplicate": 1,
}
LEFT = {"packets": 9, "matched": 8, "unmatched": 1, "copy": 0, "unstamped": 0, "cut": 0}
SPAN = watched.Span(BEGIN_NS, BEGIN_NS + 86_400 * 10**9)


def device(folder: Path, lines: list[dict[str, Any]]) -> watched.Target:
    """Write a device with these minutes."""
    folder.mkdir()
    told = {"schema": watched.SCHEMA, "name": "firewall", "kind": "tap", "window_ns": 5 * 10**9}
    (folder / "target.json").write_text(json.dumps(told))
    codec = pa.Codec("zstd")
    frames = [codec.compress(json.dumps(line).encode() + b"\n", asbytes=True) for line in lines]
    (folder / "2030-01-01.jsonl.zst").write_bytes(b"".join(frames))
    return watched.targets_of(folder)[0]


def minute(number: int, **values: Any) -> dict[str, Any]:
    """Return a minute of ten packets, of which two were lost and one was a duplicate."""
    return {
        "begin_ns": BEGIN_NS + number * 60 * 10**9,
        **ENTERED,
        "egress": LEFT,
        "foreign": 3,
        "health": {"tapped_ns": 60 * 10**9, "ingress_dropped": 0, "egress_dropped": 0},
        "worst": {"begin_ns": BEGIN_NS, "latency_ns": 17_000},
        "at_us": list(range(0, 10_000, 1_000)),
        "latency_ns": [10_000 + 1_000 * place for place in range(8)] + [None, None],
        **values,
    }


def test_a_span_of_a_device_is_a_run(tmp_path: Path) -> None:
    target = device(tmp_path / "firewall", [minute(number) for number in range(5)])
    account = watched.Account(target, SPAN)
    summary = watched.leave_run(account, tmp_path / "run")
    assert (summary.samples, summary.ingress.lost) == (40, 10)
    assert summary.latency_ns.max == 17_000
    written = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert written["taps"]["ingress"]["capture"] == "firewall, ingress"
    assert (account.counts["due"], account.arrivals["duplicate"]) == (50, 5)
    assert (account.arrivals["egress unmatched"], account.arrivals["foreign"]) == (5, 15)
    own = [note for note in notes(account, BEGIN_NS + 5 * 60 * 10**9) if "minute" not in note]
    assert own == ["packets without a latency: 5 duplicate"]


def test_faults_of_the_taps_are_told(tmp_path: Path) -> None:
    health = {"tapped_ns": 20 * 10**9, "ingress_dropped": 7, "egress_dropped": 1}
    target = device(tmp_path / "firewall", [minute(0, health=health), minute(1)])
    account = watched.Account(target, SPAN)
    watched.leave_run(account, tmp_path / "run")
    told = "\n".join(notes(account, BEGIN_NS + 2 * 60 * 10**9))
    assert "the tap at ingress dropped 7 frames: not measured" in told
    assert "the tap at egress dropped 1 frame: their packets count as lost" in told
    assert "the taps did not record for 40.0 s" in told


def test_explanations_speak_of_packets(tmp_path: Path) -> None:
    account = watched.Account(device(tmp_path / "firewall", [minute(0)]), SPAN)
    assert len(list(account.minutes())) == 1
    told = "\n".join(explanation.lines(account, BEGIN_NS + 60 * 10**9))
    assert "2 of 10 packets that entered did not leave in time (20.0 %): 2 lost" in told
    assert "beside matched packets: 1 duplicate, 1 egress unmatched, 3 foreign" in told
    assert "slow: 17.0 µs at" in told
    assert "network" not in told


def test_a_device_has_no_pings(tmp_path: Path) -> None:
    account = watched.Account(device(tmp_path / "firewall", [minute(0)]), SPAN)
    with pytest.raises(RoundTripError, match="a device that is tapped has no pings"):
        watch_export.convert([account], "hpct", "firewall", tmp_path)


@pytest.mark.parametrize("wrong", [{"matched": 9}, {"packets": 12}, {"egress": {"packets": 1}}])
def test_a_minute_that_does_not_add_up_is_left_out(tmp_path: Path, wrong: dict[str, Any]) -> None:
    target = device(tmp_path / "firewall", [minute(0, **wrong), minute(1)])
    account = watched.Account(target, SPAN)
    watched.leave_run(account, tmp_path / "run")
    assert (account.wrong, account.counts["due"]) == (1, 10)
