"""Provenance of results: facts that all runs share, and those of each run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.publishing.report import wording
from tailtrim.publishing.report.pages import testbed_section
from tailtrim.publishing.report.pages.testbed_section import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.report.inputs.run_tables import ReportedRun
    from tailtrim.results.summary import Summary, Tap


@dataclass(frozen=True, slots=True)
class Provenance:
    """Facts that hold for all runs, and those of each run with its name."""

    shared: tuple[Fact, ...]
    own: tuple[tuple[str, tuple[Fact, ...]], ...]


def provenance(runs: Sequence[ReportedRun]) -> Provenance:
    """Return where the runs come from."""
    facts = [tuple(_facts(run)) for run in runs]
    shared = tuple(fact for fact in facts[0] if all(fact in others for others in facts))
    own = tuple(
        (run.name, rest)
        for run, told in zip(runs, facts, strict=True)
        if (rest := tuple(fact for fact in told if fact not in shared))
    )
    return Provenance(shared, own)


def software(command: Any, versions: Any) -> Iterator[Fact]:
    """Yield the command that was run and the versions of its programs, as far as recorded."""
    if command:
        words = isinstance(command, list | tuple)
        yield Fact("Command", shlex.join(map(str, command)) if words else str(command))
    if versions and isinstance(versions, Mapping):
        yield Fact("Versions", text=", ".join(f"{name} {one}" for name, one in versions.items()))


def _facts(run: ReportedRun) -> Iterator[Fact]:
    told = run.directory.provenance()
    inputs = told.get("inputs")
    yield from software(told.get("command"), told.get("versions"))
    yield from _analysis(run.summary)
    yield from testbed_section.facts(run)
    yield Fact("Directory", str(run.directory.path))
    yield _tap("Ingress", run.summary.ingress_tap, run.tap_drops("ingress"))
    yield _tap("Egress", run.summary.egress_tap, run.tap_drops("egress"))
    for entry in inputs if isinstance(inputs, list) else ():
        if isinstance(entry, dict):
            yield _input(entry)


def _analysis(summary: Summary) -> Iterator[Fact]:
    signature = summary.signature
    text = signature.selection or f"{signature.bytes} bytes after the L2 header"
    if signature.masks:
        text += f", masked: {', '.join(signature.masks)}"
    yield Fact("Signature", text=text)
    trim, window = wording.seconds(summary.trim_ns), wording.seconds(summary.window_ns)
    yield Fact("Trim, window", text=f"{trim} after the first match, {window}")


def _tap(label: str, tap: Tap, drops: int | None) -> Fact:
    parts = [f"{units.count(tap.bytes)} bytes of frames"]
    if tap.first_ns is not None and tap.last_ns is not None:
        parts.append(f"{wording.seconds(tap.last_ns - tap.first_ns)} long")
    parts.append(f"{units.count(tap.out_of_order)} out of order")
    parts.append(f"{units.count(tap.cut_frames)} cut short")
    known = drops is not None
    parts.append(f"{units.count(drops or 0)} dropped by the tap" if known else "drops not recorded")
    if tap.damage:
        parts.append(f"damaged: {tap.damage}")
    return Fact(label, str(tap.capture), ", ".join(parts))


def _input(entry: dict[str, Any]) -> Fact:
    size = entry.get("bytes")
    text = f"{units.count(size)} bytes" if isinstance(size, int) else "size unknown"
    digest = entry.get("sha256")
    return Fact("Input", str(entry.get("path")), text, f"{digest}" if digest else "")
