"""The names of the files in a result folder of pos, in both layouts that are published.

::

    2020                                    2026
    config/allocation.json                  config/allocation.json
    config/<node>.json                      config/<time>_variables.json
                                            config/<node>/{hardware,topology}.json
    <node>/<time>_<name>.{file,stdout,…}    scripts/<node>/<time>_<name>.{file,stdout,…}
    <node>/<upload>                         files/<node>/<upload>

A command that is repeated for each run has ``_runNNN`` behind its name, and so have the files that
it uploads for a run: before the first dot, with as many digits as the highest run number.
"""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

CONFIG, SCRIPTS, FILES = "config", "scripts", "files"
ALLOCATION, VARIABLES = "allocation.json", "variables.json"
HARDWARE, TOPOLOGY = "hardware.json", "topology.json"

#: What interrupted runs left, where evaluations do not find it.
INTERRUPTED = "interrupted"
#: What a ``.status`` file says.
FINISHED, ERROR = "finished", "error"
#: The name of a command that has none.
UNNAMED = "unknown"

_RUN = re.compile(r"_run(\d+)(?=\.|$)")
_CAPTURE = re.compile(r"\.(pcap|pcapng|mscap)(\.(zst|gz|xz|bz2))?$")
_SIDES = {
    "ingress": frozenset({"pre", "ingress", "in", "before"}),
    "egress": frozenset({"post", "egress", "out", "after"}),
}


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

        A pair has the same name but for ``pre`` and ``post``, ``ingress`` and ``egress``, ``in``
        and ``out`` or ``before`` and ``after``; both may be of different nodes.
        """
        sides: dict[tuple[int | None, str], dict[str, Path]] = {}
        top = self.folder / FILES if self.published is Published.NEW else self.folder
        for path in sorted(top.rglob("*")) if top.is_dir() else ():
            side = side_of(path.name) if path.is_file() else None
            if side is not None:
                sides.setdefault((run_of(path.name), side[1]), {}).setdefault(side[0], path)
        for (run, name), found in sorted(sides.items(), key=_by_run):
            if len(found) == len(_SIDES):
                yield Pair(run, name, found["ingress"], found["egress"])


def _by_run(item: tuple[tuple[int | None, str], object]) -> tuple[int, str]:
    (run, name), _ = item
    return -1 if run is None else run, name


def stamp(moment: datetime) -> str:
    """Return a time as names of files have it.

    >>> from datetime import datetime
    >>> stamp(datetime(2026, 6, 30, 16, 35, 26, 7))
    '2026-06-30_16-35-26_000007'

    """
    return f"{moment:%Y-%m-%d_%H-%M-%S_%f}"


def run_suffix(run: int, runs: int) -> str:
    """Return what names have of a run, of so many.

    >>> run_suffix(3, 4), run_suffix(3, 11), run_suffix(3, 138)
    ('_run3', '_run03', '_run003')

    """
    return f"_run{run:0{len(str(runs - 1))}d}"


def of_run(name: str, suffix: str) -> str:
    """Return the name of an upload of a run.

    >>> of_run("latencies-pre.pcap.zst", "_run007"), of_run("logs", "_run007")
    ('latencies-pre_run007.pcap.zst', 'logs_run007')

    """
    stem, dot, rest = name.partition(".")
    return f"{stem}{suffix}{dot}{rest}"


def run_of(name: str) -> int | None:
    """Return the run in the name of a file; ``None`` where it has none.

    >>> run_of("throughput_run007.log"), run_of("pre.pcap_run0.zst"), run_of("setup.log")
    (7, 0, None)

    """
    found = _RUN.search(name)
    return int(found[1]) if found else None


def side_of(name: str) -> tuple[str, str] | None:
    """Return on which side a capture was taken, and the name of the pair; else ``None``.

    >>> side_of("latencies-pre_run007.pcap.zst"), side_of("notes.txt")
    (('ingress', 'latencies'), None)

    """
    plain = _RUN.sub("", name)
    if _CAPTURE.search(plain) is None:
        return None
    words = re.split(r"([-_.])", _CAPTURE.sub("", plain))
    for side, known in _SIDES.items():
        for number, word in enumerate(words):
            if word.lower() in known:
                rest = words[: max(number - 1, 0)] + words[number + 1 :]
                return side, "".join(rest).strip("-_.")
    return None
