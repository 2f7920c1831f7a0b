"""From two captures to the tail: :func:`analyze`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim import _native
from tailtrim.rundir import Summary
from tailtrim.rundir.writing import Draft, provenance, sha256

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any

    import numpy as np
    import pyarrow as pa

MASKS = ("nat", "tos", "tunnel")

_LONGEST_S = 2**61 // 10**9


class Analysis:
    """What :func:`analyze` returns: the summary, and tables as Arrow."""

    def __init__(self, native: _native.NativeAnalysis) -> None:
        """Wrap the native result."""
        self._native = native
        self.summary = Summary.from_json(native.summary_json())

    def __repr__(self) -> str:
        """Name the essential numbers."""
        latency = self.summary.latency_ns
        return f"<Analysis of {self.summary.samples} samples, {latency.min} to {latency.max} ns>"

    @property
    def histogram(self) -> pa.Table:
        """Every latency and how often it occurred: ``latency_ns``, ``count``, ascending."""
        return self._table("histogram")

    @property
    def quantiles(self) -> pa.Table:
        """Quantiles with intervals along the whole curve: ``p``, ``value_ns``, ``low_ns``, …."""
        return self._table("quantile")

    @property
    def worst(self) -> pa.Table:
        """The worst packets, worst first: ``latency_ns``, stamps, signature, ``sample_index``."""
        return self._table("worst")

    @property
    def gaps(self) -> pa.Table:
        """Inter-packet gaps: ``tap`` (ingress or egress), ``gap_ns``, ``count``."""
        return self._table("gap")

    @property
    def delay_variation(self) -> pa.Table:
        """RFC 3393 delay variation: ``delay_variation_ns``, ``count``."""
        return self._table("delay_variation")

    @property
    def seconds(self) -> pa.Table:
        """Packets, bytes, losses and the maximum of each second since the first ingress stamp."""
        return self._table("second")

    @property
    def bursts(self) -> pa.Table:
        """Latency by position in the burst; empty where the traffic had none."""
        return self._table("burst")

    @property
    def samples(self) -> pa.Table:
        """One row a matched packet, in the order in which they left.

        Raises:
            ValueError: when :func:`analyze` was not told to ``keep_samples``.

        """
        return self._table("sample")

    def latencies_ns(self) -> np.ndarray[Any, Any]:
        """Return the latency of every sample in the order in which they left (int64, ns).

        Raises:
            ValueError: when :func:`analyze` was not told to ``keep_samples``.

        """
        array: np.ndarray[Any, Any] = self.samples["latency_ns"].to_numpy()
        return array

    def _table(self, name: str) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most analyses run

        batch = self._samples() if name == "sample" else self._native.table(name)
        return pa.Table.from_batches([pa.record_batch(batch)])

    def _samples(self) -> Any:
        try:
            return self._native.table("sample")
        except ValueError as error:
            message = "the samples were not kept, call analyze(..., keep_samples=True)"
            raise ValueError(message) from error


def analyze(  # noqa: PLR0913 - keyword-only options, each with a default
    ingress: str | os.PathLike[str],
    egress: str | os.PathLike[str],
    *,
    signature: str | None = None,
    masks: Sequence[str] = (),
    trim_s: str | float = 1,
    window_s: str | float = 5,
    quantiles: Sequence[str] = (),
    confidence: str = "0.95",
    x552_trailer: bool = False,
    salvage: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep_samples: bool = False,
    progress: Callable[[float | None], object] | None = None,
) -> Analysis:
    """Match an ingress and an egress capture of a device under test.

    Args:
        ingress: capture of what enters (pcap, pcapng, mscap; ``.zst``, ``.gz``; ``-`` for stdin).
        egress: capture of what leaves.
        signature: bytes that identify a packet as ``OFFSET:LENGTH,…`` from the start of the frame,
            instead of the default ones.
        masks: fields that the device rewrites beside MAC addresses, VLAN tags, TTL and checksums:
            ``nat``, ``tos``, ``tunnel``.
        trim_s: seconds after the first match whose samples do not count.
        window_s: seconds after which a packet is not matched any more.
        quantiles: quantiles beside 0.5, 0.9, 0.99 …, as decimal text or percent.
        confidence: confidence of the intervals.
        x552_trailer: take stamps from the last eight bytes of each frame.
        salvage: use what precedes damage instead of raising.
        out: where to leave a run directory.
        keep_samples: keep every sample for :attr:`Analysis.samples` (24 bytes each).
        progress: called about every million frames with the share done, ``None`` if unknown.

    Returns:
        The summary and the tables.

    Raises:
        CaptureError: a capture cannot be read.
        OutputError: ``out`` cannot be written.
        ValueError: an option makes no sense.

    Example:
        >>> analysis = analyze("examples/testpmd/ingress.pcap.zst",
        ...                    "examples/testpmd/egress.pcap.zst")
        >>> analysis.summary.ingress.lost
        0
        >>> analysis.histogram.column_names
        ['latency_ns', 'count']

    """
    unknown = [mask for mask in masks if mask not in MASKS]
    if unknown:
        raise ValueError(f"mask {unknown[0]!r} is unknown, expected one of {', '.join(MASKS)}")
    paths = (Path(ingress), Path(egress))

    def run(directory: Path | None) -> _native.NativeAnalysis:
        return _native.analyze(
            *paths,
            signature=signature,
            masks=list(masks),
            trim_ns=nanoseconds("trim", trim_s),
            window_ns=nanoseconds("window", window_s),
            quantiles=list(quantiles),
            confidence=confidence,
            x552_trailer=x552_trailer,
            salvage=salvage,
            watched_to_the_end=False,
            directory=directory,
            keep_samples=keep_samples,
            progress=progress,
        )

    if out is None:
        return Analysis(run(None))
    with Draft(out) as draft, ThreadPoolExecutor(1) as hashing:
        hashes = hashing.map(sha256, paths)
        native = run(draft.path)
        native.write_tables(draft.path)
        draft.commit(native.summary_json(), provenance(paths, list(hashes)))
    return Analysis(native)


def nanoseconds(name: str, seconds: str | float) -> int:
    """Return seconds as an exact number of nanoseconds.

    Raises:
        ValueError: when that is no time.

    """
    try:
        exact = Decimal(str(seconds))
        valid = 0 <= exact < _LONGEST_S
    except InvalidOperation:
        valid = False
    if not valid:
        message = f"{name} {str(seconds)!r} is no time, expected seconds such as 5 or 0.25"
        raise ValueError(message)
    return int(exact * 10**9)
