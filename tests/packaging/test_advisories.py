"""Vulnerabilities in dependencies are errors, and so are databases that cannot be reached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "packaging" / "advisories.py"
VULNERABLE = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
SAFE = {"name": "b", "version": "1", "vulns": []}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


def check(
    folder: Path, *, crates: str, packages: str, required: bool = False
) -> tuple[int, str, list[str]]:
    """Return exit code, text and the list of what was skipped, of databases that answer so."""
    for name, script in (("cargo-deny", crates), ("pip-audit", packages)):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    skipped = folder / "skipped"
    skipped.touch()
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "TAILTRIM_SKIPPED": str(skipped),
        "TAILTRIM_ADVISORIES": "required" if required else "",
    }
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stderr, skipped.read_text().splitlines()


def answer(*packages: object) -> str:
    return f"echo '{json.dumps({'dependencies': packages})}'"


def test_no_vulnerability_is_no_error(tmp_path: Path) -> None:
    assert check(tmp_path, crates="exit 0", packages=answer(SAFE)) == (0, "\n", [])


def test_a_vulnerable_package_is_an_error(tmp_path: Path) -> None:
    code, text, skipped = check(tmp_path, crates="exit 0", packages=answer(SAFE, VULNERABLE))
    assert (code, skipped) == (1, [])
    assert "error: requirements.lock: a 1: PYSEC-1, mended in 2\n" in text


def test_a_vulnerable_crate_is_an_error(tmp_path: Path) -> None:
    crates = 'case "$*" in "fetch db") ;; *) echo RUSTSEC-1 >&2; exit 1 ;; esac'
    code, text, skipped = check(tmp_path, crates=crates, packages=answer(SAFE))
    assert (code, skipped) == (1, [])
    assert "RUSTSEC-1" in text


@pytest.mark.parametrize("packages", [answer(SAFE, UNKNOWN), "echo no network >&2; exit 1"])
def test_a_database_that_cannot_be_had_is_told(tmp_path: Path, packages: str) -> None:
    code, text, skipped = check(tmp_path, crates="echo no route >&2; exit 1", packages=packages)
    assert code == 0
    assert check(tmp_path, crates="exit 0", packages=packages, required=True)[0] == 1
    assert [line.split(": ")[1] for line in skipped] == [
        "crates",
        "requirements.lock",
        "requirements-test.lock",
        "requirements-spark.lock",
    ]
    assert text == "".join(f"SKIPPED: {line}\n" for line in skipped)
