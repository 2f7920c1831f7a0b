"""A run directory in the formats of other tools.

=============== ==============================================================================
``hgrm``        HdrHistogram's percentile distribution, for its plotter and many others
``hlog``        HdrHistogram's interval log, a histogram for each second of the run
``hpct``        ping results of HiPerConTracer, version 2; of ``tailtrim ping`` alone
``csv``         what the measurement scripts of the "5G QoS" and "Ducked Tails" papers write
``openmetrics`` OpenMetrics, for Prometheus: a histogram, quantiles with bounds, losses, objectives
``perfetto``    the trace of the CPUs, for Perfetto; of a run with a trace, or of a trace alone
=============== ==============================================================================

>>> sorted(FORMATS)
['csv', 'hgrm', 'hlog', 'hpct', 'openmetrics', 'perfetto']
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from tailtrim.analysis.slo import Objective
    from tailtrim.results import RunDirectory
    from tailtrim.results.summary import Notice

__all__ = ["FORMATS", "Conversion", "convert"]

#: Formats that :func:`convert` can write, each with a short description.
FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "hgrm": "HdrHistogram percentile distribution, in µs",
        "hlog": "HdrHistogram interval log, a histogram for each second",
        "hpct": "HiPerConTracer ping results, version 2, of what tailtrim ping measured",
        "csv": "percentiles, histograms, worst packets and rates as in the TUM papers",
        "openmetrics": "OpenMetrics 1.0, and 2.0 with a native histogram, for Prometheus",
        "perfetto": "trace of the CPUs, for Perfetto",
    }
)

#: Module of each, and the options that its ``write`` takes.
_WRITERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "hgrm": ("hgrm", ("significant_digits",)),
    "hlog": ("interval_log", ("significant_digits",)),
    "hpct": ("round_trips", ()),
    "csv": ("papers", ("bucket_ns",)),
    "openmetrics": ("openmetrics", ("objectives",)),
    "perfetto": ("perfetto", ()),
}
_MOST_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Conversion:
    """The files that were written, and notices for their reader."""

    files: tuple[Path, ...]
    notices: tuple[Notice, ...] = ()


def convert(  # noqa: PLR0913 - keyword-only options
    run: RunDirectory,
    format: str,  # noqa: A002 - the word users know
    out: str | os.PathLike[str],
    *,
    significant_digits: int = 3,
    bucket_ns: int = 100,
    objectives: Sequence[Objective] = (),
) -> Conversion:
    """Write a run in another tool's format.

    Files of the same names are replaced, each at once: a reader sees the old one or the new one
    whole. A run without samples gives valid files that hold none.

    Args:
        run: the run to convert.
        format: one of :data:`FORMATS`.
        out: the directory for the files; made if need be.
        significant_digits: decimal digits to which ``hgrm`` and ``hlog`` keep latencies apart, 1 to
            5; 3 means buckets no wider than 0.1 % of their values. Each digit takes ten times the
            memory. ``csv`` is exact.
        bucket_ns: width in ns of the buckets of the histograms in ``csv``; the papers have 100.
        objectives: ``openmetrics`` says whether each of them holds.

    Returns:
        The files, and notices for their reader, above all on data that they cannot hold.

    Raises:
        ValueError: the format is unknown or an option makes no sense.
        RunDirectoryError: a table of the run is missing, damaged or contradicts its summary.
        OutputError: a file cannot be written.

    Example:
        >>> import tempfile, tailtrim
        >>> with tempfile.TemporaryDirectory() as place:
        ...     _ = tailtrim.analyze("examples/testpmd/ingress.pcap.zst",
        ...                          "examples/testpmd/egress.pcap.zst", out=f"{place}/testpmd")
        ...     conversion = convert(tailtrim.RunDirectory(f"{place}/testpmd"), "hgrm", place)
        ...     print(conversion.files[0].name, *conversion.files[0].read_text().split()[:4])
        testpmd.hgrm Value Percentile TotalCount 1/(1-Percentile)

    """
    if format not in FORMATS:
        message = f"unknown format {format!r}, expected one of {', '.join(FORMATS)}"
        raise ValueError(message)
    if not 1 <= significant_digits <= _MOST_DIGITS:
        message = f"{significant_digits} significant digits, expected 1 to {_MOST_DIGITS}"
        raise ValueError(message)
    if bucket_ns < 1:
        message = f"buckets of {bucket_ns} ns, expected at least 1"
        raise ValueError(message)
    module, options = _WRITERS[format]
    # numpy and HdrHistogram take longer to import than most commands run.
    writer = import_module(f"tailtrim.publishing.export.{module}")
    given: dict[str, Any] = {
        "significant_digits": significant_digits,
        "bucket_ns": bucket_ns,
        "objectives": objectives,
    }
    conversion: Conversion = writer.write(run, Path(out), **{name: given[name] for name in options})
    return conversion
