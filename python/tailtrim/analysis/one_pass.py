"""Captures matched in this process, in one pass: :func:`analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tailtrim import _native
from tailtrim.analysis import groups
from tailtrim.analysis.lost import MOST
from tailtrim.analysis.options import WELL, cores, native
from tailtrim.analysis.result import Analysis

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tailtrim.analysis.groups import Group
    from tailtrim.analysis.options import Departures, MatchingOptions


def analyze(  # noqa: PLR0913 - keyword-only options, each with a default
    ingress: str | os.PathLike[str],
    egress: str | os.PathLike[str],
    *,
    allow_negative: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
    keep_lost: bool = False,
    by: str | None = None,
    departures: Departures = WELL,
    correction_ns: int = 0,
    jobs: int | None = None,
    progress: Callable[[float | None], object] | None = None,
    **matching: Unpack[MatchingOptions],
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
        out: where to leave a run directory.
        departures: when the load generator was not up to its schedule, if that is known.
        correction_ns: taken off each latency, for cables between the taps and the device.
        keep_samples: keep every sample for :attr:`Analysis.samples` (24 bytes each).
        keep_lost: find the lost packets in the ingress capture, a file, for :attr:`Analysis.lost`.
        by: field of the groups of :attr:`Analysis.groups`, see :func:`tailtrim.analysis.groups.by`.
        jobs: cores to use at most, ``None`` for all. The result is the same to the byte.
        progress: called about every million frames with the share done, ``None`` if unknown.

    Returns:
        The summary and the tables.

    Raises:
        CaptureError: a capture cannot be read; or most packets left before they entered.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    >>> testpmd = Path("examples/testpmd")
    >>> analyze(testpmd / "ingress.pcap.zst", testpmd / "egress.pcap.zst").summary.ingress.lost
    0

    """
    paths = (Path(ingress), Path(egress))
    options = native(matching, departures, correction_ns)
    if keep_lost and not paths[0].is_file():
        raise ValueError(f"{paths[0]}: is read again to find lost packets, expected a file")

    kept: dict[str, Any] = {"keep_samples": keep_samples, "keep_lost": MOST if keep_lost else 0}
    found: list[Group] = []

    def run(directory: Path | None) -> _native.NativeAnalysis:
        to: dict[str, Any] = {"directory": directory, "jobs": cores(jobs), "progress": progress}
        analysis = _native.analyze(paths[0], paths[1], **options, **kept, **to)
        if not allow_negative:
            analysis.check_order()
        if by is not None:
            found.extend(groups.by(*paths, by, jobs=jobs, **matching))
            groups.keep(by, found, directory)
        return analysis

    return Analysis(run(None) if out is None else leave(run, paths, out), groups=found)


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
