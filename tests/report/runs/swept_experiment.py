"""An experiment that sweeps the rate, made up: a device and the wire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from synthetic import run_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RATES = (10_000, 20_000, 40_000)


def latencies(base_ns: int, samples: int = 300) -> list[int | None]:
    """Latencies of about as much, none like the one before; few packets take 20 µs more."""
    return [base_ns + 10 * (n * 31 % 50) + (20_000 if n % 150 == 7 else 0) for n in range(samples)]


def swept(device: str = "forward") -> list[tuple[str, int, list[int | None]]]:
    """The wire and a device at each rate, the device slower with the rate."""
    return [
        run
        for rate in RATES
        for run in (("wire", rate, latencies(2_000)), (device, rate, latencies(3_000 + rate // 10)))
    ]


def experiment_of(  # noqa: PLR0913 - options, each with a default
    folder: Path,
    runs: Sequence[tuple[str, int, Sequence[int | None]]],
    *,
    invalid: Sequence[int] = (),
    problems: Sequence[dict[str, Any]] = (),
    repetitions: Sequence[int] = (),
    vary_device: bool = False,
) -> Path:
    """Lay out an experiment: each run is (device, rate, latencies), and its outcome."""
    place = folder / "swept"
    outcomes: list[dict[str, Any]] = []
    for number, (dut, rate, latencies_ns) in enumerate(runs):
        run = run_of(folder, latencies_ns, name=f"swept/run-{number:03d}")
        floor = dut == "wire"
        loop = {"rate": rate} | ({"dut": dut} if vary_device and not floor else {})
        repetition = repetitions[number] if repetitions else 0
        told = {"loop": loop, "repetition": repetition, "traffic": {"rate_pps": rate}}
        (run.path / "loop.json").write_text(json.dumps(told))
        doubts = ["the generator was late"] if number in invalid else []
        outcome = {"run": run.name, "label": f"{dut} rate={rate}", "floor": floor}
        outcomes.append(outcome | {"invalid": doubts, "failed": None})
    record = {
        "schema": "tailtrim.experiment/1",
        "plan": {"name": "tail-of-forward"},
        "began": "2026-11-22T08:48:12+00:00",
        "host": {"kernel": "6.12.0", "machine": "x86_64", "cpus": 8, "model": "EPYC 7763"},
        "versions": {"tailtrim": "0.1.0"},
        "command": ["tailtrim", "run"],
        "outcomes": [*outcomes, *problems],
    }
    (place / "experiment.json").write_text(json.dumps(record))
    return place
