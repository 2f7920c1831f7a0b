"""Suites of tests, and the real captures that all tests share."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from machine_state import Snapshot

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ROOT = Path(__file__).resolve().parent
#: A test is of one suite: that of its closest marker of these names (a parameter's is closer than
#: its function's), else that of its folder.
SUITES = (
    "fast",
    "lab",
    "faults",
    "reflectors",
    "guests",
    "simulations",
    "engines",
    "packages",
    "long",
)
FOLDERS = {"lab": "lab", "faults": "faults", "qemu": "guests"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose tests."""
    parser.addoption("--suite", choices=SUITES, help="run the tests of one suite")
    parser.addoption("--part", help="of its files only these: N/M, each M-th from the N-th on")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other suites."""
    suite = config.getoption("--suite")
    if suite is None:
        return
    chosen = [item for item in items if suite_of(item) == suite]
    if (part := config.getoption("--part")) is not None:
        number, parts = map(int, part.split("/"))
        files = {*sorted({item.path for item in chosen})[number - 1 :: parts]}
        chosen = [item for item in chosen if item.path in files]
    kept = {*chosen}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def suite_of(item: pytest.Item) -> str:
    """Return the suite of a test."""
    markers = [*reversed(item.own_markers), *item.iter_markers()]
    named = (marker.name for marker in markers if marker.name in SUITES)
    return next(named, FOLDERS.get(item.path.parent.name, "fast"))


BEGAN = pytest.StashKey[Snapshot]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the state of the machine in which a test begins."""
    item.stash[BEGAN] = Snapshot.taken()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell what had the CPUs while a test ran that failed."""
    report = yield
    if report.failed and (began := item.stash.get(BEGAN, None)) is not None:
        report.sections.append(("the machine meanwhile", began.until(Snapshot.taken())))
    return report


@pytest.fixture(scope="session")
def own_temporary_files() -> Iterator[None]:
    """Let tests that look for what is left see their own files, not those of tests beside them."""
    with (
        tempfile.TemporaryDirectory(prefix="lab-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


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
