"""Energy cost of an experiment's packets: :func:`costs_of`."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.energy import LOADED, costs, measured
from tailtrim.errors import RunDirectoryError
from tailtrim.results import RunDirectory
from tailtrim.results.experiments import RecordedRun, is_experiment, recorded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.analysis.energy import Cost, RunEnergy
    from tailtrim.analysis.energy.uncertainty import Estimate

#: The quantile of latency that watts are compared with.
P = "0.999"


@dataclass(frozen=True, slots=True)
class Trade:
    """Power against tail latency of a configuration, relative to the first one of its node.

    ``us_per_watt`` is by how many µs p99.9 is shorter for each watt more; ``None`` where the
    difference of the powers is not resolved.
    """

    label: str
    baseline: str
    node: str
    watts: Estimate
    p999_us: float
    us_per_watt: float | None


@dataclass(frozen=True, slots=True)
class ExperimentCosts:
    """Cost of each configuration; ``p999_us`` is the median of its runs, by its name.

    ``left_out`` are runs that do not count: invalid ones, and why.
    """

    costs: tuple[Cost, ...]
    p999_us: dict[str, float]
    left_out: tuple[str, ...] = ()

    @property
    def trades(self) -> list[Trade]:
        """Power against tail latency of each configuration, where both are known."""
        first: dict[str, Cost] = {}
        found = []
        for cost in self.costs:
            baseline = first.setdefault(cost.node, cost)
            one, other = cost.uncertain.get(LOADED), baseline.uncertain.get(LOADED)
            if cost is baseline or one is None or other is None:
                continue
            if cost.label not in self.p999_us or baseline.label not in self.p999_us:
                continue
            more = one.minus(other)
            shorter_us = self.p999_us[baseline.label] - self.p999_us[cost.label]
            resolved = abs(more.value) > more.expanded
            price = shorter_us / more.value if resolved else None
            trade = Trade(
                label=cost.label,
                baseline=baseline.label,
                node=cost.node,
                watts=more,
                p999_us=-shorter_us,
                us_per_watt=price,
            )
            found.append(trade)
        return found

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            "costs": [
                cost.as_json() | {"p99.9_us": self.p999_us.get(cost.label)} for cost in self.costs
            ],
            "trades": [
                {
                    "label": one.label,
                    "baseline": one.baseline,
                    "node": one.node,
                    "watts": one.watts.value,
                    "expanded_watts": one.watts.expanded,
                    "p99.9_us": one.p999_us,
                    "us_of_p99.9_per_watt": one.us_per_watt,
                }
                for one in self.trades
            ],
            "left_out": list(self.left_out),
        }


def costs_of(path: Path) -> ExperimentCosts:
    """Return what the packets of an experiment, or of one run, cost.

    Raises:
        RunDirectoryError: it is neither, or no meter was read.

    """
    runs, left_out = _runs(path)
    found: list[tuple[str, RunEnergy]] = []
    tails: dict[str, list[float]] = {}
    for label, directory in runs:
        energy = measured.read(directory.path)
        if energy is None:
            continue
        found.append((label, energy))
        for quantile in directory.summary.latency_ns.quantiles:
            if quantile.p == P and quantile.value is not None:
                tails.setdefault(label, []).append(quantile.value / 1e3)
    if not found:
        if left_out:
            told = f"{len(left_out)} runs are invalid and none other has a meter"
            raise RunDirectoryError(f"{path}: {told}; {left_out[0]}")
        error = RunDirectoryError(f"{path}: no meter was read in its runs")
        error.add_note("add meter to a node of the testbed file, or energy: {meter: …} to the plan")
        raise error
    middle = {label: median(values) for label, values in tails.items()}
    return ExperimentCosts(tuple(costs(found)), middle, tuple(left_out))


def _runs(path: Path) -> tuple[Sequence[tuple[str, RunDirectory]], list[str]]:
    """Return the runs that count with the names of their configurations, and those that do not."""
    if not is_experiment(path):
        run = RunDirectory(path)
        return [(run.name, run)], []
    complete = recorded(path).complete
    valid = [(_label(run), directory) for run, directory in complete if not run.outcome.invalid]
    left_out = [f"{run.outcome.run}: {run.problem}" for run, _ in complete if run.outcome.invalid]
    return valid, left_out


def _label(run: RecordedRun) -> str:
    return f"{run.outcome.label}{' (floor)' if run.outcome.floor else ''}"
