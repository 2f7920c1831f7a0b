"""Targets that are watched: minutes, metrics, a reload, and what an end leaves."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pairs import paired, running
from reflectors import FAR, Stamps

from tailtrim.analysis import watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pairs import Pair

pytestmark = pytest.mark.reflectors
OUTCOMES = ("answered", "late", "lost", "altered", "undelivered", "refused", "missed", "cut")
LISTEN = "127.0.0.1:9464"
FLOOD_PPS = 10_000


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return two hosts."""
    with paired(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


def plan(folder: Path, *targets: str) -> Path:
    """Write a file of targets that are probed 20 times a second."""
    path = folder / "targets.yml"
    objectives = "objectives: ['p99 < 1s', 'loss < 50%']"
    defaults = f"defaults: {{protocol: stamp, rate: 20pps, timeout: 500ms, {objectives}}}"
    path.write_text("\n".join([defaults, "targets:", *(f"- {{{target}}}" for target in targets)]))
    return path


@contextmanager
def watching(pair: Pair, path: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
    """Watch targets from the near host until the block ends."""
    words = ("watch", str(path), "--out", str(out), "--listen", LISTEN)
    command = [*pair.near.prefix, pair.lab.agent, *words]
    with running(command) as watch:
        yield watch


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the minutes of a target, each with outcomes that add up."""
    found = []
    for day in sorted(folder.glob("*.jsonl.zst")):
        with pa.input_stream(str(day), compression="zstd") as stream:
            found += [json.loads(line) for line in stream.read().splitlines()]
    for line in found:
        assert sum(line[outcome] for outcome in OUTCOMES) == line["due"]
    return found


def total(folder: Path, key: str) -> int:
    """Return a count of all minutes of a target."""
    return sum(line[key] for line in lines(folder))


def metrics(pair: Pair, accept: str = "") -> str:
    """Return the metrics as the near host has them."""
    command = ["curl", "-s", "-H", f"Accept: {accept}", f"http://{LISTEN}/metrics"]
    told = subprocess.run([*pair.near.prefix, *command], capture_output=True, check=True)
    return told.stdout.decode(errors="replace")


def test_probes_are_in_one_outcome_each_and_an_end_keeps_the_running_minute(
    pair: Pair, tmp_path: Path
) -> None:
    out = tmp_path / "minutes"
    path = plan(
        tmp_path,
        f"name: far, address: '{FAR}:862'",
        f"name: closed, address: '{FAR}:863'",
        "name: unknown, address: no.such.name.invalid",
    )
    with Stamps(pair.far, ahead_ns=0, keeps_ns=2_000_000), watching(pair, path, out):
        time.sleep(3)
        told = metrics(pair)
    answered = total(out / "far", "answered")
    assert answered > 40
    assert total(out / "far", "lost") == 0
    # The reflector's residence is no part of the round trip.
    worst = lines(out / "far")[0]["worst"]
    assert worst["residence_ns"] >= 2_000_000
    # A host tells a few times a second that a port is closed.
    undelivered, lost = (total(out / "closed", key) for key in ("undelivered", "lost"))
    assert undelivered > 0
    assert undelivered + lost > 40
    assert total(out / "closed", "answered") == 0
    assert total(out / "unknown", "refused") == total(out / "unknown", "due") > 0
    assert 'tailtrim_watch_probes_total{target="far",outcome="answered"}' in told
    assert 'tailtrim_watch_slo_bad_total{target="closed",objective="loss < 50%"}' in told
    (far,) = watched.targets_of(out / "far")
    account = watched.Account(far, watched.Span(0, 2**62))
    took = [len(minute.took_ns) for minute in account.minutes()]
    assert (account.counts["answered"], sum(took)) == (answered, account.counts["due"])
    assert account.damaged + account.wrong + account.repeated == 0


@contextmanager
def flooding(pair: Pair, port: int) -> Iterator[list[int]]:
    """Answer the first probe to a port, then flood its sender; yields how much was sent."""

    def opened() -> socket.socket:
        flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        flood.bind((FAR, port))
        flood.settimeout(5)
        return flood

    sent, over, flood = [0], threading.Event(), pair.far.inside(opened)

    def serve() -> None:
        probe, client = flood.recvfrom(2048)
        # As it was sent, as a reply to another session, and as nothing at all.
        datagrams = (probe, probe[:4] + bytes(4) + probe[8:], b"?" * 100)
        began = time.monotonic()
        while not over.is_set():
            due = int((time.monotonic() - began) * FLOOD_PPS)
            for number in range(sent[0], due):
                flood.sendto(datagrams[number % 3], client)
            sent[0] = max(sent[0], due)
            time.sleep(0.001)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()
        flood.close()


def test_a_reflector_that_floods_costs_its_own_target_alone(pair: Pair, tmp_path: Path) -> None:
    out = tmp_path / "minutes"
    path = plan(
        tmp_path,
        f"name: far, address: '{FAR}:862'",
        f"name: flood, address: '{FAR}:7999', protocol: udp, src_port: 50007",
    )
    with (
        Stamps(pair.far, ahead_ns=0, keeps_ns=0),
        flooding(pair, 7999) as sent,
        watching(pair, path, out),
    ):
        time.sleep(4)
    assert sent[0] > 2 * FLOOD_PPS
    assert total(out / "far", "answered") > 60
    assert total(out / "far", "answered") + total(out / "far", "cut") == total(out / "far", "due")
    # Each datagram is counted once, in what it was, or dropped by the socket.
    arrived = sum(sum(line["arrivals"].values()) for line in lines(out / "flood"))
    assert arrived > sent[0] / 2
    assert total(out / "flood", "answered") <= 1


def test_formats_are_those_that_a_scraper_accepts(pair: Pair, tmp_path: Path) -> None:
    path = plan(tmp_path, f"name: far, address: '{FAR}:862'")
    with watching(pair, path, tmp_path / "minutes"):
        # Targets are in the metrics a tenth of a second after it is ready.
        until_s = time.monotonic() + 20
        while "round_trip" not in metrics(pair):
            assert time.monotonic() < until_s
        assert metrics(pair, "application/openmetrics-text; version=1.0.0").endswith("# EOF\n")
        assert "# EOF" not in metrics(pair)
        binary = metrics(pair, "application/vnd.google.protobuf; encoding=delimited")
        assert "tailtrim_watch_round_trip_seconds" in binary
        assert "# TYPE" not in binary


def test_a_reload_changes_targets_and_keeps_the_others(pair: Pair, tmp_path: Path) -> None:
    out = tmp_path / "minutes"
    path = plan(tmp_path, f"name: stays, address: '{FAR}:862'", f"name: goes, address: '{FAR}:863'")
    with Stamps(pair.far, ahead_ns=0, keeps_ns=0), watching(pair, path, out) as watch:
        time.sleep(1)
        path.write_text("targets: [")
        watch.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        plan(tmp_path, f"name: stays, address: '{FAR}:862'", f"name: comes, address: '{FAR}:863'")
        watch.send_signal(signal.SIGHUP)
        time.sleep(1)
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    of = [(event["event"], event.get("target")) for event in events]
    assert of.count(("target", "stays")) == 1
    assert ("end", "goes") in of
    assert ("target", "comes") in of
    assert [event["told"] for event in events if event["event"] == "refused"]
    # Nothing of it was cut by the reload: only probes under way at the end are.
    assert total(out / "stays", "cut") <= 15
    assert total(out / "stays", "answered") > 30


def test_a_folder_has_one_watch(pair: Pair, tmp_path: Path) -> None:
    path = plan(tmp_path, f"name: far, address: '{FAR}:862'")
    with watching(pair, path, tmp_path / "minutes"):
        again = subprocess.run(
            [*pair.near.prefix, pair.lab.agent, "watch", path, "--out", tmp_path / "minutes"],
            capture_output=True,
            check=False,
            text=True,
        )
    assert again.returncode == 2
    assert "another watch writes into this folder" in again.stderr


def test_files_of_targets_with_errors_are_named(pair: Pair, tmp_path: Path) -> None:
    path = plan(tmp_path, f"address: '{FAR}:862', rate: fast")
    ended = subprocess.run(
        [pair.lab.agent, "watch", path, "--out", tmp_path / "minutes"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert ended.returncode == 2
    assert "target 1, rate" in ended.stderr
    assert not (tmp_path / "minutes").exists()


@pytest.mark.parametrize("keep", ["{time: 3d}", "{size: 2MB}"])
def test_days_beyond_the_limits_go_the_oldest_first(pair: Pair, tmp_path: Path, keep: str) -> None:
    out = tmp_path / "minutes"
    today = datetime.now(UTC).date()
    days = [str(today - timedelta(days=ago)) for ago in range(1, 9)]
    # Targets that are watched, that no longer are, and devices that are tapped alike.
    for target in ("far", "gone", "device"):
        (out / target).mkdir(parents=True)
        for day in days:
            (out / target / f"{day}.jsonl.zst").write_bytes(bytes(200_000))
    path = plan(tmp_path, f"name: far, address: '{FAR}:862'")
    path.write_text(f"{path.read_text()}\nkeep: {keep}\n")
    with watching(pair, path, out):
        pass
    # Of three days' time, or of three times 200 kB for each day's bytes.
    kept = {target: _days(out / target) - {str(today)} for target in ("far", "gone", "device")}
    assert all(of_target == set(days[:3]) for of_target in kept.values())


def _days(folder: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in folder.glob("*.jsonl.zst")}
