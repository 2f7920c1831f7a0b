"""Parts of a comparison: its sides, and a row for each quantile."""

from __future__ import annotations

from dataclasses import dataclass

from tailtrim.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Row(Verdict):
    """A quantile of both sides, and its verdict.

    ``ratio`` is B / A: above one, B is slower. ``low`` and ``high`` are its interval for this
    quantile alone; the verdict holds for all quantiles together. Nothing is tested unless the
    samples of both sides support the quantile (``supported``). ``better_from`` and
    ``worse_from`` are the smallest differences that would have been shown four times out of five;
    ``None`` where no difference on that side would.
    """

    p: str
    a_ns: int | None
    b_ns: int | None
    a_effective: int
    b_effective: int
    samples_needed: int
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    adjusted_p: float | None
    supported: bool
    better_from: float | None
    worse_from: float | None


@dataclass(frozen=True, slots=True)
class SentRow(Verdict):
    """A quantile of the packets sent; lost ones count as infinitely late.

    ``None`` for ``a_ns`` or ``b_ns`` is that: the packet at this rank was lost. The verdicts
    compare ranks, which know that infinitely late is later than any latency.
    """

    p: str
    a_ns: int | None
    b_ns: int | None
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    adjusted_p: float | None
    supported: bool


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The ratio at a quantile along the curve, without a verdict."""

    p: str
    ratio: float | None
    low: float | None
    high: float | None
    supported: bool


@dataclass(frozen=True, slots=True)
class Losses(Verdict):
    """Lost packets of both sides, of so many sent, in whole seconds behind the trim."""

    a_lost: int
    a_known: int
    b_lost: int
    b_known: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Rates:
    """Packets/s of both sides whose packets were counted, not captured: means over their runs."""

    a_sent_pps: float
    a_received_pps: float
    b_sent_pps: float
    b_received_pps: float


@dataclass(frozen=True, slots=True)
class Pairing:
    """One side: its runs, their sums, and why others do not count."""

    name: str
    runs: tuple[str, ...]
    samples: int
    units: int
    min_ns: int | None
    max_ns: int | None
    outcomes: dict[str, int]
    left_out: tuple[str, ...]
