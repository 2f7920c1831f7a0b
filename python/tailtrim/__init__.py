"""Measure, explain and trim the tail latency of packet processing.

>>> import tailtrim
>>> analysis = tailtrim.analyze("examples/testpmd/ingress.pcap.zst",
...                             "examples/testpmd/egress.pcap.zst")
>>> for quantile in analysis.summary.latency_ns.quantiles[:3]:
...     print(quantile.p, quantile.value, quantile.supported)
0.5 5829 False
0.9 7671 False
0.99 32463 False

Every name is loaded when it is first used: a command that needs none of them starts in a tenth of
the time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailtrim.analysis import Analysis, analyze
    from tailtrim.analysis.compare import compare
    from tailtrim.analysis.explain import explain
    from tailtrim.errors import CaptureError, OutputError, RunDirectoryError, TailtrimError
    from tailtrim.publishing.notebook import run
    from tailtrim.results import RunDirectory, Summary
    from tailtrim.results.experiments import RecordedExperiment as Experiment
    from tailtrim.results.tabular import Tabular

    __version__: str

__all__ = [
    "Analysis",
    "CaptureError",
    "Experiment",
    "OutputError",
    "RunDirectory",
    "RunDirectoryError",
    "Summary",
    "TailtrimError",
    "__version__",
    "analyze",
    "compare",
    "explain",
    "run",
]

_PLACES = {
    "Analysis": "tailtrim.analysis",
    "CaptureError": "tailtrim.errors",
    "Experiment": "tailtrim.results.experiments:RecordedExperiment",
    "OutputError": "tailtrim.errors",
    "RunDirectory": "tailtrim.results",
    "RunDirectoryError": "tailtrim.errors",
    "Summary": "tailtrim.results",
    "TailtrimError": "tailtrim.errors",
    "analyze": "tailtrim.analysis",
    "compare": "tailtrim.analysis.compare",
    "explain": "tailtrim.analysis.explain",
    "run": "tailtrim.publishing.notebook",
}


def _html(result: Tabular) -> str:
    """Return a result as HTML.

    Pages and figures stand above the results that they show, and the package above both: this is
    the hook by which a result, without importing them, is shown in a notebook.
    """
    from tailtrim.publishing.notebook import html  # noqa: PLC0415 - only notebooks pay for it

    return html(result)


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module("tailtrim._native").VERSION
    elif name in _PLACES:
        place, _, other_name = _PLACES[name].partition(":")
        value = getattr(import_module(place), other_name or name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
