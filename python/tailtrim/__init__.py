"""Measure, explain and trim the tail latency of packet processing.

>>> import tailtrim
>>> analysis = tailtrim.analyze("examples/testpmd/ingress.pcap.zst",
...                             "examples/testpmd/egress.pcap.zst")
>>> for quantile in analysis.summary.latency_ns.quantiles[:3]:
...     print(quantile.p, quantile.supported)
0.5 True
0.9 True
0.99 True

Every name is loaded when it is first used: a command that needs none of them starts in a tenth of
the time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailtrim.analysis import Analysis, analyze
    from tailtrim.errors import CaptureError, OutputError, RunDirectoryError, TailtrimError
    from tailtrim.rundir import RunDirectory, Summary

    __version__: str

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

_PLACES = {
    "Analysis": "tailtrim.analysis",
    "CaptureError": "tailtrim.errors",
    "OutputError": "tailtrim.errors",
    "RunDirectory": "tailtrim.rundir",
    "RunDirectoryError": "tailtrim.errors",
    "Summary": "tailtrim.rundir",
    "TailtrimError": "tailtrim.errors",
    "analyze": "tailtrim.analysis",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module("tailtrim._native").VERSION
    elif name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
