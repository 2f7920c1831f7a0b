"""Costs of changes: packets delivered, watts, and CPUs that other work loses.

Trials are compared within their block, as the search does: what is kept with the baseline in the
confirmation, and all changes with all but one in the rounds before it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from tailtrim.analysis.energy.uncertainty import estimate
from tailtrim.laboratory.devices import AnyDevice, Device
from tailtrim.laboratory.trim.observation import power
from tailtrim.laboratory.trim.schedule import BASELINE
from tailtrim.publishing.trim_report.path import CONFIDENCE
from tailtrim.student_t import interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.energy.measured import State
    from tailtrim.laboratory.trim.recorded import RecordedSearch
    from tailtrim.laboratory.trim.trial import Seen

#: The list of CPUs behind the flags of isolcpus=.
_ISOLATED = re.compile(r"\bisolcpus=(?:[a-z_]+,)*([0-9][0-9,:/-]*)")
_DEVICE: TypeAdapter[Device] = TypeAdapter(AnyDevice)


@dataclass(frozen=True, slots=True)
class Shift:
    """A number without and with changes; ``change`` is the mean difference within blocks.

    For packets a second it is a share of those without the changes, for watts it is in watts.
    ``low`` and ``high`` are ``None`` where a single pair has no interval.
    """

    before: float
    after: float
    change: float
    low: float | None
    high: float | None
    pairs: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of changes; ``None`` is not known."""

    delivered_pps: Shift | None
    watts: Shift | None


@dataclass(frozen=True, slots=True)
class Processors:
    """CPUs that are given away.

    ``taken`` are those that kept changes take away from everything else, with the changes; polling
    is whether the device keeps a CPU busy without packets, ``None`` where that is not known.
    """

    taken: dict[str, str]
    polls_before: bool | None
    polls_after: bool | None


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of all that is kept together, and of each change of it."""

    together: Cost | None
    each: dict[str, Cost]
    processors: Processors | None


def costs_of(search: RecordedSearch) -> Costs:
    """Return the costs of what is kept, as far as they are known.

    Raises:
        RunDirectoryError: the experiment or a run is damaged.

    """
    kept = search.kept
    if not kept:
        return Costs(None, {}, None)
    powers = powers_of(search)
    together = _cost(powers, [pair for pair in _pairs(search.seen, kept) if not pair[0][0].changes])
    each = {name: _cost(powers, _pairs(search.seen, frozenset({name}))) for name in sorted(kept)}
    return Costs(together, each, _processors(search))


def powers_of(search: RecordedSearch) -> dict[int, State]:
    """Return the power of each trial that can be used, by its number.

    Raises:
        RunDirectoryError: the record of a meter cannot be read.

    """
    node = None
    if search.experiment is not None and search.experiment.testbed != "local":
        node = str(search.experiment.testbed["roles"]["dut"]["node"])
    found = {}
    for one in search.seen:
        state = power(search.path / one.trial.folder, node) if one.observation.tail_ns else None
        if state is not None:
            found[one.trial.number] = state
    return found


def _pairs(seen: Sequence[Seen], changes: frozenset[str]) -> list[tuple[Seen, Seen]]:
    """Return trials of one block that differ in these changes alone: without, and with them."""
    blocks: dict[int, dict[frozenset[str], Seen]] = {}
    for one in seen:
        if one.observation.tail_ns:
            blocks.setdefault(one.trial.block, {})[one.trial.changes] = one
    return [
        (block[tried - changes], one)
        for block in blocks.values()
        for tried, one in block.items()
        if changes <= tried and tried - changes in block
    ]


def _cost(powers: dict[int, State], pairs: Sequence[tuple[Seen, Seen]]) -> Cost:
    return Cost(_delivered(pairs), _watts(powers, pairs))


def _delivered(pairs: Sequence[tuple[Seen, Seen]]) -> Shift | None:
    rates = [
        (one.observation.rate_pps, other.observation.rate_pps)
        for one, other in pairs
        if one.observation.rate_pps and other.observation.rate_pps
    ]
    if not rates:
        return None
    logs = [math.log(after / before) for before, after in rates]
    ends = interval(logs, CONFIDENCE) if len(logs) > 1 else None
    return Shift(
        fmean(before for before, _ in rates),
        fmean(after for _, after in rates),
        math.expm1(fmean(logs)),
        math.expm1(ends[0]) if ends else None,
        math.expm1(ends[1]) if ends else None,
        len(logs),
    )


def _watts(powers: dict[int, State], pairs: Sequence[tuple[Seen, Seen]]) -> Shift | None:
    both = list(_both(powers, pairs))
    if not both:
        return None
    differences = [after - before for before, after, _ in both]
    means = fmean(before for before, _, _ in both), fmean(after for _, after, _ in both)
    if len(both) == 1:
        return Shift(*means, differences[0], None, None, 1)
    # The errors of a meter at two powers need not be the same one.
    found = estimate(differences, max(type_b for _, _, type_b in both))
    ends = found.value - found.expanded, found.value + found.expanded
    return Shift(*means, found.value, *ends, len(both))


def _both(
    powers: dict[int, State], pairs: Sequence[tuple[Seen, Seen]]
) -> Iterator[tuple[float, float, float]]:
    for one, other in pairs:
        before, after = powers.get(one.trial.number), powers.get(other.trial.number)
        if before and after and before.watts is not None and after.watts is not None:
            yield before.watts, after.watts, math.hypot(before.type_b_w, after.type_b_w)


def _processors(search: RecordedSearch) -> Processors:
    kept = [one for one in search.candidates if one.name in search.kept]
    every = {one.name: one.takes or _isolated(search, one.name) for one in kept}
    taken = {name: cpus for name, cpus in every.items() if cpus}
    devices: dict[frozenset[str], dict[str, Any]] = {}
    runs = {run.outcome.run: run for run in search.experiment.runs} if search.experiment else {}
    for one in search.seen:
        run = runs.get(one.trial.folder)
        if run is not None and run.dut:
            devices.setdefault(one.trial.changes, run.dut)
    return Processors(taken, *(_polls(devices.get(changes)) for changes in (BASELINE, search.kept)))


def _isolated(search: RecordedSearch, name: str) -> str:
    """Return the CPUs that a change of the plan's boot line isolates, if it does."""
    before, after = (_ISOLATED.search(value) for value in search.values(name) or ("", ""))
    return after[1] if after and (before is None or before[1] != after[1]) else ""


def _polls(device: dict[str, Any] | None) -> bool | None:
    """Return whether a device polls, by the record of its run."""
    try:
        return _DEVICE.validate_python(device).polls
    except ValidationError:
        return None
