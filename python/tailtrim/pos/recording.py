"""The log of requests that newer result folders of pos have: what their experiment asked for.

pos calls it the experiment recording: a JSON list of ``{timestamp, request, data}``. It is not
documented; the requests that are read here are those of published folders (see ``docs/pos.md``).
It is untrusted: sizes are bounded, names of nodes and commands may not be paths, base85 is strict.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tailtrim.errors import PlanError
from tailtrim.pos.naming import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Where a result folder has it: pos until about March 2025, and since.
PLACES = ("scripts/experiment.json", "experiment_recording.json")
_MOST_BYTES, _MOST_ENTRIES, _MOST_NODES, _LARGEST_SCRIPT = 64_000_000, 10_000, 100, 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_IMAGE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@/+-]{0,199}")
_ENTRY_KEYS = {"timestamp", "request", "data", "cmd_ids"}


class Outcome(StrEnum):
    """What becomes of an entry."""

    REPLAYED = "replayed"
    NOT_NEEDED = "not needed here"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    """What an entry asks for."""

    ALLOCATE = "allocate"
    VARIABLES = "variables"
    IMAGE = "image"
    RESET = "reset"
    LAUNCH = "launch"
    AWAIT = "await"


@dataclass(slots=True)
class Entry:
    """An entry that is replayed: its number in the log from 1 on, and what it asks for."""

    number: int
    kind: Kind
    nodes: list[str] = field(default_factory=list)
    #: Options of the verb, as words.
    options: list[str] = field(default_factory=list)
    #: Variables, the image, the script, or the entry whose commands are awaited.
    value: Any = None
    name: str = UNNAMED


@dataclass(slots=True)
class Recording:
    """A log: ``problems`` says by entry what is unknown of it."""

    place: Path
    nodes: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Say how many entries have which outcome."""
        counted = ", ".join(f"{self.outcomes[one]} {one}" for one in Outcome)
        return f"{self.outcomes.total()} entries: {counted}"


class _UnknownError(Exception):
    """An entry, or a part of it, is not known."""


def read(results: Path) -> Recording:
    """Read the log of a result folder.

    Args:
        results: the folder, or the log itself.

    Raises:
        PlanError: it has no log, or one that cannot be read or is too long.

    """
    place = results
    if results.is_dir():
        found = [results / name for name in PLACES if (results / name).is_file()]
        if not found:
            told = f"has no log of requests, expected {' or '.join(PLACES)}"
            raise PlanError(f"{results}: {told} (results of pos before 2025 have none)")
        place = found[0]
    raw = _json_of(place)
    if not isinstance(raw, list) or len(raw) > _MOST_ENTRIES:
        told = f"expected a list of at most {_MOST_ENTRIES:,} requests"
        raise PlanError(f"{place}: {told}")
    reading = _Reading(Recording(place))
    for number, one in enumerate(raw, start=1):
        reading.take(number, one)
    if not reading.recording.nodes:
        raise PlanError(f"{place}: allocates no nodes, expected {_ALLOCATE}?nodes=NODE")
    return reading.recording


def _json_of(place: Path) -> Any:
    try:
        if not place.is_file():
            raise PlanError(f"{place}: not a file")
        with place.open("rb") as file:
            found = file.read(_MOST_BYTES + 1)
        if len(found) > _MOST_BYTES:
            raise PlanError(f"{place}: longer than {_MOST_BYTES:,} bytes")
        return json.loads(found)
    except OSError as error:
        raise PlanError(f"{place}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{place}: not JSON ({error})") from error


