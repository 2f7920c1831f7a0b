"""Measure, explain and trim the tail latency of packet processing.

>>> import tailtrim
>>> analysis = tailtrim.analyze("examples/testpmd/ingress.pcap.zst",
...                             "examples/testpmd/egress.pcap.zst")
>>> for quantile in analysis.summary.latency_ns.quantiles[:3]:
...     print(quantile.p, quantile.supported)
0.5 True
0.9 True
0.99 True
"""

from tailtrim import _native
from tailtrim.analysis import Analysis, analyze
from tailtrim.errors import CaptureError, OutputError, RunDirectoryError, TailtrimError
from tailtrim.rundir import RunDirectory, Summary

__version__ = _native.VERSION

__all__ = [
    "Analysis",
    "CaptureError",
    "OutputError",
    "RunDirectory",
    "RunDirectoryError",
    "Summary",
    "TailtrimError",
    "__version__",
    "analyze",
]
