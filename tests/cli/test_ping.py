"""``tailtrim ping`` as people type it: to an echo on this host, with objectives."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BIN = Path(sys.executable).parent


class Echo:
    """A UDP echo on the loopback that answers the first ``answers`` datagrams."""

    def __init__(self) -> None:
        self.answers = 10**9
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while True:
            datagram, source = self.socket.recvfrom(2048)
            if datagram == b"end":
                return
            if self.answers > 0:
                self.answers -= 1
                self.socket.sendto(datagram, source)

    def end(self) -> None:
        self.socket.sendto(b"end", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    one = Echo()
    yield one
    one.end()


def ping(echo: Echo, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    target = f"127.0.0.1:{echo.port}"
    return subprocess.run(
        [BIN / "tailtrim", "ping", target, *arguments],
        check=False,
        text=True,
        capture_output=True,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_count_and_interval_are_those_of_ping_8(echo: Echo) -> None:
    result = ping(echo, "-c", "4", "-i", "0.05", "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["rate"] == "20pps"
    assert told["streams"][0]["probes"]["due"] == 4
    sent = told["streams"][0]["summary"]["taps"]["ingress"]
    assert sent["last_ns"] - sent["first_ns"] > 0.1 * 10**9


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("-c", "3", "--duration", "3s"), "--count"),
        (("-i", "1", "--rate", "3pps"), "--interval"),
        (("-c", "0"), "--count"),
        (("-i", "0"), "--interval"),
        (("-i", "often"), "--interval"),
    ],
)
def test_what_contradicts_itself_is_refused(echo: Echo, words: tuple[str, ...], about: str) -> None:
    result = ping(echo, *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert about in result.stderr
    assert "tailtrim-agent" not in result.stderr


def test_round_trips_meet_an_objective(echo: Echo, tmp_path: Path) -> None:
    report = tmp_path / "slo.xml"
    words = ("-c", "200", "--rate", "2kpps", "--junit", report, "--assert")
    # No percentile: on a busy host neighbours of 200 probes can all depend on each other.
    result = ping(echo, *words, "max < 10s, loss < 50%")
    assert result.returncode == 0, result.stderr
    assert "passed: max < 10s" in result.stderr
    # It judged the network part, and did not say so.
    assert f"judged: udp to 127.0.0.1:{echo.port}, between the kernel's stamps" in result.stderr
    assert "all of it, for the application, is " in result.stderr
    # The table is the agent's, as without objectives.
    assert "200 sent: 200 answered" in result.stdout
    (suite,) = ET.parse(report).getroot()  # noqa: S314 - made here
    assert suite.attrib["name"] == f"127.0.0.1:{echo.port}"
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "0")


def test_round_trips_fail_an_objective_or_leave_it_open(echo: Echo, tmp_path: Path) -> None:
    words = ("-c", "50", "--rate", "500pps", "--assert")
    failed = ping(echo, *words, "max < 1ns", "--out", tmp_path / "run")
    assert (failed.returncode, "failed: max < 1ns" in failed.stderr) == (1, True)
    assert (tmp_path / "run" / "summary.json").is_file()
    assert ping(echo, *words, "p99.999 < 10s").returncode == 5


def test_an_hour_replaces_that_before_and_what_was_made_of_it(echo: Echo, tmp_path: Path) -> None:
    # The second hour failed after its measurement: "holds what an analysis does not write".
    words = ("-n", "50", "--rate", "500pps", "--out", tmp_path / "rtt")
    assert ping(echo, *words).returncode == 0
    for command in (["convert", "--format", "openmetrics", "--assert", "max < 10s"], ["report"]):
        made = [str(BIN / "tailtrim"), *command, str(tmp_path / "rtt")]
        assert subprocess.run(made, check=False, stdout=subprocess.DEVNULL).returncode == 0
    text = (tmp_path / "rtt" / "rtt.prom").read_text()
    assert 'tailtrim_objective_met{run="rtt",objective="max < 10s"} 1' in text
    page = (tmp_path / "rtt" / "report" / "report.html").read_text()
    assert f"udp to 127.0.0.1:{echo.port}, between the kernel" in page
    assert ping(echo, *words).returncode == 0
    assert not (tmp_path / "rtt" / "rtt.prom").exists()


def test_what_cannot_be_written_is_told_before_the_measurement(echo: Echo, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    echo.answers = 0
    result = ping(echo, "-n", "50", "--rate", "500pps", "--out", tmp_path / "notes")
    assert (result.returncode, result.stdout) == (2, "")
    assert "is not a run directory" in result.stderr


def test_probes_without_reply_are_lost_for_an_objective(echo: Echo) -> None:
    echo.answers = 100
    words = ("-c", "200", "--rate", "2kpps", "--timeout", "0.2", "--assert")
    result = ping(echo, *words, "loss < 10%, adjusted p90 < 10s")
    assert result.returncode == 1
    assert "failed: loss < 10%: 50 %" in result.stderr
    assert "not decided: adjusted p90 < 10s: ∞" in result.stderr


def test_targets_of_one_name_are_told_apart(echo: Echo, tmp_path: Path) -> None:
    report = tmp_path / "slo.xml"
    target = f"127.0.0.1:{echo.port}"
    words = ("-c", "5", "--rate", "100pps", "--junit", report)
    assert ping(echo, target, *words, "--assert", "max < 10s").returncode == 0
    names = [suite.attrib["name"] for suite in ET.parse(report).getroot()]  # noqa: S314
    assert names == [f"{target} #1", f"{target} #2"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--assert", "p99 > 5us"), "is not an objective"),
        (("--junit", "slo.xml"), "expected --assert"),
        (("--assert",), "--assert: expected a value"),
    ],
)
def test_a_wrong_objective_is_told_before_anything_is_sent(
    echo: Echo, words: tuple[str, ...], told: str
) -> None:
    result = ping(echo, *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr


def test_the_help_has_the_options_of_the_package(echo: Echo) -> None:
    told = ping(echo, "--help").stdout
    for option in ("--assert", "--junit", "--out", "--count", "--interval"):
        assert f"{option} <" in told
    assert told.index("--junit") < told.index("Examples:")
    assert "tailtrim-agent" not in told
