"""Which of a run's uploads hold its latencies, or its rates: :func:`data_of`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.errors import ResultsError
from tailtrim_pos.naming import side_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim_pos.results.pos_results import PosRun, Upload

#: MoonGen saves ``histogram.csv``, the papers' scripts leave ``….hist.csv``.
_HISTOGRAM = re.compile(r"(?:^|[-_.])hist(?:ogram)?(?:-filtered)?\.csv$")
_PERCENTILES = re.compile(r"(?:^|[-_.])percentiles(?:-filtered)?\.csv$")


_INTERRUPTS = re.compile(r"irq[A-Za-z0-9_-]{0,40}\.csv")
#: Names of files in which scripts keep MoonGen's output.
_LOGS = re.compile(r"(?:throughput|moongen).*\.(?:log|txt)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Captures:
    """The captures before and behind the device."""

    ingress: Upload
    egress: Upload


@dataclass(frozen=True, slots=True)
class Tables:
    """A histogram, percentiles, or both of the same packets."""

    histogram: Upload | None
    percentiles: Upload | None


@dataclass(frozen=True, slots=True)
class Logs:
    """Logs with rates of packets, and no latency."""

    uploads: tuple[Upload, ...]


def data_of(run: PosRun) -> Captures | Tables | Logs | None:
    """Return what a run's numbers can be had from; ``None`` where it has nothing of the kind.

    Captures come first: only they say in which order packets were late.

    Raises:
        ResultsError: there are several, or half of a pair of captures.

    """
    pairs, halves = _pairs(run.uploads)
    if len(pairs) > 1:
        names = ", ".join(one.ingress.name for one in pairs)
        raise ResultsError(f"several pairs of captures, of which one is expected: {names}")
    if pairs:
        return pairs[0]
    histogram = _only("histogram", run.uploads, _HISTOGRAM)
    percentiles = _only("percentiles", run.uploads, _PERCENTILES)
    if histogram is not None or percentiles is not None:
        return Tables(histogram, percentiles)
    if halves:
        raise ResultsError(halves[0])
    logs = tuple(one for one in run.uploads if _LOGS.search(one.name))
    return Logs(logs) if logs else None


def interrupts_of(run: PosRun) -> dict[str, Upload]:
    """Return counters of interrupts, as the papers' DuTs sampled them, by names of their own."""
    found: dict[str, Upload] = {}
    for one in run.uploads:
        if _INTERRUPTS.fullmatch(one.name):
            stem, places = one.name.removesuffix(".csv"), range(1, len(run.uploads) + 1)
            names = (f"{stem}{f'-{place}' * (place > 1)}.csv" for place in places)
            found[next(name for name in names if name not in found)] = one
    return found


def _pairs(uploads: Sequence[Upload]) -> tuple[list[Captures], list[str]]:
    """Return the pairs of captures, and messages on captures without a pair."""
    named: dict[str, dict[str, list[Upload]]] = {}
    for one in uploads:
        side = side_of(one.name)
        if side is not None:
            named.setdefault(side[1], {}).setdefault(side[0], []).append(one)
    pairs, halves = [], []
    for sides in named.values():
        both = [sides.get(side, []) for side in ("ingress", "egress")]
        if all(both):
            pairs += [Captures(before, behind) for before in both[0] for behind in both[1]]
        else:
            missing = ("behind", "before")
            halves += [
                f"{one.name}: the capture {where} the device is missing"
                for where, found in zip(missing, both, strict=True)
                for one in found
            ]
    return pairs, halves


def _only(what: str, uploads: Sequence[Upload], form: re.Pattern[str]) -> Upload | None:
    """Return the one upload of this kind; if there is a trimmed one, too, the trimmed one."""
    found = [one for one in uploads if form.search(one.name)]
    trimmed = [one for one in found if "-filtered" in one.name]
    found = trimmed or found
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise ResultsError(f"several files of {what}, of which one is expected: {names}")
    return found[0] if found else None
