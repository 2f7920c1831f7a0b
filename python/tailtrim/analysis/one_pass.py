"""Captures matched in this process, in one pass: :func:`analyze`.

Example:
    >>> analysis = analyze("examples/testpmd/ingress.pcap.zst",
    ...                    "examples/testpmd/egress.pcap.zst")
    >>> analysis.summary.ingress.lost
    0

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.options import WELL, MatchingOptions, cores, native
from tailtrim.analysis.result import Analysis
from tailtrim.analysis.sides import both_sides, check_found

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tailtrim.analysis.options import Departures


def analyze(  # noqa: PLR0913 - keyword-only options, each with a default
    ingress: str | os.PathLike[str],
    egress: str | os.PathLike[str] | None = None,
    *,
    ingress_interface: str | None = None,
    egress_interface: str | None = None,
    signature: str | None = None,
    masks: Sequence[str] = (),
    skip_s: str | float = 0,
    window_s: str | float = 5,
    quantiles: Sequence[str] = (),
    confidence: str = "0.95",
    x552_trailer: bool = False,
    nanoseconds: bool = False,
    salvage: bool = False,
    allow_negative: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
    departures: Departures = WELL,
    correction_ns: int = 0,
    jobs: int | None = None,
    progress: Callable[[float | None], object] | None = None,
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
        allow_negative: do not raise although most packets left before they entered.
        out: where to leave a run directory.
        departures: when the load generator was not up to its schedule, if that is known.
        correction_ns: taken off each latency, for cables between the taps and the device.
        keep_samples: keep every sample for :attr:`Analysis.samples` (24 bytes each).
        jobs: cores to use at most, ``None`` for all. The result is the same to the byte.
        progress: called about every million frames with the share done, ``None`` if unknown.

    Raises:
        CaptureError: a capture cannot be read; or most packets left before they entered.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    """
    chosen = (ingress_interface, egress_interface)
    paths = both_sides(ingress, egress, chosen)
    matching: MatchingOptions = {
        "signature": signature,
        "masks": masks,
        "skip_s": skip_s,
        "window_s": window_s,
        "quantiles": quantiles,
        "confidence": confidence,
        "x552_trailer": x552_trailer,
        "nanoseconds": nanoseconds,
        "salvage": salvage,
    }
    options = native(matching, departures, correction_ns)

    def run(directory: Path | None) -> _native.NativeAnalysis:
        kept: dict[str, Any] = {"directory": directory, "keep_samples": keep_samples}
        kept |= {"interfaces": chosen, "jobs": cores(jobs), "progress": progress}
        analysis = _native.analyze(paths[0], paths[1], **options, **kept)
        check_found(analysis, paths, chosen)
        if not allow_negative:
            analysis.check_order()
        return analysis

    return Analysis(run(None) if out is None else leave(run, paths, out))


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
