"""Asks the databases of known vulnerabilities about all that the lock files name.

RustSec's is asked about crates, PyPI's about Python packages. A vulnerability is an error (exit
code 1). A database that does not answer is skipped loudly; with ``TAILTRIM_ADVISORIES=required``,
as ``make test-all`` sets it, that is an error, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

LOCKS = ("requirements.lock", "requirements-test.lock", "requirements-spark.lock")
REQUIRED = os.environ.get("TAILTRIM_ADVISORIES") == "required"
ROOT = Path(__file__).resolve().parent.parent


def say(line: str) -> None:
    """Print a line."""
    sys.stderr.write(f"{line}\n")


def skip(why: str) -> bool:
    """Say what is not checked, here and at the suite's end; return whether it may be skipped."""
    say(f"{'error' if REQUIRED else 'SKIPPED'}: advisories: {why}")
    listed = os.environ.get("TAILTRIM_SKIPPED")
    if listed:
        with Path(listed).open("a", encoding="utf-8") as file:
            file.write(f"advisories: {why}\n")
    return not REQUIRED


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the project's folder."""
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def last_line(text: str) -> str:
    """Return what a program said in the end."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no reason given")


def crates_are_safe() -> bool:
    """Ask RustSec's database about Cargo.lock."""
    fetched = run("cargo-deny", "fetch", "db")
    if fetched.returncode != 0:
        return skip(f"crates: RustSec's database cannot be had: {last_line(fetched.stderr)}")
    checked = run("cargo-deny", "--locked", "check", "--disable-fetch", "advisories")
    say(checked.stderr)
    return checked.returncode == 0


def packages_are_safe(lock: str) -> bool:
    """Ask PyPI about a file of requirements; all are pinned, so pip has nothing to resolve."""
    words = ("--requirement", lock, "--require-hashes", "--disable-pip", "--format", "json")
    asked = run("pip-audit", *words, "--progress-spinner", "off")
    try:
        packages = json.loads(asked.stdout)["dependencies"]
    except ValueError:
        return skip(f"{lock}: PyPI does not answer: {last_line(asked.stderr)}")
    unknown = [package["skip_reason"] for package in packages if "skip_reason" in package]
    safe = not unknown or skip(
        f"{lock}: {len(unknown)} of {len(packages)} packages are not checked: {unknown[0]}"
    )
    found = [
        f"{lock}: {package['name']} {package['version']}: {known['id']}, "
        f"mended in {', '.join(known['fix_versions']) or 'no release'}"
        for package in packages
        for known in package.get("vulns", ())
    ]
    for line in found:
        say(f"error: {line}")
    return safe and not found


def main() -> int:
    """Check both, and return the exit code."""
    safe = [crates_are_safe(), *(packages_are_safe(lock) for lock in LOCKS)]
    return 0 if all(safe) else 1


if __name__ == "__main__":
    sys.exit(main())
