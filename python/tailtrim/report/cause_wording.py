"""What to call the causes of late packets, and what a trace says of them in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tailtrim.report import units

if TYPE_CHECKING:
    from tailtrim.report.inputs.host_explanation import (
        AdvisedChange,
        CauseSignature,
        HostCause,
        HostVerdict,
        Key,
    )


def labels(causes: tuple[HostCause, ...]) -> list[str]:
    """Return what to call each cause; two that cost something differ at least in their detail."""
    short = [label(cause) for cause in causes]
    uses = Counter(text for text, cause in zip(short, causes, strict=True) if cause.excess_ns > 0)
    return [
        f"{text} ({_apart(cause, cause.signature)})" if uses[text] > 1 and cause.signature else text
        for text, cause in zip(short, causes, strict=True)
    ]


def label(cause: HostCause) -> str:
    """Return what to call a cause: what it is recognised as, else its name, and its sender."""
    name = cause.signature.name if cause.signature else named(cause.key)
    if cause.sender:
        sender, _ = cause.sender
        name = f"{name} by {sender.comm}" + (f" ({sender.pid})" if sender.pid else "")
    return units.printable(name)


def _apart(cause: HostCause, signature: CauseSignature) -> str:
    name = cause.kind if cause.name == signature.name else cause.name
    return units.printable(cause.detail or name)


def named(key: Key) -> str:
    """Return the name of what has the CPU, as the trace has it."""
    kind, name, detail = key
    return units.printable("/".join(filter(None, (name or kind, detail))))


def sentence(verdict: HostVerdict, *, most: int = 3) -> str:
    """Return the verdict in a sentence: the largest shares, the null, the error."""
    if verdict.null_ppm is None:
        null = "no chance baseline without events"
    else:
        null = f"chance baseline {share(verdict.null_ppm)}"
    costly = [
        (cause, name)
        for cause, name in zip(verdict.causes, labels(verdict.causes), strict=True)
        if cause.excess_ns > 0
    ]
    parts = [f"{share(cause.share_ppm)} {name}" for cause, name in costly[:most]]
    parts.append(f"{share(verdict.ppm(verdict.queue_ns))} queueing behind packets")
    parts.append(f"{share(verdict.ppm(verdict.unknown_ns))} unknown")
    return (
        f"Of the excess of packets from {units.time(verdict.late_from_ns)} on:"
        f" {', '.join(parts)} ({null}; timing error at most {units.time(verdict.error_ns)})."
    )


def when(change: AdvisedChange) -> str:
    """Return when a change takes effect."""
    known = {"now": "at once", "next-boot": "at the next boot", "by-hand": "by hand"}
    return known.get(change.when, change.when)


def share(ppm: int) -> str:
    """Return millionths as percent."""
    return f"{units.fixed(ppm, 10_000, 1)} %"
