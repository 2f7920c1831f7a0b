"""From two captures to the tail: :func:`analyze`, and what comes out, :class:`Analysis`."""

from tailtrim.analysis.one_pass import analyze
from tailtrim.analysis.result import Analysis

__all__ = ["Analysis", "analyze"]
