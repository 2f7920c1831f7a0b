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

from tailtrim_pos.naming import run_of, side_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CONFIG, SCRIPTS, FILES, ENERGY = "config", "scripts", "files", "energy"
ALLOCATION, VARIABLES = "allocation.json", "variables.json"
HARDWARE, TOPOLOGY = "hardware.json", "topology.json"

#: Folder of what interrupted runs left, where evaluations do not find it.
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


class Unclear(NamedTuple):
    """Captures of a run with several of the same side and name, on several nodes."""

    run: int | None
    name: str
    captures: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of the files of an allocation."""

    folder: Path
    published: Published = Published.NEW

    @property
    def config(self) -> Path:
        """The folder of what was set."""
        return self.folder / CONFIG

    def scripts(self, node: str) -> Path:
        """Return the folder of a node's commands and their output."""
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

    def store_printed(self, base: Path) -> None:
        """Store what a command printed as the layout has it.

        ``base`` is the beginning of the names of its files.
        """
        for kind in ("stdout", "stderr"):
            place = base.with_name(f"{base.name}.{kind}")
            with suppress(OSError):
                printed = place.read_bytes()
                stored = self.printed(printed)
                if stored != printed and not printed.startswith((b"b'", b'b"')):
                    place.write_bytes(stored)

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

    def captures(self) -> Iterator[Pair | Unclear]:
        """Yield the pairs of captures that the names of files tell, in the order of the runs.

        Captures of one node belong together; the others are a pair of two nodes, if there are two.
        """
        sides: dict[tuple[int | None, str], dict[str, list[Path]]] = {}
        top = self.folder / FILES if self.published is Published.NEW else self.folder
        for path in sorted(top.rglob("*")) if top.is_dir() else ():
            if INTERRUPTED in path.relative_to(self.folder).parts[:1]:
                continue
            side = side_of(path.name) if path.is_file() else None
            if side is not None:
                known = sides.setdefault((run_of(path.name)[0], side[1]), {})
                known.setdefault(side[0], []).append(path)
        for (run, name), found in sorted(sides.items(), key=_by_run):
            yield from _pairs(run, name, found.get("ingress", []), found.get("egress", []))


def _pairs(
    run: int | None, name: str, ingress: list[Path], egress: list[Path]
) -> Iterator[Pair | Unclear]:
    """Yield the pairs of a run and name: those of each folder, then what is left."""
    folders = {path.parent: path for path in ingress}
    beside = {path.parent: path for path in egress}
    unique = len(folders) == len(ingress) and len(beside) == len(egress)
    both = [folder for folder in folders if folder in beside] if unique else []
    for folder in both:
        # Several nodes: their names tell the pairs apart.
        told = f"{folder.name}-{name}".strip("-") if len(both) > 1 else name
        yield Pair(run, told, folders[folder], beside[folder])
    one, other = ([path for path in side if path.parent not in both] for side in (ingress, egress))
    if len(one) == len(other) == 1:
        yield Pair(run, name, *one, *other)
    elif one and other:
        yield Unclear(run, name, (*one, *other))


def _by_run(item: tuple[tuple[int | None, str], object]) -> tuple[int, str]:
    (run, name), _ = item
    return -1 if run is None else run, name
