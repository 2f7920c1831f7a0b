"""The folders of results of pos, in both layouts that are published.

::

    2020                                    2026
    config/allocation.json                  config/allocation.json
    config/<node>.json                      config/<time>_variables.json
                                            config/<node>/{hardware,topology}.json
    <node>/<time>_<name>.{file,stdout,…}    scripts/<node>/<time>_<name>.{file,stdout,…}
    <node>/<upload>                         files/<node>/<upload>
    energy/<node>/<name>.csv                energy/<node>/<name>.csv
"""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim.pos.naming import run_of, side_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CONFIG, SCRIPTS, FILES, ENERGY = "config", "scripts", "files", "energy"
ALLOCATION, VARIABLES = "allocation.json", "variables.json"
HARDWARE, TOPOLOGY = "hardware.json", "topology.json"

#: What interrupted runs left, where evaluations do not find it.
INTERRUPTED = "interrupted"


class Published(StrEnum):
    """The years of the layouts, by which they are called."""

    OLD = "2020"
    NEW = "2026"


class Pair(NamedTuple):
    """The captures of a run: ``name`` tells several pairs of one run apart."""

    run: int | None
    name: str
    ingress: Path
    egress: Path


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of an allocation are."""

    folder: Path
    published: Published = Published.NEW

    @property
    def config(self) -> Path:
        """The folder of what was set."""
        return self.folder / CONFIG

    def scripts(self, node: str) -> Path:
        """Return the folder of a node's commands and what they printed."""
        new = self.published is Published.NEW
        return self.folder / SCRIPTS / node if new else self.folder / node

    def files(self, node: str) -> Path:
        """Return the folder of what a node uploaded."""
        new = self.published is Published.NEW
        return self.folder / FILES / node if new else self.folder / node

    def energy(self, node: str) -> Path:
        """Return the folder of what pos_energy measured of a node."""
        return self.folder / ENERGY / node

    def printed(self, output: bytes) -> bytes:
        """Return what a command printed as it is stored: 2020 as Python writes bytes."""
        return output if self.published is Published.NEW else repr(output).encode()

    def read_printed(self, place: Path) -> str:
        """Return what a command printed, from the file that it is stored in."""
        stored = place.read_bytes() if place.exists() else b""
        if self.published is Published.OLD and stored.startswith((b"b'", b'b"')):
            with suppress(ValueError, SyntaxError):
                stored = ast.literal_eval(stored.decode())
        return stored.decode("utf-8", "replace")

    def loop(self, values: Mapping[str, Any]) -> str:
        """Return the loop variables of a run as they are stored."""
        return json.dumps(values, indent=2 if self.published is Published.NEW else None)

    def captures(self) -> Iterator[Pair]:
        """Yield the pairs of captures that the names of files tell, in the order of the runs.

        The captures of a pair may be of different nodes.
        """
        sides: dict[tuple[int | None, str], dict[str, Path]] = {}
        top = self.folder / FILES if self.published is Published.NEW else self.folder
        for path in sorted(top.rglob("*")) if top.is_dir() else ():
            if INTERRUPTED in path.relative_to(self.folder).parts[:1]:
                continue
            side = side_of(path.name) if path.is_file() else None
            if side is not None:
                sides.setdefault((run_of(path.name)[0], side[1]), {}).setdefault(side[0], path)
        for (run, name), found in sorted(sides.items(), key=_by_run):
            if len(found) == 2:  # noqa: PLR2004 - both sides
                yield Pair(run, name, found["ingress"], found["egress"])


def _by_run(item: tuple[tuple[int | None, str], object]) -> tuple[int, str]:
    (run, name), _ = item
    return -1 if run is None else run, name
