"""What kept changes cost, in words: for the terminal and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.report import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.trim.report.costs import Costs, Processors, Shift


def lines(costs: Costs) -> Iterator[str]:
    """Yield a line for each kind of cost of all that is kept together."""
    if costs.together is None:
        return
    yield f"Throughput: {throughput(costs.together.delivered_pps)}"
    yield f"Power: {power(costs.together.watts)}"
    if costs.processors is not None:
        yield f"CPUs: {cpus(costs.processors)}"


def throughput(found: Shift | None) -> str:
    """Say what changes of the delivered packets a second."""
    if found is None:
        return "not known"
    return f"{found.before:,.0f} → {found.after:,.0f} packets/s delivered, {_told(share(found))}"


def share(found: Shift) -> tuple[str, str]:
    """Return a relative change, and its interval."""
    return f"{100 * found.change:+.2f} %", _span(found, 100, "%")


def power(found: Shift | None) -> str:
    """Say what changes of the power."""
    if found is None:
        return "not known: no meter was read (docs/energy.md)"
    return f"{found.before:,.1f} → {found.after:,.1f} W, {_told(watts(found))}"


def watts(found: Shift) -> tuple[str, str]:
    """Return a change of the power, and its interval."""
    return f"{found.change:+,.2f} W", _span(found, 1, "W")


def _span(found: Shift, scale: int, unit: str) -> str:
    if found.low is None or found.high is None:
        return "one pair, no interval"
    return f"{scale * found.low:+,.2f} to {scale * found.high:+,.2f} {unit}"


def _told(change: tuple[str, str]) -> str:
    return f"{change[0]} ({change[1]})"


def cpus(found: Processors) -> str:
    """Say which CPUs are given away."""
    parts = [f"{name} takes CPUs {of} from everything else" for name, of in found.taken.items()]
    before, after = found.polls_before, found.polls_after
    if after is None:
        parts.append("whether the device polls is not known")
    elif after and before:
        parts.append("the device polls with and without the changes: one CPU is always busy")
    elif after:
        parts.append("the device polls: one CPU more is always busy")
    elif before:
        parts.append("the device does not poll any more: one CPU less is always busy")
    elif not parts:
        parts.append("none is given away")
    return "; ".join(map(units.printable, parts))
