"""Experiments of pos: run once, looked at by several tests; skipped loudly where none can run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from pos_runs import NODES, PosRun

#: Experiments, which are no tests.
collect_ignore_glob = ["folders/*"]
FOLDERS = Path(__file__).parent / "folders"


@pytest.fixture(scope="session", autouse=True)
def _own_files(own_temporary_files: None) -> None:
    """Keep temporary files apart from those of other tests."""


def _without_nodes() -> str | None:
    """Say why no node can be made here, if so."""
    for program in ("unshare", "nsenter", "setpriv", "pivot_root", "setsid"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    tried = subprocess.run(
        ["/usr/bin/env", "unshare", "--user", "--map-root-user", "--net", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if tried.returncode == 0 else tried.stderr.strip()


@pytest.fixture(scope="session")
def nodes() -> None:
    """Skip loudly where there can be no nodes."""
    problem = _without_nodes()
    if problem:
        pytest.skip(f"no local nodes here: {problem}")


@pytest.fixture
def run_of(nodes: None, tmp_path: Path) -> PosRun:
    """Return what runs folders in a place of this test."""
    del nodes
    return PosRun(tmp_path, FOLDERS)


@pytest.fixture(scope="session")
def forwarding(nodes: None, tmp_path_factory: pytest.TempPathFactory) -> PosRun:
    """Return the forwarding experiment after its run."""
    del nodes
    run = PosRun(tmp_path_factory.mktemp("forwarding"), FOLDERS)
    run.go("forwarding", *NODES, "--image", "debian-*", "--skip", "0s")
    return run
