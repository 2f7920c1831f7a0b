"""A log of requests as a folder of pos: its script makes the same calls.

The log has when requests came, not when commands ended. So the script waits where it has to be
assumed that the original did. Commands (or boots) that follow each other on different nodes run at
the same time. A further one on a node waits for the one there, and for all that began before that;
all else waits for all.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError, PlanError
from tailtrim.pos.recording import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tailtrim.pos.recording import Entry, Recording

SCRIPT = "experiment.sh"
# A command that fails (1) does not end the experiment: why the original went on is not in the log.
_HEAD = """#!/bin/bash
# Made of a log of requests: the number of each entry stands behind its call.
set -e
declare -A pending
ended() {
    for one in ${pending[$1]}; do wait "$one" || [ $? -eq 1 ] || exit 2; done
}
"""
_AT_ONCE = (Kind.RESET, Kind.LAUNCH)


def renamed(recording: Recording, nodes: Sequence[str]) -> dict[str, str]:
    """Return the nodes that take the place of those of the log, in their order.

    Raises:
        PlanError: there are more or fewer, or one is named twice.

    """
    there = list(nodes) or recording.nodes
    if len(there) != len(recording.nodes) or len(set(there)) != len(there):
        expected = f"expected {len(recording.nodes)}, for {', '.join(recording.nodes)}"
        raise PlanError(f"{recording.place}: {len(set(there))} nodes, {expected}")
    return dict(zip(recording.nodes, there, strict=True))


def write(recording: Recording, nodes: Mapping[str, str], folder: Path) -> Path:
    """Write the folder, and return its script.

    Args:
        recording: the log.
        nodes: which node takes the place of each, as :func:`renamed` has it.
        folder: where to; it is made.

    Raises:
        OutputError: it cannot be written.

    """
    lines = _lines(recording.entries, nodes)
    script = folder / SCRIPT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for entry in recording.entries:
            if entry.kind is Kind.VARIABLES:
                text = json.dumps(entry.value, indent=2) + "\n"
                (folder / _file(entry)).write_text(text, "utf-8")
            elif entry.kind is Kind.LAUNCH:
                (folder / _file(entry)).write_text(entry.value, "utf-8", newline="")
        script.write_text(_HEAD + "".join(f"{line}\n" for line in lines), "utf-8")
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from error
    return script


def _lines(entries: Sequence[Entry], nodes: Mapping[str, str]) -> Iterator[str]:
    """Yield the calls of the script, and where it waits for those before."""
    pending: dict[int, Entry] = {}
    for entry in entries:
        for number in _awaited(entry, pending):
            del pending[number]
            yield f"ended {number}"
        for words in _words(entry, [nodes[one] for one in entry.nodes]):
            call = f"pos {shlex.join(words)}"
            if entry.kind in _AT_ONCE:
                pending[entry.number] = entry
                call = f'{call} & pending[{entry.number}]+=" $!"'
            yield f"{call} # {entry.number}"
    yield from (f"ended {number}" for number in pending)


def _awaited(entry: Entry, pending: Mapping[int, Entry]) -> list[int]:
    """Return which entries have to have ended before this one."""
    if entry.kind is Kind.AWAIT:
        return [entry.value] if entry.value in pending else []
    if entry.kind not in _AT_ONCE or any(one.kind is not entry.kind for one in pending.values()):
        return list(pending)
    busy = [number for number, one in pending.items() if set(one.nodes) & set(entry.nodes)]
    return [number for number in pending if number <= max(busy, default=0)]


def _words(entry: Entry, nodes: Sequence[str]) -> Iterator[list[str]]:
    """Yield what is behind ``pos`` for an entry: a call for each node, or one for all."""
    if entry.kind is Kind.ALLOCATE:
        yield ["allocations", "allocate", *nodes]
    for node in nodes:
        if entry.kind is Kind.VARIABLES:
            yield ["allocations", "set_variables", *entry.options, node, _file(entry)]
        elif entry.kind is Kind.IMAGE:
            yield ["nodes", "image", *entry.options, node, entry.value]
        elif entry.kind is Kind.RESET:
            yield ["nodes", "reset", node]
        elif entry.kind is Kind.LAUNCH:
            named = ["--quiet", "--name", entry.name, "--infile", _file(entry)]
            yield ["commands", "launch", *named, *entry.options, node]


def _file(entry: Entry) -> str:
    """Return the name of an entry's file; the first line tells the language of a script."""
    kind = "variables.json" if entry.kind is Kind.VARIABLES else entry.name.replace(".", "_")
    return f"{entry.number:04d}-{kind}"
