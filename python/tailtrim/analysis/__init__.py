"""Analysis of two captures: :func:`analyze`, and its result, :class:`Analysis`."""

from tailtrim.analysis.one_pass import analyze
from tailtrim.analysis.result import Analysis

__all__ = ["Analysis", "analyze"]
