"""Checks of units by systemd, and of the rights that the reflector needs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import tools

ROOT = Path(__file__).resolve().parent.parent
UNIT = ROOT / "packaging" / "tailtrim-reflect.service"
UNITS = (UNIT, UNIT.with_name("tailtrim-watch@.service"))
DOCUMENTED = ROOT / "docs" / "security.md"
#: Of at most 10; systemd-analyze takes tenths.
EXPOSURE = 2.0


@pytest.fixture(autouse=True)
def systemd() -> None:
    """Skip loudly where systemd's program is missing."""
    tools.need(tools.SYSTEMD_ANALYZE)


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/usr/bin/env", "systemd-analyze", "--no-pager", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def members(name: str) -> set[str]:
    """Return the system calls of a group such as @default, or the one that a name is."""
    if not name.startswith("@"):
        return {name}
    lines = [line.strip() for line in analyze("syscall-filter", name).stdout.splitlines()[1:]]
    return {call for line in lines if line and line[0] != "#" for call in members(line)}


def allowed() -> set[str]:
    """Return the system calls that the unit allows, as systemd.exec(5) reads its lines."""
    calls = members("@default")
    for line in UNIT.read_text().splitlines():
        if line.startswith("SystemCallFilter="):
            words = line.partition("=")[2].split()
            taken = set().union(*(members(word.removeprefix("~")) for word in words))
            calls = calls - taken if words[0].startswith("~") else calls | taken
    return calls


def documented(row: str) -> set[str]:
    (line,) = [line for line in DOCUMENTED.read_text().splitlines() if line.startswith(f"| {row} ")]
    return set(line.split("`")[1::2])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_expose_little(unit: Path) -> None:
    tenths = f"{EXPOSURE * 10:.0f}"
    done = analyze("security", "--offline=true", f"--threshold={tenths}", str(unit))
    assert "Overall exposure level" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout


def test_the_unit_allows_what_the_reflector_needs() -> None:
    calls = allowed()
    assert documented("all modes") | documented("socket, xdp") <= calls
    # To give up capabilities, and to allow fewer calls.
    assert {"capset", "prctl", "seccomp"} <= calls
    assert not {"bpf", "ptrace", "mount", "setuid"} & calls


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_sound(unit: Path) -> None:
    # Neither the program nor pages of man need be installed; all else that it says is a mistake.
    said = analyze("verify", "--man=no", str(unit)).stderr.splitlines()
    mistakes = [line for line in said if unit.stem in line and "not executable" not in line]
    assert mistakes == []
