"""Simulated observation of periodic interrupts by packets at a rate: :func:`simulate`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tailtrim import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = "tailtrim.simulation/1"
_S = 10**9
#: No clock of a computer is that wrong.
_MOST_DRIFT_PPM = 100_000
#: Numerator and denominator of an interval are 64-bit integers.
_MOST = 2**63


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A periodic interrupt: its stalls take ``stalls_ns`` in turn, the first at ``start_ns``."""

    frequency_hz: str | float
    stalls_ns: tuple[int, ...]
    start_ns: int = 0


@dataclass(frozen=True, slots=True)
class Simulation:
    """Observed latencies: when each delayed packet was sent, and its latency."""

    packets: int
    delayed: int
    latency_ns: int
    run_ns: int
    sent_ns: tuple[int, ...]
    latencies_ns: tuple[int, ...]
    sampling: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the form that ``--json`` prints."""
        return {"schema": SCHEMA, **asdict(self)}


def simulate(  # noqa: PLR0913 - keyword-only options
    *,
    rate_pps: str | float,
    interrupts: Sequence[Interrupt],
    run_s: str | float = 30,
    latency_ns: int = 0,
    drift_ppm: str | float = 0,
    schedule: str = "cbr",
) -> Simulation:
    """Let packets on a schedule sample periodic interrupts.

    Args:
        rate_pps: packets a second.
        interrupts: the interrupts that take the CPU.
        run_s: seconds to simulate.
        latency_ns: latency of a packet that meets none.
        drift_ppm: by how much the packets' clock is slow, in parts per million: less than 10 %.
        schedule: ``cbr``, ``golden``, ``poisson``, ``burst:N`` or ``jitter:SHARE``.

    Raises:
        ValueError: an option makes no sense.

    Example:
        >>> tick = Interrupt(250, (7_500, 7_500, 10_400), start_ns=50_000)
        >>> simulate(rate_pps=10_000, interrupts=[tick]).delayed  # they never meet
        0
        >>> simulate(rate_pps=10_000, interrupts=[tick], drift_ppm=780).delayed > 400
        True

    """
    drift = _exact("drift", drift_ppm)
    if abs(drift) >= _MOST_DRIFT_PPM:
        raise ValueError(f"drift {drift_ppm}: expected less than {_MOST_DRIFT_PPM:,} ppm")
    observed = json.loads(
        _native.simulate_interrupts(
            schedule=schedule,
            interval_ns=_interval("rate", rate_pps),
            drift_ppb=int(drift * 1000),
            latency_ns=latency_ns,
            run_ns=int(_exact("duration", run_s) * _S),
            interrupts=[
                (_interval("frequency", one.frequency_hz), one.start_ns, list(one.stalls_ns))
                for one in interrupts
            ],
        )
    )
    points = observed["points"]
    return Simulation(
        packets=observed["packets"],
        delayed=observed["delayed"],
        latency_ns=latency_ns,
        run_ns=int(_exact("duration", run_s) * _S),
        sent_ns=tuple(point[0] for point in points),
        latencies_ns=tuple(point[1] for point in points),
        sampling=tuple(observed["sampling"]),
    )


def _interval(name: str, per_second: str | float) -> tuple[int, int]:
    """Return the time between two as a fraction of ns, exactly."""
    value = _exact(name, per_second)
    if not 0 < value <= _S:
        raise ValueError(f"{name} {per_second}: expected more than 0 and at most 10^9 a second")
    interval = Fraction(_S) / Fraction(value)
    if max(interval.numerator, interval.denominator) >= _MOST:
        raise ValueError(f"{name} {per_second}: expected fewer digits, and not so small a number")
    return interval.numerator, interval.denominator


def _exact(name: str, value: str | float) -> Decimal:
    try:
        exact = Decimal(str(value))
    except ArithmeticError as error:
        raise ValueError(f"{name} {value!r}: expected a number") from error
    if not exact.is_finite():
        raise ValueError(f"{name} {value!r}: expected a finite number")
    return exact
