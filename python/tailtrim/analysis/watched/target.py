"""Targets of a watch: folders with minutes, of one host or of several."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RoundTripError
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "tailtrim.watch/1"
#: Kind of a target that tells none.
ROUND_TRIP = "round_trip"
_DESCRIBED = "target.json"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.jsonl\.zst")
#: So many names are listed in an error.
_LISTED = 8
#: As long as ``ping`` waits, where a target does not say it.
_TIMEOUT_NS = 2 * 10**9


@dataclass(frozen=True)
class Target:
    """A target of a watch.

    ``host`` is the name of the watch's folder, ``told`` what ``target.json`` says. ``fault`` says
    why that is unknown: minutes are read without it.
    """

    name: str
    host: str
    folder: Path
    told: dict[str, Any]
    fault: str = ""

    @property
    def kind(self) -> str:
        """Kind of what is measured: round trips, or another one that ``target.json`` names."""
        return str(self.told.get("kind", ROUND_TRIP))

    @property
    def timeout_ns(self) -> int:
        """Time after which a reply is late, or a packet is beyond the window."""
        told = self.told.get("timeout_ns", self.told.get("window_ns"))
        return told if type(told) is int and 0 < told <= 2**62 else _TIMEOUT_NS

    def days(self) -> list[Path]:
        """Return the files of its days, ascending.

        Raises:
            RoundTripError: the folder cannot be read.

        """
        try:
            return sorted(path for path in self.folder.iterdir() if _DAY.fullmatch(path.name))
        except OSError as error:
            raise RoundTripError(f"{self.folder}: cannot be read: {error.strerror}") from error


def is_target(folder: Path) -> bool:
    """Tell whether a folder is that of a target."""
    return (folder / _DESCRIBED).is_file() or _has_days(folder)


def is_watched(folder: Path) -> bool:
    """Tell whether a folder is that of a target, of a watch, or of the watches of several hosts."""
    return bool(folder.is_dir() and (is_target(folder) or _hosts(folder)))


def targets_of(folder: Path, host: str | None = None) -> list[Target]:
    """Return the target that a folder is, or all that are in it, by host and name.

    Args:
        folder: of a target, of a watch, or one with the folders of several watches.
        host: what to call the host, by default as the folder of the watch is called.

    Raises:
        RoundTripError: no folder of a target is there.

    """
    if is_target(folder):
        return [_described(folder, host or folder.resolve().parent.name)]
    found = [
        _described(target, host if host and watch == folder else watch.resolve().name)
        for watch in _hosts(folder)
        for target in _subfolders(watch)
        if is_target(target)
    ]
    if not found:
        raise RoundTripError(
            f"{folder}: expected the folder of a target or of a watch, with {_DESCRIBED} and days"
            f" such as 2026-11-29.jsonl.zst{_similar(folder)}"
        )
    return found


def _similar(folder: Path) -> str:
    """Return the targets beside a missing one."""
    names = [one.name for one in _subfolders(folder.parent) if is_target(one)]
    if folder.is_dir() or not names:
        return ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"; targets of {folder.parent}: {', '.join(names[:_LISTED])}{more}"


def _hosts(folder: Path) -> list[Path]:
    """Return the folders of watches that a folder is, or that are in it."""
    here = _subfolders(folder)
    if any(map(is_target, here)):
        return [folder]
    return [
        watch
        for watch in here
        if any((target / _DESCRIBED).is_file() for target in _subfolders(watch))
    ]


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def _has_days(folder: Path) -> bool:
    try:
        return any(_DAY.fullmatch(path.name) for path in folder.iterdir())
    except OSError:
        return False


def _described(folder: Path, host: str) -> Target:
    path = folder / _DESCRIBED
    fault, told = "", {}
    try:
        told = parsed(path.read_text(encoding="utf-8"))
        if not isinstance(told, dict):
            told, fault = {}, "not an object"
        elif told.get("schema") != SCHEMA:
            told, fault = {}, f"schema {told.get('schema')!r:.40}, expected {SCHEMA!r}"
    except FileNotFoundError:
        fault = "missing"
    except (OSError, ValueError) as error:
        fault = str(error)
    name = told.get("name")
    if not isinstance(name, str) or not name:
        name = folder.resolve().name
    return Target(_text(name), _text(host), folder, told, fault and f"{path}: {fault}")


def _text(name: str) -> str:
    """Return a name that can be written; one that is not UTF-8 is escaped."""
    return name.encode("utf-8", "backslashreplace").decode()
