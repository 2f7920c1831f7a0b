"""The programs ``pos`` and the tools of the nodes: each asks the controller."""

from __future__ import annotations

import shlex
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SOCKET = "pos.sock"
_CLIENT, _CLIENT_SOURCE = "client.py", "_client.py"


def write(folder: Path, names: Sequence[str], python: str, *, seen: str | None = None) -> None:
    """Write programs into the folder ``bin`` of a folder.

    Args:
        folder: here.
        names: of the programs.
        python: the path of Python where they run.
        seen: the folder where they run, if that is not the same.

    """
    client = resources.files("tailtrim.pos.library.poslib").joinpath(_CLIENT_SOURCE)
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / _CLIENT).write_text(client.read_text("utf-8"), "utf-8")
    there = f"{seen or folder}/{_CLIENT}"
    for name in names:
        place = folder / "bin" / name
        start = f"exec {shlex.quote(python)} -I -S {shlex.quote(there)} {name}"
        place.write_text(f'#!/bin/sh\n{start} "$@"\n', "utf-8")
        place.chmod(0o755)
