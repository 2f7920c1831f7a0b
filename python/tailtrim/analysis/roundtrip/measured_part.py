"""Words for the part of a round trip that the numbers of ``tailtrim ping`` are of, and to whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tailtrim import units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailtrim.results import RunDirectory

_LEVELS = {
    "application": "from the sending application to itself",
    "arrival": "from the sending application to the kernel's stamp of the reply",
    "software": "between the kernel's stamps at sending and receiving",
    "hardware": "between the stamps of the NIC",
}


def part(stream: Mapping[str, Any]) -> str:
    """Return a clause on the part, with what the application sees where that is another.

    Args:
        stream: the target, as ``ping.json`` has it, with the level of the stamps.

    >>> spread = {"samples": 5, "ns": {"p99": 3_200_000}}
    >>> told = part({"target": "10.0.0.2:862", "protocol": "stamp", "level": "software",
    ...              "parts": {"residence": {"samples": 5}, "application": spread}})
    >>> told.partition("; ")[2]
    'all of it, for the application, is 3.20 ms at p99'

    """
    parts, level = stream["parts"], stream["level"]
    told = f"{stream['protocol']} to {stream['target']}, {_LEVELS.get(level, level)}"
    residence = bool(parts["residence"]["samples"])
    if residence:
        told += ", without the time in the far host"
    whole = parts["application"]
    if whole["samples"] and (level != "application" or residence):
        told += f"; all of it, for the application, is {units.time(whole['ns']['p99'])} at p99"
    return units.printable(told)


def of_run(run: RunDirectory) -> str | None:
    """Return the clause on a run of ``tailtrim ping``; ``None`` of any other."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - takes longer to import than most commands run

    if "roundtrip" not in run.tables:
        return None
    kept = (pq.read_schema(run.table_path("roundtrip")).metadata or {}).get(b"tailtrim.ping")
    try:
        return None if kept is None else part(json.loads(kept))
    except (ValueError, KeyError, TypeError):
        # Of another version: nothing is said.
        return None
