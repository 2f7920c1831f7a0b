"""Missing prerequisites of this machine are named with their packages, and only those that help."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "packaging" / "prerequisites.sh"


def missing(folder: Path, purpose: str, **programs: str) -> list[str]:
    """Return what a machine lacks that has these programs and those of the script itself."""
    for name in ("sed", "sort", "cut"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name, script in programs.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    command = ["/bin/sh", str(SCRIPT), purpose]
    environment = {"PATH": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("missing on this")]
    return line.partition(": ")[2].split()


@pytest.mark.parametrize(
    ("candidate", "helps"), [("0.66.0+ds1-1", False), ("1.97.1+dfsg1-1", True), ("(none)", False)]
)
def test_a_cargo_that_is_too_old_is_no_help(tmp_path: Path, candidate: str, *, helps: bool) -> None:
    named = missing(tmp_path, "build", apt_cache=f"echo '  Candidate: {candidate}'")
    assert ("cargo" in named) == helps
    assert {"gcc", "git", "clang"} <= set(named)


def test_what_the_demo_lacks_is_what_its_tools_say(tmp_path: Path) -> None:
    doctor = 'test "$*" = "doctor --missing-packages demo" && echo iproute2 && echo ethtool'
    assert missing(tmp_path, "live", tailtrim=doctor) == ["iproute2", "ethtool"]


def test_without_a_setup_the_demo_s_needs_are_not_taken_for_none(tmp_path: Path) -> None:
    command = ["/bin/sh", str(SCRIPT), "live"]
    environment = {"PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode != 0
    assert "tailtrim" in done.stderr


def test_what_makes_packages_is_declared(tmp_path: Path) -> None:
    assert missing(tmp_path, "dist") == ["musl-tools", "dpkg-dev", "debhelper", "help2man"]
