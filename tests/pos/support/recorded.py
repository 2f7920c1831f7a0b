"""Logs of requests in the form of published result folders of pos (2025 and 2026)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SETUP = """#!/bin/bash
set -e
echo "$(pos_get_variable hostname) says $(pos_get_variable greeting -g)"
"""
MEASUREMENT = """#!/bin/bash
set -e
pos_sync
pos_get_variable -l size >size.txt
pos_upload -l size.txt
pos_sync
"""


def entry(request: str, data: Any = None) -> dict[str, Any]:
    return {"timestamp": "2026-01-20T12:29:40.665362", "request": request, "data": data}


def variables(node: str, given: dict[str, Any], kind: str = "global") -> dict[str, Any]:
    data = {"global": kind == "global", "loop": kind == "loop", "variables": given}
    return entry(f"/allocations/set_variables/{node}", data)


def reset(node: str) -> dict[str, Any]:
    return entry(f"/nodes/reset/{node}", {"queued": False, "access_levels": ["user"]})


def launch(node: str, name: str, script: str, **other: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "logging": True,
        "queued": False,
        "loop_variables": False,
        "loop_from": 0,
        "loop_to": None,
        "loop_only": [],
        "type": "execfile",
        "file": base64.b85encode(script.encode()).decode(),
        "id": name,
    }
    found = entry(f"/commands/launch?nodes={node}", data | other)
    return found | {"cmd_ids": [f"2026-01-20_12-29-43_828117_{name}_{node}"]}


def awaiting(node: str, name: str) -> dict[str, Any]:
    return entry(f"/commands/await/2026-01-20_12-29-43_828117_{name}_{node}")


def experiment() -> list[dict[str, Any]]:
    """Two nodes: a setup, then two runs of a measurement."""
    return [
        entry("/allocations/allocate?nodes=riga&nodes=vilnius"),
        variables("riga", {"greeting": "it's; $(false)"}),
        variables("riga", {"size": [64, 256]}, "loop"),
        entry("/nodes/image/riga", {"image": "debian-trixie@2025-09-05", "staging": True}),
        reset("riga"),
        reset("vilnius"),
        launch("riga", "setup", SETUP, queued=True),
        launch("vilnius", "setup", SETUP, queued=True),
        awaiting("riga", "setup"),
        launch("riga", "measurement", MEASUREMENT, loop_variables=True),
        launch("vilnius", "measurement", MEASUREMENT, loop_variables=True),
        entry("/allocations/free/riga"),
    ]


def results(place: Path, log: Any, name: str = "experiment_recording.json") -> Path:
    """Write a result folder that has a log."""
    log_place = place / "2026-01-20_12-29-40_302478" / name
    log_place.parent.mkdir(parents=True)
    log_place.write_text(log if isinstance(log, str) else json.dumps(log), "utf-8")
    return place / "2026-01-20_12-29-40_302478"