class _Reading:
    """Reads entries one after the other: some name what was before."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._commands: dict[str, int] = {}

    def take(self, number: int, raw: Any) -> None:
        """Take an entry in, with its outcome."""
        recording = self.recording
        try:
            outcome = self._taken(number, raw)
        except _UnknownError as error:
            request = raw.get("request") if isinstance(raw, dict) else None
            told = str(request)[:200] if request is not None else "no request"
            recording.problems.append(f"entry {number}: {told}: {error}")
            outcome = Outcome.UNKNOWN
        recording.outcomes[outcome] += 1

    def _taken(self, number: int, raw: Any) -> Outcome:
        if not isinstance(raw, dict) or not isinstance(raw.get("request"), str):
            raise _UnknownError("expected {timestamp, request, data}")
        try:
            parts = urlsplit(raw["request"])
        except ValueError as error:
            raise _UnknownError("invalid request") from error
        way = parts.path.strip("/").split("/")
        verb, target = "/".join(way[:2]), way[2:]
        if verb in _NOT_NEEDED:
            return Outcome.NOT_NEEDED
        if verb not in _READERS or parts.scheme or parts.netloc:
            known = ", ".join(f"/{one}" for one in _READERS)
            raise _UnknownError(f"unknown request, expected one of {known}")
        _only(raw, _ENTRY_KEYS)
        named = [*target, *parse_qs(parts.query, max_num_fields=_MOST_NODES).get("nodes", [])]
        entry = _READERS[verb](self, number, named, raw)
        entry.number = number
        self.recording.entries.append(entry)
        return Outcome.REPLAYED

    def _nodes(self, named: list[str]) -> list[str]:
        """Return the nodes of a request, all of which are allocated."""
        for name in named:
            if name not in self.recording.nodes:
                raise _UnknownError(f"{name[:100]!r} is not a node that the log allocates")
        if not named:
            raise _UnknownError("names no node")
        return named

    def allocate(self, number: int, named: list[str], raw: dict[str, Any]) -> Entry:
        """Read which nodes are allocated."""
        if raw.get("data") not in (None, {}):
            raise _UnknownError("unknown data, expected none")
        if self.recording.nodes:
            raise _UnknownError("a second allocation, expected one in a log")
        if not 0 < len(named) <= _MOST_NODES or any(_NAME.fullmatch(one) is None for one in named):
            raise _UnknownError("expected names of nodes")
        self.recording.nodes = list(dict.fromkeys(named))
        return Entry(number, Kind.ALLOCATE, self.recording.nodes)

    def variables(self, number: int, named: list[str], raw: dict[str, Any]) -> Entry:
        """Read variables."""
        data = _data(raw, {"global", "loop", "variables"})
        given, as_global, as_loop = data.get("variables"), data.get("global"), data.get("loop")
        if not isinstance(given, dict) or (as_global and as_loop):
            raise _UnknownError("expected variables, which are local, global or of the loop")
        kind = ["--as-global"] if as_global else ["--as-loop"] if as_loop else []
        return Entry(number, Kind.VARIABLES, self._nodes(named), kind, given)

    def image(self, number: int, named: list[str], raw: dict[str, Any]) -> Entry:
        """Read an image."""
        data = _data(raw, {"image", "staging"})
        if not isinstance(data.get("image"), str) or _IMAGE.fullmatch(data["image"]) is None:
            raise _UnknownError("expected the name of an image")
        options = ["--staging"] if data.get("staging") else []
        return Entry(number, Kind.IMAGE, self._nodes(named), options, data["image"])

    def reset(self, number: int, named: list[str], raw: dict[str, Any]) -> Entry:
        """Read a boot: who may log in afterwards does not matter here."""
        _data(raw, {"queued", "access_levels"})
        return Entry(number, Kind.RESET, self._nodes(named))

    def launch(self, number: int, named: list[str], raw: dict[str, Any]) -> Entry:
        """Read a command."""
        data = _data(raw, _LAUNCH_KEYS)
        if data.get("type") != "execfile":
            raise _UnknownError(f"a command of type {data.get('type')!r}, expected 'execfile'")
        name = data.get("id") or UNNAMED
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise _UnknownError(f"the name {str(name)[:100]!r} is not one of a file")
        for one in _list(raw, "cmd_ids"):
            self._commands[str(one)] = number
        options = [] if data.get("logging", True) else ["--no-logging"]
        if data.get("loop_variables"):
            options += ["--loop", *_runs(data)]
        script = _script(data.get("file"))
        return Entry(number, Kind.LAUNCH, self._nodes(named), options, script, name)

    def await_(self, number: int, named: list[str], raw: dict[str, Any]) -> Entry:
        """Read for which command is waited."""
        del raw
        if len(named) != 1 or named[0] not in self._commands:
            raise _UnknownError("waits for a command that no entry before launched")
        return Entry(number, Kind.AWAIT, value=self._commands[named[0]])


def _only(given: dict[str, Any], known: set[str]) -> None:
    other = sorted(given.keys() - known)
    if other:
        expected = ", ".join(sorted(known))
        raise _UnknownError(f"unknown key {other[0][:100]!r}, expected one of {expected}")


def _data(raw: dict[str, Any], known: set[str]) -> dict[str, Any]:
    data = raw.get("data")
    if not isinstance(data, dict):
        raise _UnknownError("has no data")
    _only(data, known)
    return data


def _list(given: dict[str, Any], key: str) -> list[Any]:
    found = given.get(key)
    return found if isinstance(found, list) else []


def _runs(data: dict[str, Any]) -> list[str]:
    """Return options for the runs that a command was repeated for, if it was not for all."""
    only, first, last = _list(data, "loop_only"), data.get("loop_from"), data.get("loop_to")
    numbers = [one for one in (*only, first, last) if one is not None]
    if any(type(one) is not int or one < 0 for one in numbers):
        raise _UnknownError("loop_only, loop_from and loop_to: expected numbers of runs")
    if len(only) > 1:
        raise _UnknownError("loop_only: several runs, expected at most one")
    if only:
        return [f"--loop-only={only[0]}"]
    options = [f"--loop-from={first}"] if first else []
    return options + ([f"--loop-to={last}"] if last is not None else [])


def _script(given: Any) -> str:
    """Return a script that is told in base85, as Python encodes it."""
    if not isinstance(given, str):
        raise _UnknownError("has no file")
    if len(given) > _LARGEST_SCRIPT * 5 // 4 + 5:
        raise _UnknownError(f"the file is longer than {_LARGEST_SCRIPT:,} bytes")
    try:
        decoded = base64.b85decode(given)
        text = decoded.decode("utf-8")
    except ValueError as error:
        raise _UnknownError(f"the file is not text in base85 ({error})") from error
    # Python reads beyond what its encoder writes: a rest of one character, other last digits.
    if base64.b85encode(decoded).decode() != given:
        raise _UnknownError("the file is not in base85: it is not what its bytes are encoded to")
    return text


_ALLOCATE = "/allocations/allocate"
_LAUNCH_KEYS = {
    *("logging", "queued", "loop_variables", "loop_from", "loop_to", "loop_only", "type", "file"),
    *("id", "files"),
}
_READERS: dict[str, Callable[[_Reading, int, list[str], dict[str, Any]], Entry]] = {
    "allocations/allocate": _Reading.allocate,
    "allocations/set_variables": _Reading.variables,
    "nodes/image": _Reading.image,
    "nodes/reset": _Reading.reset,
    "commands/launch": _Reading.launch,
    "commands/await": _Reading.await_,
}
#: What only asks, or gives the nodes back, which they are here in any case.
_NOT_NEEDED = {
    *("allocations/show", "allocations/list", "allocations/get", "allocations/free"),
    *("nodes/show", "nodes/list", "commands/show", "commands/list"),
}
