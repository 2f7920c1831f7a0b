"""Trials of a simulated device as runs of an experiment, without a testbed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from simulated_devices import Server
from unwired import GENERATED, write_pcap

import tailtrim
from tailtrim.results.experiments import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.capacity.runner import Trials
    from tailtrim.laboratory.experiment import Listener
    from tailtrim.laboratory.plan import Run


class Simulated:
    """A stand-in for :func:`tailtrim.laboratory.experiment.conduct`: a server of 1,000 packets/s.

    Before the run of the number ``breaks`` it is killed: with ``late`` when the run directory is
    there, before anything is recorded of it. Above ``cold_pps`` it loses three of
    the first packets, or all of the first ``deaf_s``. With ``wakes_ns`` it falls asleep within 3 ms
    without a packet, and takes so long to wake up.
    """

    def __init__(
        self,
        *,
        breaks: int | None = None,
        late: bool = False,
        cold_pps: int | None = None,
        deaf_s: float = 0.0,
        wakes_ns: int = 0,
    ) -> None:
        self.breaks, self.late, self.cold_pps = breaks, late, cold_pps
        self.deaf_s, self.wakes_ns = deaf_s, wakes_ns
        self.invalid: tuple[str, ...] = ()
        self.failed: str | None = None
        self.ran: list[str] = []

    def __call__(
        self,
        experiment: Trials,
        listener: Listener,
        following: Callable[[], Run | None],
    ) -> None:
        experiment.save()
        waiting = experiment.missing()
        while True:
            if waiting:
                run = waiting.pop(0)
            elif (one := following()) is not None:
                experiment.runs.append(run := one)
            else:
                return
            listener.progress(run, "measuring")
            if run.number == self.breaks and not self.late:
                raise KeyboardInterrupt
            outcome = self._run(experiment, run)
            if run.number == self.breaks:
                raise KeyboardInterrupt
            experiment.add(outcome)
            listener.run_ended(run, outcome)

    def _run(self, experiment: Trials, run: Run) -> Outcome:
        self.ran.append(run.folder)
        outcome = Outcome(run.folder, run.label, run.floor, self.invalid, self.failed)
        if self.failed:
            return outcome
        place = experiment.path / run.folder
        pps = run.traffic.rate_pps or 0
        server = Server(
            np.random.default_rng(run.number), served_pps=1_000.0, buffer=20, noise=0.02
        )
        packets = round(pps * run.traffic.duration_s)
        latency_s = server.latency(pps, packets)
        sent = [(10**9 + n * 10**9 // pps, n) for n in range(packets)]
        woken_ns = self.wakes_ns * (pps * 0.003 < 1)
        left = [
            (at + round(late * 1e9) + woken_ns, n)
            for (at, n), late in zip(sent, latency_s.tolist(), strict=True)
            if np.isfinite(late)
            and not (
                pps > (self.cold_pps or pps)
                and (n < self.deaf_s * pps if self.deaf_s else n in {1, 3, 5})
            )
        ]
        ends = experiment.path.parent / "ingress.pcap", experiment.path.parent / "egress.pcap"
        for path, frames in zip(ends, (sent, sorted(left)), strict=True):
            write_pcap(path, frames)
        tailtrim.analyze(*ends, skip_s=0, quantiles=experiment.quantiles, out=place)
        counted = {"due": packets, "sent": packets, "intended_pps": pps, "achieved_pps": pps}
        records: dict[str, Any] = {
            "generator": GENERATED | counted,
            "loop": run.model_dump(mode="json"),
            "outcome": asdict(outcome),
        }
        for name, value in records.items():
            (place / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
        return outcome


def plan(folder: Path, text: str = "") -> Path:
    """Write the plan of such a search."""
    place = folder / "plan.yml"
    traffic = "traffic: {rate_pps: 2000, duration_s: 1}\n"
    told = (
        f"name: much\ndut: {{preset: forward}}\nskip_s: 0\n{'' if 'traffic' in text else traffic}"
    )
    place.write_text(told + text, encoding="utf-8")
    return place
