"""A change beside a pinned baseline: told once, also after the watch was killed."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pairs import paired
from reflectors import FAR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pairs import Pair

pytestmark = pytest.mark.reflectors
MINUTE_NS = 60_000_000_000
LISTEN = "127.0.0.1:9464"
#: Minutes since the change, and of the baseline before.
CHANGED, BASELINE = 40, 2 * 1440
COUNTS = ("late", "altered", "undelivered", "refused", "missed", "cut", "unstamped", "disturbed")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return two hosts."""
    with paired(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


def write_minutes(folder: Path, until: int) -> None:
    """Write minutes of a path that has become slower by 30 %."""
    folder.mkdir(parents=True)
    codec = pa.Codec("zstd")
    for minute in range(until - CHANGED - BASELINE, until):
        factor = 1.3 if minute >= until - CHANGED else 1.0
        places = ((7 * number + 13 * minute) % 20 for number in range(20))
        latencies = [int(factor * (900_000 + 10_000 * place)) for place in places]
        line = {
            "begin_ns": minute * MINUTE_NS,
            "due": 20,
            "answered": 20,
            "lost": 0,
            **dict.fromkeys(COUNTS, 0),
            "arrivals": {},
            "health": {"lateness_max_ns": 0, "clock_stepped_ns": 0, "stolen_ns": None},
            "worst": None,
            "at_us": [3_000_000 * number for number in range(20)],
            "latency_ns": latencies,
        }
        day = datetime.fromtimestamp(minute * 60, UTC).date()
        with (folder / f"{day}.jsonl.zst").open("ab") as file:
            file.write(codec.compress(json.dumps(line).encode() + b"\n", asbytes=True))


def told(out: Path) -> list[dict[str, Any]]:
    """Return the changes beside the baseline that events tell.

    Regression: on a Monday, these minutes are of last week, too, which has the same changes.
    """
    path = out / "events.jsonl"
    events = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    changes = (event for event in events if event["event"].startswith("change"))
    return [event for event in changes if event["against"] == "baseline"]


def metrics(pair: Pair) -> str:
    """Return the metrics as the near host has them."""
    command = [*pair.near.prefix, "curl", "-s", f"http://{LISTEN}/metrics"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_a_change_is_told_once(pair: Pair, tmp_path: Path) -> None:
    until = time.time_ns() // MINUTE_NS
    write_minutes(tmp_path / "minutes" / "far", until)
    texts = [
        datetime.fromtimestamp(60 * (until - CHANGED - back), UTC).strftime("%Y-%m-%dT%H:%M")
        for back in (BASELINE, 0)
    ]
    path = tmp_path / "targets.yml"
    path.write_text(
        f"targets: [{{name: far, address: '{FAR}:863'}}]\nbaseline: {'..'.join(texts)}\n"
    )
    words = ("watch", str(path), "--out", str(tmp_path / "minutes"), "--listen", LISTEN)
    command = [*pair.near.prefix, pair.lab.agent, *words]
    quantities = {"p50", "p99", "p99.9"}
    counts = []
    for _life in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            assert json.loads(watch.stdout.readline())["event"] == "ready"
            until_s = time.monotonic() + 30
            state = 'tailtrim_watch_change_state{target="far",of="p50",against="baseline"} 1\n'
            while {event["of"] for event in told(tmp_path / "minutes")} < quantities or (
                state not in metrics(pair)
            ):
                assert time.monotonic() < until_s, told(tmp_path / "minutes")
                time.sleep(0.05)
            watch.kill()
        counts.append(len(told(tmp_path / "minutes")))
    assert counts[0] == counts[1]
    for event in told(tmp_path / "minutes"):
        assert event["direction"] == "worse"
        since = event["since_ns"] // MINUTE_NS - (until - CHANGED)
        assert abs(since) <= 2, event
        assert event["ratio"] == pytest.approx(1.3, rel=0.03)
        assert event["ratio_low"] <= 1.31
