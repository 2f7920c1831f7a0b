"""A watch as a service: what it tells the manager of services, and a collector of metrics."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

import pytest
from pairs import paired
from reflectors import FAR, Stamps
from test_watch import lines, metrics, plan, watching

from tailtrim.analysis import watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pairs import Pair

pytestmark = pytest.mark.reflectors


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return two hosts."""
    with paired(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


class Manager:
    """The socket of a manager of services."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def next(self, but: str = "WATCHDOG=1") -> str:
        """Return the next message that is another one than this."""
        while (told := self.socket.recv(4096).decode()) == but:
            pass
        return told


@contextmanager
def served(
    pair: Pair, *words: str, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a watch until the block ends."""
    command = [*pair.near.prefix, pair.lab.agent, "watch", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=os.environ | (environment or {}), stdout=pipe, stderr=pipe, text=True
    ) as watch:
        try:
            yield watch
        finally:
            watch.send_signal(signal.SIGTERM)
            watch.wait(20)


def test_the_manager_is_told_of_begin_life_reload_and_end(pair: Pair, tmp_path: Path) -> None:
    path = plan(tmp_path, f"name: far, address: '{FAR}:862'", f"name: b, address: '{FAR}:863'")
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
    words = (str(path), "--out", str(tmp_path / "minutes"))
    with (
        Manager(tmp_path / "notify") as manager,
        served(pair, *words, environment=environment) as watch,
    ):
        assert manager.next() == "READY=1\nSTATUS=Watching 2 targets"
        for _ in range(3):
            assert manager.next(but="") == "WATCHDOG=1"
        plan(tmp_path, f"name: far, address: '{FAR}:862'")
        watch.send_signal(signal.SIGHUP)
        # Between these two, systemd shows it as reloading.
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", manager.next())
        assert manager.next() == "READY=1\nSTATUS=Watching 1 targets"
        watch.send_signal(signal.SIGTERM)
        assert manager.next() == "STOPPING=1"
        assert watch.wait(20) == 0


def test_a_collector_is_pushed_to_by_otlp(pair: Pair, tmp_path: Path) -> None:
    path = plan(tmp_path, f"name: far, address: '{FAR}:862'")

    def listening() -> socket.socket:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(20)
        return listener

    words = (str(path), "--out", str(tmp_path / "minutes"), "--otlp")
    environment = {"OTEL_METRIC_EXPORT_INTERVAL": "500"}
    with pair.near.inside(listening) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/prefix"
        with served(pair, *words, url, environment=environment):
            for _ in range(2):
                connection, _ = listener.accept()
                with connection, connection.makefile("rwb") as stream:
                    assert stream.readline() == b"POST /prefix/v1/metrics HTTP/1.1\r\n"
                    headers = dict(
                        line.decode().strip().lower().split(": ", 1)
                        for line in iter(stream.readline, b"\r\n")
                    )
                    body = stream.read(int(headers["content-length"]))
                    stream.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            assert headers["content-type"] == "application/x-protobuf"
            assert b"tailtrim_watch_round_trip_seconds" in body
    refused = subprocess.run(
        [pair.lab.agent, "watch", *words, "https://collector"],
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "expected http://HOST:PORT" in refused.stderr


def test_the_exemplar_leads_to_the_worst_probe_of_its_minute(pair: Pair, tmp_path: Path) -> None:
    out = tmp_path / "minutes"
    path = plan(tmp_path, f"name: far, address: '{FAR}:862'")
    with Stamps(pair.far, ahead_ns=0, keeps_ns=0), watching(pair, path, out):
        time.sleep(1)
        told = metrics(pair, "application/openmetrics-text; version=1.0.0")
    sample = r'probes_total\{target="far",outcome="answered"\} \d+ # \{(.*)\} (\S+) (\S+)'
    found = re.search(sample, told)
    assert found is not None
    labels = dict(re.findall(r'(\w+)="([^"]*)"', found[1]))
    span = watched.span(labels["span"], datetime.now(UTC))
    (line,) = [line for line in lines(out / "far") if line["begin_ns"] == span.begin_ns]
    assert span.end_ns - span.begin_ns == 60 * 10**9
    place = line["at_us"].index(int(labels["at_us"]))
    assert line["latency_ns"][place] == round(float(found[2]) * 1e9)
    assert round(float(found[3]) * 1e6) == span.begin_ns // 1000 + int(labels["at_us"])
