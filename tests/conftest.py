"""What all tests share: where the real captures are, and what was skipped before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Names the list of what was skipped before, a line each; ``make test`` sets it.
SKIPPED_BEFORE = "TAILTRIM_SKIPPED"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was skipped by checks and in Rust before pytest's own list, and count both."""
    path = os.environ.get(SKIPPED_BEFORE)
    if path is None:
        return
    before = Path(path).read_text().splitlines() if Path(path).exists() else []
    python = len(terminalreporter.stats.get("skipped", []))
    terminalreporter.section(f"skipped: {len(before)} by checks and in Rust, {python} in Python")
    for line in sorted(before):
        terminalreporter.line(f"SKIPPED {line}")


@pytest.fixture(scope="session")
def testpmd() -> tuple[Path, Path]:
    """Return the captures around a DPDK testpmd that the project brings along."""
    folder = ROOT / "examples" / "testpmd"
    return folder / "ingress.pcap.zst", folder / "egress.pcap.zst"


@pytest.fixture(scope="session")
def published() -> Path:
    """Return the published captures, or skip loudly where they are missing."""
    folder = Path(os.environ.get("TAILTRIM_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "expected.json").is_file():
        pytest.skip(
            f"the published captures are missing: no {folder}/expected.json; set TAILTRIM_DATA"
        )
    return folder
