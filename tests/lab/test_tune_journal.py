"""A journal that others may have written, or that is not whole, is refused and changes nothing."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from changed_host import files, tree, write

if TYPE_CHECKING:
    from pathlib import Path

    from changed_host import Tune

PLAN = ("--isolate", "1", "--smt", "keep", "--without", "isolation.cpuset")
THP = "sys/kernel/mm/transparent_hugepage/enabled"


def applied(tune: Tune, folder: Path) -> tuple[Path, dict[str, bytes | None]]:
    """Apply a plan to a tree; return the tree, and its files before."""
    root = tree(folder)
    write(root, THP, "always [madvise] never\n")
    before = files(root)
    ended = tune.run("apply", *PLAN, "--root", str(root))
    assert ended.returncode == 0, ended.stderr
    assert (root / THP).read_text() == "never\n"
    return root, before


def refused(tune: Tune, root: Path) -> str:
    """Return why `revert` refuses; `status`, `verify` and `apply` do, too, and nothing changes."""
    before, kept = files(root), files(tune.state)
    told = []
    for verb in ("status", "verify", "revert"):
        ended = tune.run(verb, "--root", str(root))
        assert ended.returncode == 2, (verb, ended)
        assert ended.stderr.count("error:") == 1
        assert ended.stdout == ""
        told.append(ended.stderr)
    ended = tune.run("apply", *PLAN, "--root", str(root))
    assert ended.returncode == 2, ended
    assert (files(root), files(tune.state)) == (before, kept)
    return told[-1]


def test_bracketed_values_of_a_tree_come_back(tune: Tune, tmp_path: Path) -> None:
    root, before = applied(tune, tmp_path)
    ended = tune.run("revert", "--root", str(root))
    assert ended.returncode == 0, ended.stderr
    assert files(root) == before


@pytest.mark.parametrize("name", [".", "journal", "lock"])
def test_a_journal_of_another_user_is_refused(tune: Tune, tmp_path: Path, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a file to another user needs root")
    root, _ = applied(tune, tmp_path)
    os.chown(tune.state / name, 65534, 65534)
    if name == "lock":
        # Only those who change something lock.
        ended = tune.run("revert", "--root", str(root))
        assert ended.returncode == 2
        told = ended.stderr
    else:
        told = refused(tune, root)
    assert str(tune.state if name == "." else tune.state / name) in told
    assert "user 65534" in told
    assert "hint: " in told


def test_a_folder_that_others_can_write_to_is_refused(tune: Tune, tmp_path: Path) -> None:
    root, _ = applied(tune, tmp_path)
    tune.state.chmod(0o777)
    assert "0777" in refused(tune, root)


def test_a_journal_that_is_cut_off_is_refused(tune: Tune, tmp_path: Path) -> None:
    root, before = applied(tune, tmp_path)
    journal = tune.state / "journal"
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    steps = sum(b'"record":"step"' in line for line in lines)
    journal.write_bytes(b"".join(lines[: steps // 2]))
    told = refused(tune, root)
    assert f"of {steps} steps" in told
    assert f"{steps} values" in told
    journal.write_bytes(whole)
    assert tune.run("revert", "--root", str(root)).returncode == 0
    assert files(root) == before


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(tune: Tune, tmp_path: Path, umask: int) -> None:
    root = tree(tmp_path)
    tune.state = tmp_path / "above" / "state"
    command = tune.command("apply", *PLAN, "--root", str(root))
    ended = subprocess.run(command, capture_output=True, text=True, check=False, umask=umask)
    assert ended.returncode == 0, ended.stderr
    modes = {
        str(path.relative_to(tmp_path)): path.stat().st_mode & 0o7777
        for path in (tune.state.parent, tune.state, *tune.state.iterdir())
    }
    assert modes == {
        "above": 0o700,
        "above/state": 0o700,
        "above/state/journal": 0o600,
        "above/state/lock": 0o600,
    }
