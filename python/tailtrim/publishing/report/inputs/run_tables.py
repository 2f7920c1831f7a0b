"""A run as figures need it: its tables as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tailtrim.errors import RunDirectoryError
from tailtrim.results.columns import integers
from tailtrim.results.minutes import counted, minutes
from tailtrim.results.summary import Spread
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    import pyarrow as pa

    from tailtrim.analysis.explain.host_explanation import WorstExplained
    from tailtrim.results import RunDirectory, Summary
    from tailtrim.results.experiments import RecordedRun
    from tailtrim.results.minutes import Counted, Minute

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class QuantileCurve:
    """Quantiles along the whole curve, ascending; a bound is NaN where there is none."""

    p: tuple[str, ...]
    value_ns: Floats
    low_ns: Floats
    high_ns: Floats


class ReportedRun:
    """A run directory, its name and its place among those of a report.

    ``recorded`` is what an experiment knows of it, ``floor`` the run that is its floor.
    """

    def __init__(
        self,
        index: int,
        name: str,
        directory: RunDirectory,
        recorded: RecordedRun | None = None,
        floor: ReportedRun | None = None,
    ) -> None:
        """Take a directory; tables are read when they are needed."""
        self.index = index
        self.name = name
        self.directory = directory
        self.recorded = recorded
        self.floor = floor

    @property
    def summary(self) -> Summary:
        """The numbers of the run."""
        return self.directory.summary

    @property
    def is_floor(self) -> bool:
        """True where the wire is in the device's place."""
        return self.recorded is not None and self.recorded.outcome.floor

    @property
    def spread(self) -> Spread:
        """The spread of latencies."""
        latency = self.summary.latency_ns
        values = {quantile.p: quantile.value for quantile in latency.quantiles}
        return Spread(
            min=latency.min,
            p50=values.get("0.5"),
            p99=values.get("0.99"),
            p999=values.get("0.999"),
            max=latency.max,
            iqr=latency.iqr,
        )

    def tap_drops(self, side: str) -> int | None:
        """Return the frames that a tap dropped: as the capture says, or the run's own record."""
        tap = self.summary.ingress_tap if side == "ingress" else self.summary.egress_tap
        if tap.tap_drops is not None:
            return tap.tap_drops
        try:
            text = (self.directory.path / "capture.json").read_text(encoding="utf-8")
            return int(parsed(text)["taps"][side]["dropped"])
        except (OSError, ArithmeticError, ValueError, KeyError, TypeError):
            return None

    @cached_property
    def histogram(self) -> tuple[Integers, Integers]:
        """Latencies in ns, ascending, and how often each occurred."""
        latencies, counts = self._arrays(self.directory.table("histogram"), "latency_ns", "count")
        return latencies, counts

    @cached_property
    def ranks(self) -> tuple[Integers, Integers]:
        """Latencies in ns, ascending, and how many samples have at most each."""
        latencies, counts = self.histogram
        return latencies, np.cumsum(counts)

    def quantiles(self) -> QuantileCurve | None:
        """Return the quantiles for the curve, ``None`` if the directory is older than they are."""
        if "quantile" not in self.directory.tables:
            return None
        table = self.directory.table("quantile")
        return QuantileCurve(
            tuple(map(str, self._column(table, "p").to_pylist())),
            *(
                np.asarray(self._column(table, name).to_pylist(), dtype=float)
                for name in ("value_ns", "low_ns", "high_ns")
            ),
        )

    def worst(self) -> tuple[Integers, Integers]:
        """Ingress stamps in ns and latencies in ns of the worst packets."""
        at, latencies = self._arrays(self.directory.table("worst"), "ingress_ns", "latency_ns")
        return at, latencies

    @cached_property
    def samples(self) -> tuple[Integers, Integers]:
        """Ingress and egress stamps in ns of the samples, in the order in which they left."""
        came, left = self._arrays(self.directory.table("sample"), "ingress_ns", "egress_ns")
        order = np.lexsort((came, left))
        return came[order], left[order]

    @cached_property
    def minutes(self) -> list[Minute]:
        """The minutes of a run of hours; nothing of others."""
        return minutes(self.directory.path)

    @cached_property
    def counted(self) -> list[Counted]:
        """Counters of the device's CPUs in each minute."""
        return counted(self.directory.path)

    @cached_property
    def worst_packets(self) -> WorstExplained | None:
        """Explanation of the worst packets of a run of hours; ``None`` without a trace."""
        # It is typed by pydantic, which most pages do without.
        from tailtrim.analysis.explain.host_explanation import worst_packets_of  # noqa: PLC0415

        return worst_packets_of(self.directory)

    def gaps(self) -> dict[str, tuple[Integers, Integers]]:
        """Inter-packet gaps in ns, ascending, and how often each occurred, by tap."""
        table = self.directory.table("gap")
        gaps, counts = self._arrays(table, "gap_ns", "count")
        taps = np.asarray(table["tap"].to_pylist(), dtype=object)
        return {
            tap: (gaps[chosen], counts[chosen])
            for tap in ("ingress", "egress")
            for chosen in (taps == tap,)
        }

    def seconds(self) -> dict[str, Integers]:
        """Return the columns of each second; the maximum is 0 where there are no samples."""
        table = self.directory.table("second")
        names = (
            "second",
            "ingress_packets",
            "egress_packets",
            "lost",
            "samples",
            "max_latency_ns",
        )
        return dict(zip(names, self._arrays(table, *names), strict=True))

    def _arrays(self, table: pa.Table, *names: str) -> tuple[Integers, ...]:
        return tuple(integers(self._column(table, name)) for name in names)

    def _column(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        try:
            return table[name]
        except KeyError as error:
            message = f"{self.directory.path}: a table lacks the column {error}"
            raise RunDirectoryError(message) from error
