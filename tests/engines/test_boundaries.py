"""Every boundary of the rules, a nanosecond to both sides, natively and by SQL."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from random_captures import START_NS, write

import tailtrim
from tailtrim import _native
from tailtrim.analysis import engines
from tailtrim.analysis.decode import decode
from tailtrim.analysis.engines.matching import Matching
from tailtrim.analysis.options import native

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.analysis.engines import Engine

WINDOW_NS = 50_000_000
#: Disagreement of the taps' clocks that the native module allows.
EARLY_NS = 1_000_000_000
#: Captures that begin closer together are taken to begin at once.
TOGETHER_NS = 1_000_000_000
#: Packets in addition to those of a case, and the latency of each: the longest one.
STEADY = 300
STEP_NS = 10_000_000
LATENCY_NS = 30_000
#: In the middle, and where the egress capture ends.
MIDDLE_NS = STEADY // 2 * STEP_NS + 5_000_000
LAST_NS = (STEADY - 1) * STEP_NS + LATENCY_NS
#: Packets 0 to 10 leave within a trim of so long.
TRIM_NS = 10 * STEP_NS
TRIMMED_NS = TRIM_NS + LATENCY_NS


@dataclass(frozen=True)
class Case:
    """Packets added to the steady ones (stamps since the start), and what becomes of them."""

    entered: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    ingress: dict[str, int] = field(default_factory=dict)
    egress: dict[str, int] = field(default_factory=dict)
    watched: bool = False
    trim_ns: int = 0


def without_second_look(text: str) -> dict[str, Any]:
    """Return a summary without what only files say that are read again: engines have none."""
    summary: dict[str, Any] = json.loads(text)
    told = [one for one in summary["warnings"] if one["code"] != "identical"]
    return summary | {
        "warnings": [one | {"text": re.sub(r"\? No other .*", "?", one["text"])} for one in told]
    }


def latency(latency_ns: int, ingress: str, egress: str) -> Case:
    return Case((MIDDLE_NS,), (MIDDLE_NS + latency_ns,), {ingress: 1}, {egress: 1})


def in_flight(left_ns: int, outcome: str, *, watched: bool = False) -> Case:
    return Case(entered=(LAST_NS - left_ns,), ingress={outcome: 1}, watched=watched)


def from_nowhere(after_ns: int, outcome: str) -> Case:
    return Case(left=(after_ns,), egress={outcome: 1})


def at_the_trim(stamp_ns: int, ingress: str, egress: str) -> Case:
    # Of different numbers, see captures.
    return Case((stamp_ns,), (stamp_ns,), {ingress: 1}, {egress: 1}, trim_ns=TRIM_NS)


CASES = {
    "too early": latency(-EARLY_NS, "lost", "unmatched"),
    "early": latency(-EARLY_NS + 1, "matched", "matched"),
    "window - 1": latency(WINDOW_NS - 1, "matched", "matched"),
    "window": latency(WINDOW_NS, "beyond_window", "unmatched"),
    "2 window - 1": latency(2 * WINDOW_NS - 1, "beyond_window", "unmatched"),
    "2 window": latency(2 * WINDOW_NS, "lost", "unmatched"),
    "longest + 1 before the end": in_flight(LATENCY_NS + 1, "lost"),
    "longest before the end": in_flight(LATENCY_NS, "cut"),
    "at the end": in_flight(0, "cut"),
    "behind the end": in_flight(-1, "cut"),
    "longest before the end, watched": in_flight(LATENCY_NS, "lost", watched=True),
    "behind the end, watched": in_flight(-1, "lost", watched=True),
    "1 s before the beginning": Case((LATENCY_NS - TOGETHER_NS,), ingress={"lost": 1}),
    "more than 1 s before the beginning": Case((LATENCY_NS - TOGETHER_NS - 1,), ingress={"cut": 1}),
    "left before the beginning": from_nowhere(-1, "cut"),
    "left within the longest": from_nowhere(LATENCY_NS, "cut"),
    "left after the longest": from_nowhere(LATENCY_NS + 1, "unmatched"),
    "at the end of the trim": at_the_trim(TRIMMED_NS, "trimmed", "trimmed"),
    "after the trim": at_the_trim(TRIMMED_NS + 1, "lost", "unmatched"),
}


def captures(folder: Path, case: Case) -> tuple[Path, Path]:
    # Packets that enter and packets that leave within the trim have different numbers.
    left_number = 1_001 if case.trim_ns else 1_000
    sides = []
    for name, delay_ns, added, number in (
        ("ingress", 0, case.entered, 1_000),
        ("egress", LATENCY_NS, case.left, left_number),
    ):
        packets = [(START_NS + at * STEP_NS + delay_ns, at) for at in range(STEADY)]
        packets += [(START_NS + stamp_ns, number) for stamp_ns in added]
        sides.append(write(folder / f"{name}.pcap", sorted(packets)))
    return sides[0], sides[1]


def outcomes(side: dict[str, int], *, trimmed: int) -> dict[str, int]:
    """Return what became of the packets that a case added."""
    added = side | {
        "matched": side["matched"] - STEADY + trimmed,
        "trimmed": side["trimmed"] - trimmed,
    }
    return {name: count for name, count in added.items() if count and name != "packets"}


@pytest.mark.parametrize("name", CASES)
def test_a_boundary(engine: Engine, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    summary = matched_alike(engine, captures(tmp_path, case), tmp_path, case)
    trimmed = 11 if case.trim_ns else 0
    assert outcomes(summary["ingress"], trimmed=trimmed) == case.ingress
    assert outcomes(summary["egress"], trimmed=trimmed) == case.egress


def test_repeated_signatures_alone(engine: Engine, tmp_path: Path) -> None:
    # Engines find no pair among them; the pairs of the ledger were lost.
    apart_ns = 2 * WINDOW_NS
    entered = [(START_NS + at * apart_ns, 7) for at in range(90)]
    left = [(stamp_ns + LATENCY_NS, number) for stamp_ns, number in entered]
    sides = write(tmp_path / "ingress.pcap", entered), write(tmp_path / "egress.pcap", left)
    summary = matched_alike(engine, sides, tmp_path, Case())
    assert summary["ingress"]["matched"] == 90


def matched_alike(
    engine: Engine, sides: tuple[Path, Path], folder: Path, case: Case
) -> dict[str, Any]:
    """Match captures natively and by an engine, and return the summary that both give."""
    options: dict[str, Any] = {
        "trim_ns": case.trim_ns,
        "window_ns": WINDOW_NS,
        "quantiles": [],
        "confidence": "0.95",
        "watched_to_the_end": case.watched,
    }
    expected = _native.analyze(
        *sides, native({}) | options, directory=None, keep_samples=False, progress=None
    )
    options["keep_samples"] = False
    decoded = decode(sides, folder / "decoded", buckets=2)
    found = Matching(engine, decoded, decoded.pair(), options, None).run()
    texts = (found.summary_json(), expected.summary_json())
    assert without_second_look(texts[0]) == without_second_look(texts[1])
    summary: dict[str, Any] = json.loads(expected.summary_json())
    return summary


@pytest.mark.parametrize("skip_s", ["0", "1"])
def test_nothing_matches(engine: Engine, tmp_path: Path, skip_s: str) -> None:
    # Packets that left no later than the first packet entered may have entered before the capture:
    # the native engine once assumed so only without a trim.
    sides = (
        write(tmp_path / "ingress.pcap", [(START_NS, 1), (START_NS + 1_000, 2)]),
        write(tmp_path / "egress.pcap", [(START_NS - 1, 3), (START_NS, 4), (START_NS + 1, 5)]),
    )
    expected = tailtrim.analyze(*sides, skip_s=skip_s).summary
    decoded = decode(sides, tmp_path / "decoded")
    found = engines.analyze(engine, decoded, skip_s=skip_s).summary
    assert without_second_look(found.text) == without_second_look(expected.text)
    assert (expected.egress.cut, expected.egress.unmatched) == (2, 1)
