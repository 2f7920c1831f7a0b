"""Prints the size of the project: lines, crates, lengths of modules, modules that commands load.

Lines are those of the files that git knows, comments and blank lines included, without tests. The
core is what lies in ``crates/`` and ``python/tailtrim``; plug-ins are told apart.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SHORT_LINES = 60
COMMANDS = {
    "import tailtrim": ["-c", "import tailtrim"],
    "read an experiment": ["-c", "import tailtrim.results.experiments"],
    "tailtrim run demo --dry-run": ["-m", "tailtrim.cli", "run", "demo", "--dry-run"],
}
_TESTS = re.compile(r"/tests/|tests\.rs$")
_MODULE = re.compile(r"^import time:.*\| *(tailtrim[\w.]*)$", re.MULTILINE)


def lines(*patterns: str) -> dict[str, int]:
    """Return the number of lines of each file of the project that a pattern of git matches."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = [name for name in listed.stdout.split("\0") if name and not _TESTS.search(name)]
    return {name: len((ROOT / name).read_bytes().splitlines()) for name in names}


def loaded(arguments: list[str]) -> int:
    """Return how many modules of tailtrim a call of Python loads."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return len({*_MODULE.findall(told.stderr)})


def main() -> None:
    """Print all numbers, one a line."""
    rust, python = lines("crates/*.rs"), lines("python/tailtrim/*.py")
    plugins = lines("plugins/*.py")
    crates = (ROOT / "Cargo.lock").read_text("utf-8").count("\n[[package]]\n")
    short = sum(count < SHORT_LINES for count in python.values())
    numbers = {
        "lines of the core": sum(rust.values()) + sum(python.values()),
        "  in Rust": sum(rust.values()),
        "  in Python": sum(python.values()),
        "lines of plug-ins": sum(plugins.values()),
        "crates in Cargo.lock": crates,
        "Python modules": len(python),
        "  median lines": int(median(python.values())),
        f"  below {SHORT_LINES} lines": short,
    }
    numbers |= {f"modules loaded: {name}": loaded(words) for name, words in COMMANDS.items()}
    for name, number in numbers.items():
        sys.stdout.write(f"{number:>8,}  {name}\n")


if __name__ == "__main__":
    main()
