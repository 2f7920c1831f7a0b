"""What all tests share: where the real captures are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def testpmd() -> tuple[Path, Path]:
    """Return the captures around a DPDK testpmd that the project brings along."""
    folder = ROOT / "examples" / "testpmd"
    return folder / "ingress.pcap.zst", folder / "egress.pcap.zst"


@pytest.fixture(scope="session")
def published() -> Path:
    """Return the published captures, or skip loudly where they are missing."""
    folder = ROOT.parent / "shared" / "data"
    if not (folder / "expected.json").is_file():
        pytest.skip(f"the published captures are missing: no {folder}/expected.json")
    return folder
