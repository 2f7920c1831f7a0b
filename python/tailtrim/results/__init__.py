"""The run directory: the results of an analysis, kept so that others can check them.

::

    summary.json            the numbers, as ``--json`` prints them
    provenance.json         command, versions, inputs with their hashes
    sample.parquet          one row a matched packet
    histogram.parquet       latency → count, exact
    quantile.parquet        quantiles with their intervals along the whole curve
    worst.parquet           the worst packets, worst first
    gap.parquet             inter-packet gaps at both taps → count
    delay_variation.parquet RFC 3393 delay variation → count
    second.parquet          packets, bytes, losses and the maximum of each second
    burst.parquet           position in the burst, latency → count
    roundtrip.parquet       every round trip with its stamps (of ``tailtrim ping`` alone)

The columns of the tables are in ``schema/``. A directory is written next to its final place and
moved there when it is complete: a directory that exists is whole.

This package reads; code that writes run directories imports :mod:`tailtrim.results.writing`.
"""

from tailtrim.results.layout import (
    DEPARTURES,
    DISTURBED,
    ENERGY,
    EVENTS,
    INTERRUPTS,
    STALLS,
    TABLES,
)
from tailtrim.results.reading import RunDirectory
from tailtrim.results.summary import Summary

__all__ = [
    "DEPARTURES",
    "DISTURBED",
    "ENERGY",
    "EVENTS",
    "INTERRUPTS",
    "STALLS",
    "TABLES",
    "RunDirectory",
    "Summary",
]
