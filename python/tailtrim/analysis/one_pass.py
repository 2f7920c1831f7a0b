"""Captures matched in this process, in one pass: :func:`analyze`.

Example:
    >>> analysis = analyze("examples/testpmd/ingress.pcap.zst",
    ...                    "examples/testpmd/egress.pcap.zst")
    >>> analysis.summary.ingress.lost
    0

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tailtrim import _native
from tailtrim.analysis import groups
from tailtrim.analysis.lost import MOST
from tailtrim.analysis.options import WELL, cores, native
from tailtrim.analysis.result import Analysis
from tailtrim.analysis.sides import both_sides, check_files, check_found

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tailtrim.analysis.groups import Group
    from tailtrim.analysis.options import Departures, MatchingOptions


def analyze(  # noqa: PLR0913 - keyword-only options, each with a default
    ingress: str | os.PathLike[str],
    egress: str | os.PathLike[str] | None = None,
    *,
    ingress_interface: str | None = None,
    egress_interface: str | None = None,
    allow_negative: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
    keep_lost: bool = False,
    by: str | None = None,
    departures: Departures = WELL,
    correction_ns: int = 0,
    clock_fit: bool = False,
    jobs: int | None = None,
    progress: Callable[[float | None], object] | None = None,
    **matching: Unpack[MatchingOptions],
) -> Analysis:
    """Match an ingress and an egress capture of a device, and return summary and tables.

    Args:
        ingress: capture of what enters (pcap, pcapng, ERF, mscap; ``.zst``, ``.gz``; ``-`` for
            stdin).
        egress: capture of what leaves; ``None`` where ``ingress`` has both.
        ingress_interface: read its packets only: an interface by number, name or description,
            with ``:in`` or ``:out`` behind it those of a direction.
        egress_interface: the same of the egress capture.
        signature: bytes that identify a packet, ``OFFSET:LENGTH,…`` from the start of the frame.
        masks: fields that the device rewrites and a router does not: ``nat``, ``tos``, ``tunnel``.
        skip_s: seconds after the first match whose samples do not count.
        window_s: seconds after which a packet is not matched any more.
        quantiles: quantiles in addition to 0.5, 0.9, 0.99 …, as decimal text or percent.
        confidence: confidence of the intervals.
        x552_trailer: take stamps from the last eight bytes of each frame.
        nanoseconds: fractions of seconds are these although a pcap says microseconds.
        salvage: use what precedes damage instead of raising.
        allow_negative: do not raise although many packets left before they entered.
        in_order: match identical frames by their order; losses and reordering are not seen.
        direction: only packets that go ``"forward"`` or ``"reverse"``, of captures with both.
        out: where to leave a run directory.
        departures: when the load generator was not up to its schedule, if that is known.
        correction_ns: taken off each latency, for cables between the taps and the device.
        clock_fit: correct the clocks of the taps by what the fastest packets show; the captures
            are files, which are read twice.
        keep_samples: keep every sample for :attr:`Analysis.samples` (24 bytes each).
        keep_lost: find the lost packets in the ingress capture, a file, for :attr:`Analysis.lost`.
        by: field of the groups of :attr:`Analysis.groups`, see :func:`tailtrim.analysis.groups.by`.
        jobs: cores to use at most, ``None`` for all. The result is the same to the byte.
        progress: called about every million frames with the share done, ``None`` if unknown.

    Raises:
        CaptureError: a capture cannot be read, or many packets left before they entered.
        TwoDirectionsError: packets go two ways.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    """
    chosen = (ingress_interface, egress_interface)
    paths = both_sides(ingress, egress, chosen)
    most = MOST if keep_lost else 0
    options = native(matching, departures, correction_ns, lost=most, fit_clocks=clock_fit)
    if clock_fit or keep_lost:
        check_files(paths)
    if (clock_fit or matching.get("in_order")) and (by is not None or keep_lost):
        raise ValueError("by and keep_lost exclude clock_fit and in_order: leave out one of them")
    kept: dict[str, Any] = {"keep_samples": keep_samples, "progress": progress, "jobs": cores(jobs)}
    found: list[Group] = []

    def run(directory: Path | None) -> _native.NativeAnalysis:
        analysis = _native.analyze(*paths, options, directory=directory, interfaces=chosen, **kept)
        check_found(analysis, paths, chosen)
        if not allow_negative:
            analysis.check_order()
        if by is not None:
            found.extend(groups.by(*paths, by, jobs=jobs, interfaces=chosen, **matching))
            groups.keep(by, found, directory)
        return analysis

    done = run(None) if out is None else leave(run, paths, out)
    return Analysis(done, groups=found, directory=out)


def leave(
    run: Callable[[Path], _native.NativeAnalysis],
    paths: Sequence[Path],
    out: str | os.PathLike[str],
    **origin: str,
) -> _native.NativeAnalysis:
    """Run an analysis and leave its run directory; the inputs are hashed meanwhile.

    Args:
        run: analyses; some tables are written to the folder that it is given.
        paths: the inputs.
        out: the run directory.
        origin: keys of the provenance beside command, versions and inputs.

    """
    # Imported here: an analysis that is only printed does not need them.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from tailtrim.results.writing import Draft, provenance, sha256  # noqa: PLC0415

    with Draft(out) as draft, ThreadPoolExecutor(1) as hashing:
        hashes = hashing.map(sha256, paths)
        native = run(draft.path)
        native.write_tables(draft.path)
        draft.commit(native.summary_json(), provenance(paths, list(hashes)) | origin)
    return native
