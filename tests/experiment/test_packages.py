"""The packages of nodes: listed, named by a sum, and kept once for each list."""

from __future__ import annotations

import os
import shutil
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.laboratory.experiment import packages
from tailtrim.laboratory.nodes.environment import environment, package_list, sum_of

if TYPE_CHECKING:
    from pathlib import Path

#: Programs that the shell calls; no package manager is among them.
_PROGRAMS = ("sh", "sed", "sort", "sha256sum", "cut", "cat", "tr", "head", "uname", "pgrep")


def node(path: str) -> Any:
    """Return a node whose programs are those of a PATH."""
    shell = shutil.which("sh") or "sh"

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [shell, *words[1:]]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path}
        )

    one = SimpleNamespace(call=call, role="dut")
    one.outside = one
    return one


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


def installed(folder: Path, program: str, printed: str) -> None:
    place = folder / program
    place.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\n")
    place.chmod(0o755)


def test_packages_of_debian_are_those_that_are_installed(programs: Path) -> None:
    told = "ii zlib1g:amd64 1.2\nrc gone 1.0\nhi held 3-1\niU half 2\nii adduser 3.134\n"
    installed(programs, "dpkg-query", told)
    installed(programs, "rpm", "other.x86_64 1-1\n")
    found = package_list(node(str(programs)))
    assert found == "adduser 3.134\nheld 3-1\nzlib1g:amd64 1.2\n"
    assert environment(node(str(programs)))["packages"] == sum_of(found)


def test_packages_of_rpm_are_told_where_dpkg_has_none(programs: Path) -> None:
    installed(programs, "dpkg-query", "")
    installed(programs, "rpm", "kernel.x86_64 6.12-1\nbash.x86_64 5.2-1\n")
    assert package_list(node(str(programs))) == "bash.x86_64 5.2-1\nkernel.x86_64 6.12-1\n"


def test_a_node_without_either_tells_no_packages(programs: Path) -> None:
    assert package_list(node(str(programs))) == ""
    assert "packages" not in environment(node(str(programs)))


def test_a_list_is_kept_once(programs: Path, tmp_path: Path) -> None:
    installed(programs, "rpm", "bash.x86_64 5.2-1\n")
    known = environment(node(str(programs)))
    packages.keep(tmp_path, [(node(str(programs)), known)] * 2)
    (place,) = (tmp_path / packages.FOLDER).iterdir()
    assert packages.file_of(known) == f"{packages.FOLDER}/{place.name}"
    assert place.read_text() == "bash.x86_64 5.2-1\n"

    installed(programs, "rpm", "bash.x86_64 5.3-1\n")
    packages.keep(tmp_path, [(node(str(programs)), {"packages": sum_of("before")})])
    assert list((tmp_path / packages.FOLDER).iterdir()) == [place], "not what the node has now"
