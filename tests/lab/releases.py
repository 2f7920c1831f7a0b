"""Programs of other Debian releases: ``packaging/roots.sh`` unpacks them, nothing is installed."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest
from fetched import ROOTS

_PROJECT = Path(__file__).parents[2]
_ENTER = str(_PROJECT / "packaging" / "in-root.sh")


def unpacked(root: str) -> Path:
    """Return where a root is, or skip loudly."""
    if os.geteuid() != 0:
        pytest.skip(f"only root can run programs of {root}")
    if not (ROOTS / f"{root}.packages").is_file():
        pytest.skip(f"no programs of {root} here (packaging/roots.sh {root} unpacks them)")
    return ROOTS / root


def entering(root: str) -> list[str]:
    """Return what a command begins with that runs with the programs of a root, or skip loudly."""
    unpacked(root)
    return [_ENTER, root]


def of_release(root: str, name: str) -> list[str]:
    """Return what starts a program: that of a root, else this machine's, or skip loudly."""
    installed = shutil.which(name)
    if installed is not None and not (ROOTS / f"{root}.packages").is_file():
        return [installed]
    return [*entering(root), name]


def path_with(folder: Path, root: str, *names: str) -> str:
    """Return a PATH on which these programs are those of a root, or skip loudly."""
    folder.mkdir(exist_ok=True)
    for name in names:
        found = next((unpacked(root) / "usr").glob(f"*bin/{name}"))
        command = shlex.join([*entering(root), f"/usr/{found.parent.name}/{name}"])
        starter = folder / name
        starter.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        starter.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
