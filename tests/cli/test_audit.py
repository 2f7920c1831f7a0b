"""``tailtrim audit`` is the agent's verb, its exit codes included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def audit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: PLW1510 - the exit code is what is looked at
        [BIN / "tailtrim", "audit", *arguments], capture_output=True, text=True
    )


def test_this_host_is_audited() -> None:
    done = audit("--duration", "100ms", "--format", "json")
    assert done.returncode in {0, 1}, done.stderr
    report = json.loads(done.stdout)
    counts = report["counts"]
    assert sum(counts.values()) == len(report["checks"]) == len(audit("--list").stdout.splitlines())
    for check in report["checks"]:
        assert check["verdict"] != "unknown" or check["said"], check["id"]
        assert check["verdict"] != "ok" or check["evidence"], check["id"]
    assert done.returncode == (1 if counts["fail"] else 0)


def test_exit_codes_are_the_agents(tmp_path: Path) -> None:
    assert audit("--only", "NONE").returncode == 2
    assert audit("--root", str(tmp_path)).returncode == 3


def test_an_interface_that_is_not_there_is_refused() -> None:
    done = audit("--interface", "lo,nowhere0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no interface nowhere0 on this host, which has ")
