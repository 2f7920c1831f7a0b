"""Captures matched in this process, in one pass: :func:`analyze`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.options import WELL, MatchingOptions, cores, native
from tailtrim.analysis.result import Analysis

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tailtrim.analysis.options import Departures


def analyze(  # noqa: PLR0913 - keyword-only options, each with a default
    ingress: str | os.PathLike[str],
    egress: str | os.PathLike[str],
    *,
    signature: str | None = None,
    masks: Sequence[str] = (),
    skip_s: str | float = 1,
    window_s: str | float = 5,
    quantiles: Sequence[str] = (),
    confidence: str = "0.95",
    x552_trailer: bool = False,
    salvage: bool = False,
    allow_negative: bool = False,
    in_order: bool = False,
    direction: str | None = None,
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
    departures: Departures = WELL,
    correction_ns: int = 0,
    jobs: int | None = None,
    progress: Callable[[float | None], object] | None = None,
) -> Analysis:
    """Match an ingress and an egress capture of a device under test.

    Args:
        ingress: capture of what enters (pcap, pcapng, mscap; ``.zst``, ``.gz``; ``-`` for stdin).
        egress: capture of what leaves.
        signature: bytes that identify a packet, ``OFFSET:LENGTH,…`` from the start of the frame.
        masks: fields that the device rewrites and a router does not: ``nat``, ``tos``, ``tunnel``.
        skip_s: seconds after the first match whose samples do not count.
        window_s: seconds after which a packet is not matched any more.
        quantiles: quantiles in addition to 0.5, 0.9, 0.99 …, as decimal text or percent.
        confidence: confidence of the intervals.
        x552_trailer: take stamps from the last eight bytes of each frame.
        salvage: use what precedes damage instead of raising.
        allow_negative: do not raise although most packets left before they entered.
        in_order: match identical frames by their order; losses and reordering are not seen.
        direction: only packets that go ``"forward"`` or ``"reverse"``, of captures with both.
        out: where to leave a run directory.
        departures: when the load generator was not up to its schedule, if that is known.
        correction_ns: taken off each latency, for cables between the taps and the device.
        keep_samples: keep every sample for :attr:`Analysis.samples` (24 bytes each).
        jobs: cores to use at most, ``None`` for all. The result is the same to the byte.
        progress: called about every million frames with the share done, ``None`` if unknown.

    Returns:
        The summary and the tables.

    Raises:
        CaptureError: a capture cannot be read, or most packets left before they entered.
        TwoDirectionsError: packets go two ways.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    Example:
        >>> analysis = analyze("examples/testpmd/ingress.pcap.zst",
        ...                    "examples/testpmd/egress.pcap.zst")
        >>> analysis.summary.ingress.lost
        0

    """
    paths = (Path(ingress), Path(egress))
    matching: MatchingOptions = {
        "signature": signature,
        "masks": masks,
        "skip_s": skip_s,
        "window_s": window_s,
        "quantiles": quantiles,
        "confidence": confidence,
        "x552_trailer": x552_trailer,
        "salvage": salvage,
        "in_order": in_order,
        "direction": direction,
    }
    options = native(matching, departures, correction_ns)

    kept: dict[str, Any] = {"keep_samples": keep_samples, "jobs": cores(jobs), "progress": progress}
    run = partial(_run, paths, options | kept, allow_negative=allow_negative)
    return Analysis(run(None) if out is None else leave(run, paths, out))


def _run(
    paths: Sequence[Path],
    arguments: dict[str, Any],
    directory: Path | None,
    *,
    allow_negative: bool,
) -> _native.NativeAnalysis:
    """Match two captures; refuse those that are in the wrong order unless that is allowed."""
    analysis = _native.analyze(*paths, directory=directory, **arguments)
    if not allow_negative:
        analysis.check_order()
    return analysis


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
