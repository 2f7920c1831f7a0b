"""A search whose trials are runs of made-up packets: the device is a world of known effects."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simulated_worlds import World
from synthetic import run_of

from tailtrim.laboratory.trim.observation import observation, with_power
from tailtrim.laboratory.trim.search import Search
from tailtrim.laboratory.trim.state import State
from tailtrim.laboratory.trim.trial import Candidate, Observation, Settings
from tailtrim.results.experiments import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

P = "0.99"
SETTINGS = Settings(trials=90)
#: Two that help (one of them polls and takes power), and one that does nothing.
WORLD = World(
    groups={"cpu": ("polling", "neighbour"), "interface": ("batches",)},
    alone={"polling": -0.5, "neighbour": -0.8},
    together={},
    sigma=0.08,
)
#: W, by the changes that take power.
WATTS = {"polling": 4.0, "batches": 1.0}
IDLE_W = 40.0
_PACKETS = 400
_SLOW = 12


def searched(
    folder: Path,
    world: World = WORLD,
    *,
    watts: Mapping[str, float] | None = None,
    takes: Mapping[str, str] | None = None,
) -> Path:
    """Search, and lay out its directory as ``tailtrim trim`` does.

    Args:
        folder: for all files.
        world: the effects of changes.
        watts: the power that changes take; ``None``: no meter was read.
        takes: CPUs that changes take away.

    """
    place = folder / "search"
    rng = random.Random(1)  # noqa: S311 - noise, not a secret
    given = takes or {}
    candidates = [
        Candidate(one.name, one.group, takes=given.get(one.name, "")) for one in world.candidates
    ]
    search = Search(candidates, SETTINGS)
    outcomes = []
    while search.trial is not None:
        trial = search.trial
        name = f"run-{trial.number:03d}"
        drawn = latencies(world.run(trial, rng), rng)
        run = run_of(folder, drawn, name=f"search/{name}")
        dut = {"preset": "forward", "mode": "poll" if "polling" in trial.changes else "wait"}
        told = {"loop": dict.fromkeys(trial.changes, "applied"), "repetition": 0, "dut": dut}
        (run.path / "loop.json").write_text(json.dumps(told))
        if watts is not None:
            mean_w = IDLE_W + sum(watts.get(one, 0.0) for one in trial.changes) + rng.gauss(0, 0.2)
            (run.path / "energy.json").write_text(json.dumps(_energy(mean_w)))
        outcome = {"run": name, "label": f"trial {trial.number}", "floor": False}
        outcomes.append(outcome | {"invalid": [], "failed": None})
        seen = observation(Outcome(name, name, floor=False), run.summary, P)
        search.tell(replace(with_power(seen, run.path, None), seconds=8.0))
    State(P, SETTINGS, candidates).save(place, search.seen, search.result)
    _record(place, outcomes)
    return place


def latencies(seen: Observation, rng: random.Random) -> list[int | None]:
    """Return latencies around 20 µs; a few packets take what the world says."""
    assert seen.tail_ns is not None
    found: list[int | None] = [round(20_000 * math.exp(rng.gauss(0, 0.1))) for _ in range(_PACKETS)]
    for place in range(_SLOW):
        found[place * (_PACKETS // _SLOW)] = round(seen.tail_ns * (0.8 + 0.06 * place))
    return found


def _energy(watts: float) -> dict[str, Any]:
    state = {"watts": watts, "type_b_w": 0.05, "duration_s": 3.0, "problem": None}
    node = {"meter": "powercap", "accuracy_percent": 1.0, "states": {"loaded": state}}
    return {"schema": "tailtrim.energy/1", "packets_per_s": 10_000.0, "nodes": {"local": node}}


def _record(place: Path, outcomes: list[dict[str, Any]]) -> None:
    record = {
        "schema": "tailtrim.experiment/1",
        "plan": {"name": "trim"},
        "began": "2026-11-22T08:48:12+00:00",
        "host": {"kernel": "6.12.0", "machine": "x86_64", "cpus": 8, "model": "EPYC 7763"},
        "versions": {"tailtrim": "0.1.0"},
        "command": ["tailtrim", "trim", "trim"],
        "outcomes": outcomes,
    }
    (place / "experiment.json").write_text(json.dumps(record))
