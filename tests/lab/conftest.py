"""The tests on a live testbed and on this host's settings run where they can, and say where not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changed_host import Tune, snapshot
from hosts import Hosts, by_ssh, cabled
from laboratory import Lab
from pairs import Pair
from peers import Cable

from tailtrim.laboratory.nodes.namespace import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDED = ("ip", "tc", "unshare", "nsenter", "setpriv")

#: Files whose tests measure time, or change or watch this host: nothing else runs with them.
#: Those of the reflector have one that polls with real-time priority: two at once leave no CPU.
ALONE = {
    *("test_privileges", "test_reflect"),
    *("test_attribution", "test_containers", "test_doctor", "test_energy", "test_noise"),
    *("test_online", "test_ping", "test_ping_peers", "test_quiet_meter", "test_stamp_peers"),
    *("test_tune", "test_tune_export", "test_tune_journal"),
}
#: Files that take longest: the others are shared out while these run.
FIRST = (
    *("test_fresh_machine", "test_kexec_host", "test_grub_host", "test_packages"),
    *("test_hosts_ended", "test_booting_hosts", "test_guests", "test_run"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs alone. All other files run side by side, the tests of a file in turn."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
            if item.path.stem in ALONE:
                item.add_marker(pytest.mark.alone)
    items.sort(key=lambda item: [*FIRST, item.path.stem].index(item.path.stem))


@pytest.fixture(scope="session", autouse=True)
def _own_files(own_temporary_files: None) -> None:
    """Keep temporary files apart from those of other tests."""


def namespaces() -> str | None:
    """Say why no network namespace can be made here, if so."""
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        return f"{missing[0]} is not installed"
    tried = subprocess.run(
        ["/usr/bin/env", "unshare", "--net", "true"], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else tried.stderr.strip()


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Return the testbed, or skip loudly where there can be none."""
    problem = namespaces()
    if problem:
        pytest.skip(f"no network namespaces here: {problem}")
    return Lab(tmp_path)


@pytest.fixture
def one_host(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    """Return a host that is reached by SSH, or skip loudly."""
    by_ssh()
    with Hosts(lab.folder, ["far"]) as hosts:
        monkeypatch.setenv("PATH", hosts.path)
        yield hosts


@pytest.fixture
def three_hosts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    """Return three hosts that are cabled, or skip loudly."""
    by_ssh()
    with cabled(lab.folder) as hosts:
        monkeypatch.setenv("PATH", hosts.path)
        lab.environment["PATH"] = hosts.path
        yield hosts


@pytest.fixture
def pair(lab: Lab) -> Iterator[Pair]:
    """Return two hosts for ``ping``, or skip loudly."""
    folders = [lab.folder / name for name in ("near", "far")]
    for folder in folders:
        folder.mkdir()
    with Namespace("near", folders[0]) as near, Namespace("far", folders[1]) as far:
        yield Pair(near, far, lab)


@pytest.fixture
def cable() -> Iterator[Cable]:
    """Return two hosts, or skip loudly."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces for a reflector need root here")
    for program in ("ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    with Cable() as cable:
        yield cable


@pytest.fixture
def tune(tmp_path: Path) -> Tune:
    """Return the verb, for what changes nothing."""
    tune = Tune(tmp_path)
    helped = subprocess.run(
        [tune.program, "tune", "--help"], capture_output=True, text=True, check=False
    )
    assert helped.returncode == 0, helped.stderr
    return tune


@pytest.fixture
def host(tune: Tune) -> Iterator[Tune]:
    """Return the verb for this host, which is left as it was whatever happens."""
    if os.geteuid() != 0:
        pytest.skip("changing this host's settings needs root")
    before = snapshot()
    try:
        yield tune
    finally:
        ended = tune.run("revert")
        after = snapshot()
    assert ended.returncode == 0, ended.stderr
    common = before.keys() & after.keys()
    assert {path: after[path] for path in common} == {path: before[path] for path in common}
    assert {path for path in before if path.startswith("/")} <= after.keys()
