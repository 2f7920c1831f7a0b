"""The result of an analysis in numbers, typed.

The one source of these numbers is the native matcher, which writes them as JSON (``--json``,
``summary.json`` in a run directory); here they become dataclasses. All times are integers in
nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tailtrim.errors import RunDirectoryError
from tailtrim.results.typed_json import parsed, typed

SCHEMA = "tailtrim.summary/1"
#: The code of the notice that a run has a distribution only: the order of its packets is unknown.
NO_ORDER = "no_order"


@dataclass(frozen=True, slots=True)
class Ingress:
    """Ingress packets by outcome; all but ``packets`` add up to ``packets``."""

    packets: int
    matched: int
    lost: int
    duplicate: int
    beyond_window: int
    cut: int
    trimmed: int
    unstamped: int
    stalled: int = 0
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Egress:
    """Egress packets by outcome; all but ``packets`` add up to ``packets``."""

    packets: int
    matched: int
    unmatched: int
    copy: int
    cut: int
    trimmed: int
    unstamped: int
    stalled: int = 0


@dataclass(frozen=True, slots=True)
class Signature:
    """Identity of the packets: ``selection`` as given, or ``bytes`` after the L2 header.

    ``in_order``: the n-th frame that left was matched with the n-th that entered.
    """

    selection: str | None
    bytes: int
    masks: tuple[str, ...]
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class OddStamp:
    """A packet, counted from 1, whose stamp (ns of the capture's clock) is no time."""

    packet: int
    stamp_ns: int


@dataclass(frozen=True, slots=True)
class Unread:
    """Packets of an interface whose link type is not understood."""

    interface: int
    link_type: str
    packets: int


@dataclass(frozen=True, slots=True)
class Tap:
    """Facts of a capture apart from any matching; stamps are ns of the capture's clock."""

    capture: str
    first_ns: int | None
    last_ns: int | None
    bytes: int
    cut_frames: int
    short_signatures: int
    out_of_order: int
    misplaced: int
    tap_drops: int | None
    damage: str | None
    odd_stamp: OddStamp | None = None
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile by nearest rank and how sure it is.

    ``low`` and ``high`` bound the true quantile (``None``: the samples do not bound it on that
    side), whether the duplicates, which are in no sample, were the fastest, the slowest or lost.
    ``supported`` says whether ten independent episodes tell so, which takes ``samples_needed``
    independent samples; ``episodes`` are those of the run (``None``: of results before that was
    kept). ``effective_samples`` are the independent samples that would give such bounds: late
    packets that come in clusters count less.
    ``clusters`` is the number of runs of successive packets above the value (``None``: more than
    are kept).

    Among delivery-adjusted quantiles a ``value`` of ``None`` lies among the lost packets: it is
    infinite.
    """

    p: str
    value: int | None
    low: int | None
    high: int | None
    supported: bool
    samples_needed: int
    effective_samples: int
    clusters: int | None
    episodes: int | None = None


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean in ns, rounded, with its interval; its bounds are unknown for one sample."""

    value: int
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of the delivered packets in ns; ``mean`` is unknown of runs before it was kept."""

    min: int | None
    max: int | None
    mean: Mean | None
    iqr: int | None
    confidence: str
    quantiles: tuple[Quantile, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle and the ends of a distribution in ns."""

    min: int | None
    p50: int | None
    p99: int | None
    p999: int | None
    max: int | None
    iqr: int | None


@dataclass(frozen=True, slots=True)
class WorstPackets:
    """The worst packets: how many are kept, the runs they form, the smallest latency of them."""

    count: int
    clusters: int
    from_ns: int | None


@dataclass(frozen=True, slots=True)
class BurstPosition:
    """Latency at a position in the burst, from 1."""

    position: int
    samples: int
    latency_ns: Spread


@dataclass(frozen=True, slots=True)
class Bursts:
    """Latency by position in the burst; ``gap_ns`` is the largest gap within one."""

    gap_ns: int
    positions: tuple[BurstPosition, ...]


@dataclass(frozen=True, slots=True)
class DepartedLate:
    """Samples that the generator sent late, and latency without them in ns by quantile."""

    samples: int
    without_ns: dict[str, int | None]


@dataclass(frozen=True, slots=True)
class ClockPiece:
    """Correction of a clock from a packet on, which the capture has as its ``packet``-th.

    Stamped ``from_ns``, it is earlier by ``offset_ns``, and each later one by ``rate_ppt``
    10⁻¹² of the time since then more.
    """

    packet: int
    from_ns: int
    offset_ns: int
    rate_ppt: int


@dataclass(frozen=True, slots=True)
class ClockFit:
    """Correction of the clocks of both taps, wrong by at most ``bound_ns`` beyond a constant."""

    ingress: tuple[ClockPiece, ...]
    egress: tuple[ClockPiece, ...]
    bound_ns: int
    level_kept: bool
    fastest_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Mean rates in packets/s of a run whose packets were counted, not captured."""

    sent_pps: int
    received_pps: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Notice that a reader must know before trusting the numbers.

    Until one that ``invalidates`` is dealt with, no percentile is the latency of the device.
    """

    code: str
    count: int
    text: str
    invalidates: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of an analysis in numbers.

    ``resolution_ps`` is the coarser of the steps of the stamps at both taps; ``clock_error_ns`` is
    how far each latency may be off because two clocks stamped, 0 with one.
    """

    ingress: Ingress
    egress: Egress
    samples: int
    trim_ns: int
    window_ns: int
    signature: Signature
    ingress_tap: Tap
    egress_tap: Tap
    latency_ns: Latency
    delivery_adjusted_ns: tuple[Quantile, ...]
    ingress_gap_ns: Spread
    egress_gap_ns: Spread
    delay_variation_ns: Spread
    worst: WorstPackets
    bursts: Bursts | None
    departed_late: DepartedLate | None
    warnings: tuple[Notice, ...]
    text: str
    correction_ns: int = 0
    # That of ns, of results before it was kept.
    resolution_ps: int = 1_000
    clock_fit: ClockFit | None = None
    clock_error_ns: int = 0
    throughput: Throughput | None = None

    def __repr__(self) -> str:
        """Name the essential numbers."""
        latency = self.latency_ns
        return f"<Summary of {self.samples} samples, {latency.min} to {latency.max} ns>"

    def quantile(self, p: str | float) -> Quantile:
        """Return a quantile of the latency, such as ``"99.9 %"`` or 0.999.

        Raises:
            ValueError: it is none, or was not computed.

        """
        from tailtrim import _native  # noqa: PLC0415 - whoever reads results alone does without

        wanted = _native.quantile(p if isinstance(p, str) else f"{Decimal(str(p)):f}")
        known = {one.p: one for one in self.latency_ns.quantiles}
        if wanted not in known:
            raise ValueError(
                f"quantile {p} was not computed, only {', '.join(known)}: expected one of these, or"
                f' analyze(..., quantiles="{wanted}")'
            )
        return known[wanted]

    @property
    def rate_pps(self) -> float | None:
        """Packets per second at the ingress tap, over the whole capture."""
        if self.throughput is not None:
            return self.throughput.sent_pps
        tap = self.ingress_tap
        if tap.first_ns is None or tap.last_ns is None or tap.last_ns == tap.first_ns:
            return None
        # Packets without a stamp passed as well, most likely between the first and the last one.
        packets = self.ingress.packets - self.ingress.copy
        return (packets - 1) * 1e9 / (tap.last_ns - tap.first_ns)

    @property
    def loss(self) -> float | None:
        """Share of the packets with a known end that were not delivered within the window."""
        ingress = self.ingress
        undelivered = ingress.lost + ingress.beyond_window
        known = ingress.matched + undelivered
        return undelivered / known if known else None

    @property
    def invalid(self) -> tuple[str, ...]:
        """Reasons for which no percentile is the latency of the device."""
        return tuple(notice.text for notice in self.warnings if notice.invalidates)

    @property
    def unordered(self) -> bool:
        """Whether it was imported as a distribution: the order of the packets is unknown."""
        return any(notice.code == NO_ORDER for notice in self.warnings)

    @classmethod
    def from_json(cls, text: str, *, source: str = "summary") -> Summary:
        """Read what ``--json`` prints.

        Raises:
            RunDirectoryError: when the text is not a summary of this version; ``source`` says where
                it came from.

        """
        try:
            data = parsed(text)
            schema = data["schema"]
        except (ValueError, TypeError, KeyError) as error:
            raise RunDirectoryError(f"{source}: not a summary, expected {SCHEMA}") from error
        if schema != SCHEMA:
            raise RunDirectoryError(f"{source}: the schema is {schema!r}, expected {SCHEMA!r}")
        try:
            return typed(cls, _fields_of(data, text))
        except KeyError as error:
            raise RunDirectoryError(f"{source}: the summary lacks {error}") from error
        except (TypeError, ValueError) as error:
            raise RunDirectoryError(f"{source}: not a summary: {error}") from error


def _fields_of(data: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the fields of a summary, which has some of them within others."""
    late = data.get("departed_late")
    return data | {
        "ingress_tap": data["taps"]["ingress"],
        "egress_tap": data["taps"]["egress"],
        # Unknown of runs before it was kept.
        "latency_ns": {"mean": None} | data["latency_ns"],
        "ingress_gap_ns": data["gap_ns"]["ingress"],
        "egress_gap_ns": data["gap_ns"]["egress"],
        "departed_late": late and late | {"without_ns": _by_probability(late["without_ns"])},
        "text": text,
    }


def _by_probability(quantiles: list[dict[str, Any]]) -> dict[str, Any]:
    return {quantile["p"]: quantile["value"] for quantile in quantiles}
