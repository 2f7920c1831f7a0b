"""The packets of a run that are lost or late, and how they come together: :func:`bad_packets`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import _native

if TYPE_CHECKING:
    from tailtrim.analysis.slo.promises import Promise
    from tailtrim.analysis.slo.verdict import JudgedRun

_SECOND_NS = 10**9
#: The latency that stands for a lost packet, as the native module has it.
_LOST_NS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BadPackets:
    """Counts of the packets of a run, and of the bad ones among them.

    ``lost`` and ``late`` packets are bad. ``counted`` are the bad ones that count: all of them, or
    with a survival time those before which no good packet was sent for so long. ``longest``
    successive packets were bad, and within ``longest_ns`` no good one was sent. ``effect`` is the
    number of packets that are worth one independent packet.
    """

    packets: int
    lost: int
    late: int
    counted: int
    clusters: int
    squares: int
    longest: int
    longest_ns: int
    effect: float


def bad_packets(measured: JudgedRun, promise: Promise) -> BadPackets:
    """Count the bad packets of a run in the order in which they were sent.

    Raises:
        RunDirectoryError: the run directory has no samples.
        ValueError: the samples of the analysis were not kept.

    """
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    samples = measured.run.table("sample")
    sent_ns = samples["ingress_ns"].to_numpy()
    order = np.argsort(sent_ns, kind="stable")
    sent_ns, latency_ns = sent_ns[order], samples["latency_ns"].to_numpy()[order]
    lost_ns = _lost(measured, sent_ns)
    if lost_ns.size:
        places = np.searchsorted(sent_ns, lost_ns, side="right")
        sent_ns = np.insert(sent_ns, places, lost_ns)
        latency_ns = np.insert(latency_ns, places, _LOST_NS)
    bad = latency_ns > promise.deadline_ns
    starts, ends = _spans(bad)
    # Without a good packet until the next one is sent.
    until_ns = sent_ns[np.minimum(ends, max(sent_ns.size - 1, 0))]
    counted = bad.copy()
    for start, end in zip(starts, ends, strict=True) if promise.survival_ns else ():
        counted[start:end] = sent_ns[start:end] - sent_ns[start] >= promise.survival_ns
    sizes = clusters_of(np.flatnonzero(counted), counted.size)
    effect = _native.design_effect(
        pa.table({"latency_ns": latency_ns}),
        deadline_ns=promise.deadline_ns,
        confidence=measured.summary.latency_ns.confidence,
    )
    return BadPackets(
        packets=bad.size,
        lost=lost_ns.size,
        late=int(bad.sum()) - lost_ns.size,
        counted=int(counted.sum()),
        clusters=sizes.size,
        squares=int((sizes**2).sum()),
        longest=int((ends - starts).max(initial=0)),
        longest_ns=int((until_ns - sent_ns[starts]).max(initial=0)) if starts.size else 0,
        effect=effect,
    )


def _spans(flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where successive true ones begin, and the places behind their ends."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def clusters_of(places: np.ndarray, packets: int) -> np.ndarray:
    """Return how many bad packets each cluster has, from their places, ascending.

    The distances between them tell the extremal index, and that how many of the largest distances
    part clusters: the intervals estimator of Ferro and Segers (2003, "Inference for clusters of
    extreme values", *Journal of the Royal Statistical Society* B 65). From the last one over the
    end of the run to the first is one of them. Successive ones are always of one cluster.
    """
    if places.size < 2:  # noqa: PLR2004 - one has no distance
        return np.ones(places.size, dtype=np.int64)
    gaps = np.diff(places, append=places[0] + packets).astype(np.float64)
    # Their section 4: distances of 1 and 2 are those within clusters.
    one, two = (gaps - 1, gaps - 2) if gaps.max() > 2 else (gaps, gaps)  # noqa: PLR2004
    index = min(2 * one.sum() ** 2 / (gaps.size * (one * two).sum()), 1.0)
    apart = np.sort(gaps)[::-1][min(int(index * gaps.size), gaps.size - 1)]
    least = 1.0 if index == 1 else max(float(apart), 1.0)
    edges = np.flatnonzero(gaps[:-1] > least) + 1
    found: np.ndarray = np.diff(np.concatenate([[0], edges, [places.size]]))
    return found


def _lost(measured: JudgedRun, sent_ns: np.ndarray) -> np.ndarray:
    """Return when the lost packets were sent, ascending.

    A run directory has their number in each second. Within it, they are put into the largest gaps
    between the packets that arrived: at a constant rate, that is where they were.
    """
    summary = measured.summary
    missing = summary.ingress.lost + summary.ingress.beyond_window
    begin_ns = summary.ingress_tap.first_ns
    if not missing or begin_ns is None:
        return np.zeros(0, dtype=np.int64)
    table = measured.run.table("second")
    found: list[np.ndarray] = []
    rows = zip(table["second"].to_pylist(), table["lost"].to_pylist(), strict=True)
    # Those of the trim come first, and do not count.
    lossy = [(second, lost) for second, lost in rows if lost]
    for second, lost in reversed(lossy):
        count = min(lost, missing)
        missing -= count
        found.append(_in_gaps(sent_ns, begin_ns + second * _SECOND_NS, count))
    if missing:
        # Beyond the window: the table of seconds does not have them.
        found.append(_in_gaps(sent_ns, int(sent_ns[0]) if sent_ns.size else begin_ns, missing))
    return np.sort(np.concatenate(found))


def _in_gaps(sent_ns: np.ndarray, from_ns: int, count: int) -> np.ndarray:
    """Put so many packets into the largest gaps of the second that begins then."""
    first = max(int(np.searchsorted(sent_ns, from_ns)) - 1, 0)
    last = int(np.searchsorted(sent_ns, from_ns + _SECOND_NS)) + 1
    within = sent_ns[first:last]
    gaps = np.diff(within)
    if not gaps.size:
        return np.full(count, from_ns, dtype=np.int64)
    usual = max(float(np.median(gaps)), 1.0)
    rooms = np.maximum(np.rint(gaps / usual).astype(np.int64) - 1, 0)
    placed: list[np.ndarray] = []
    for gap in np.argsort(-gaps, kind="stable"):
        here = min(int(rooms[gap]), count)
        if here == 0:
            break
        count -= here
        placed.append(within[gap] + (np.arange(1, here + 1) * gaps[gap]) // (here + 1))
    if count:
        placed.append(np.full(count, within[int(np.argmax(gaps))], dtype=np.int64))
    return np.concatenate(placed)
