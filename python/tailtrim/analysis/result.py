"""Result of an analysis, the same for all engines: :class:`Analysis`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.results import TABLES, Summary
from tailtrim.results.tabular import Tabular

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    import pyarrow as pa

    from tailtrim import _native
    from tailtrim.analysis.groups import Group
    from tailtrim.results.summary import Quantile


_KEPT = {"sample": ("samples", "keep_samples"), "lost": ("lost packets", "keep_lost")}


class Analysis(Tabular):
    """Result of :func:`analyze`: the summary, and tables as Arrow."""

    def __init__(
        self,
        native: _native.NativeAnalysis,
        *,
        groups: Sequence[Group] = (),
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """Wrap the native result, those of its groups if there are any, and where it was left."""
        self._native = native
        #: The run directory, ``None`` without ``out``.
        self.directory = None if directory is None else Path(directory)
        #: Tails of the packets by a field, largest group first, then the rest.
        self.groups = tuple(groups)
        self.summary = Summary.from_json(native.summary_json())

    def __repr__(self) -> str:
        """Name the essential numbers."""
        latency = self.summary.latency_ns
        return f"<Analysis of {self.summary.samples} samples, {latency.min} to {latency.max} ns>"

    def quantile(self, p: str | float) -> Quantile:
        """Return a quantile of the latency with its interval, such as ``"99.9 %"`` or 0.999.

        Raises:
            ValueError: ``p`` is invalid, or :func:`analyze` was not asked for it.

        """
        return self.summary.quantile(p)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables; ``sample`` can be had only with ``keep_samples``."""
        return TABLES

    @property
    def histogram(self) -> pa.Table:
        """Every latency and how often it occurred: ``latency_ns``, ``count``, ascending."""
        return self.table("histogram")

    @property
    def quantiles(self) -> pa.Table:
        """Quantiles with intervals along the whole curve: ``p``, ``value_ns``, ``low_ns``, …."""
        return self.table("quantile")

    @property
    def worst(self) -> pa.Table:
        """The worst packets, worst first: ``latency_ns``, stamps, signature, ``sample_index``."""
        return self.table("worst")

    @property
    def gaps(self) -> pa.Table:
        """Inter-packet gaps: ``tap`` (ingress or egress), ``gap_ns``, ``count``."""
        return self.table("gap")

    @property
    def delay_variation(self) -> pa.Table:
        """RFC 3393 delay variation: ``delay_variation_ns``, ``count``."""
        return self.table("delay_variation")

    @property
    def seconds(self) -> pa.Table:
        """Packets, bytes, losses and the maximum of each second since the first ingress stamp."""
        return self.table("second")

    @property
    def bursts(self) -> pa.Table:
        """Latency by position in the burst; empty where the traffic had none."""
        return self.table("burst")

    @property
    def samples(self) -> pa.Table:
        """One row a matched packet, in the order in which they left.

        Raises:
            ValueError: when :func:`analyze` was not told to ``keep_samples``.

        """
        return self.table("sample")

    @property
    def lost(self) -> pa.Table:
        """One row a lost packet, in the order of the ingress capture: ``frame``, ``cluster``, ….

        Raises:
            ValueError: when :func:`analyze` was not told to ``keep_lost``.

        """
        return self.table("lost")

    def latencies_ns(self) -> np.ndarray[Any, Any]:
        """Return the latency of every sample in the order in which they left (int64, ns).

        Raises:
            ValueError: when :func:`analyze` was not told to ``keep_samples``.

        """
        array: np.ndarray[Any, Any] = self.samples["latency_ns"].to_numpy()
        return array

    def table(self, name: str) -> pa.Table:
        """Return a table by its name, see ``schema/``.

        Raises:
            ValueError: samples or lost packets are asked for, and :func:`analyze` was not told to
                keep them.

        """
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most analyses run

        try:
            return pa.Table.from_batches([self._native.table(name)])
        except ValueError as error:
            if (kept := _KEPT.get(name)) is None:
                raise
            message = f"the {kept[0]} were not kept, call analyze(..., {kept[1]}=True)"
            raise ValueError(message) from error
