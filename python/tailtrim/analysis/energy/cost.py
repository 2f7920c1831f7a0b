"""Cost of packets in watts and joules, over the blocks of an experiment: :func:`costs`.

A block is a run. Its states are measured one after the other, so that drift from run to run is the
same for all of them. The runs of one configuration are its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.energy.measured import IDLE, LOADED, READY
from tailtrim.analysis.energy.uncertainty import Estimate, estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tailtrim.analysis.energy.measured import MeteredNode, RunEnergy, State

#: One block says nothing of how blocks differ.
_LEAST_BLOCKS = 2
#: Relative uncertainty that a plan for more blocks aims at.
_AIM = 0.05


@dataclass(frozen=True, slots=True)
class Cost:
    """Power and energy of a node in the runs of a configuration.

    ``watts`` are means over blocks, by state; ``uncertain`` the same with their uncertainties, from
    two blocks on. ``above_ready_j`` and ``whole_j`` are joules a packet: the first counts only
    power above that of the device that waits for packets, the second all power. ``refused`` says
    why one of them is missing, and what would be needed.
    """

    label: str
    node: str
    meter: str
    blocks: int
    packets_per_s: float
    watts: dict[str, float]
    uncertain: dict[str, Estimate]
    above_ready_j: Estimate | None = None
    whole_j: Estimate | None = None
    refused: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            "label": self.label,
            "node": self.node,
            "meter": self.meter,
            "blocks": self.blocks,
            "packets_per_s": self.packets_per_s,
            "watts": self.watts,
            "uncertain_watts": {state: _json(one) for state, one in self.uncertain.items()},
            "above_ready_j_per_packet": _json(self.above_ready_j),
            "whole_j_per_packet": _json(self.whole_j),
            "refused": self.refused,
            "remarks": list(self.remarks),
        }


def costs(runs: Iterable[tuple[str, RunEnergy]]) -> list[Cost]:
    """Return the cost of each configuration on each node that has a meter.

    Args:
        runs: the measurement of each run, with the name of its configuration.

    """
    groups: dict[tuple[str, str, str], list[tuple[float, MeteredNode]]] = {}
    for label, run in runs:
        for node in run.nodes:
            key = (label, node.node, node.meter)
            groups.setdefault(key, []).append((run.packets_per_s, node))
    return [_cost(*key, blocks) for key, blocks in groups.items()]


def _cost(label: str, node: str, meter: str, blocks: Sequence[tuple[float, MeteredNode]]) -> Cost:
    known: dict[str, list[State]] = {}
    remarks: dict[str, None] = {}
    for _, one in blocks:
        for name, state in one.states.items():
            if state.watts is None:
                remarks[f"{name}: {state.problem}"] = None
            else:
                known.setdefault(name, []).append(state)
        if one.accuracy_percent is None:
            told = "no accuracy_percent: uncertainties do not contain the meter's own error"
            remarks[told] = None
    watts = {name: fmean(_watts(known[name])) for name in (IDLE, READY, LOADED) if name in known}
    uncertain = {
        name: estimate(_watts(known[name]), max(one.type_b_w for one in known[name]))
        for name in watts
        if len(known[name]) >= _LEAST_BLOCKS
    }
    rate = fmean(rate for rate, _ in blocks)
    refused: dict[str, str] = {}
    above = _above_ready(blocks, refused)
    whole = uncertain[LOADED].divided(rate) if LOADED in uncertain and rate > 0 else None
    if whole is None:
        refused["whole_j_per_packet"] = _too_few(len(known.get(LOADED, ())))
    return Cost(
        *(label, node, meter, len(blocks), rate, watts, uncertain),
        above_ready_j=above,
        whole_j=whole,
        refused=refused,
        remarks=tuple(remarks),
    )


def _above_ready(
    blocks: Sequence[tuple[float, MeteredNode]], refused: dict[str, str]
) -> Estimate | None:
    """Return joules a packet above the power without packets, or say why they are not known."""
    key = "above_ready_j_per_packet"
    differences, shared_w, rates = [], [], []
    for rate, one in blocks:
        ready, loaded = one.states.get(READY), one.states.get(LOADED)
        if ready is None or loaded is None or ready.watts is None or loaded.watts is None:
            continue
        differences.append(loaded.watts - ready.watts)
        # The errors of a meter at two powers need not be the same one.
        shared_w.append((ready.type_b_w**2 + loaded.type_b_w**2) ** 0.5)
        rates.append(rate)
    if len(differences) < _LEAST_BLOCKS or not all(rates):
        measured = any(READY in one.states for _, one in blocks)
        without = "no block has the state ready: energy of the plan has ready_s: 0, or is missing"
        refused[key] = _too_few(len(differences)) if measured else without
        return None
    difference = estimate(differences, max(shared_w))
    rate = fmean(rates)
    if not difference.resolved:
        refused[key] = _unresolved(difference, rate)
        return None
    return difference.divided(rate)


def _unresolved(found: Estimate, rate: float) -> str:
    """Say that a difference of powers is not resolved, and how many blocks would resolve it."""
    told = f"{found.value:.3g} W ± {found.expanded:.2g} W above ready: below what is resolved"
    if found.value > -found.expanded:
        told += f" (at most {(found.value + found.expanded) / rate:.2g} J a packet)"
    blocks = found.blocks_for(found.value) if found.value > 0 else None
    if blocks is not None:
        return f"{told}; about {blocks:,} blocks would resolve it (repeat: {blocks})"
    limit = 2 * found.type_b
    told += f"; no number of blocks does, the meter itself leaves ± {limit:.2g} W"
    if found.value > 0:
        least = rate * limit / found.value
        told += f": more than about {least:,.0f} packets/s would, or a better meter"
    return told


def _too_few(blocks: int) -> str:
    return f"{blocks} block{'s' * (blocks != 1)}, expected {_LEAST_BLOCKS} or more: raise repeat"


def _watts(states: Sequence[State]) -> list[float]:
    return [one.watts for one in states if one.watts is not None]


def _json(one: Estimate | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "value": one.value,
        "expanded": one.expanded,
        "coverage_factor": one.factor,
        "type_a": one.type_a,
        "type_b": one.type_b,
        "blocks": one.blocks,
        "blocks_for_5_percent": one.blocks_for(_AIM * abs(one.value)) if one.value else None,
    }
