"""Latencies that other tools have counted in buckets: no single one is known, so there is no run.

==================== ==================================================================
``read_histograms``  the histograms of files: TRex's JSON, HdrHistogram's interval log
``BucketHistogram``  latencies in buckets; a quantile is an interval
==================== ==================================================================
"""

from __future__ import annotations

from tailtrim.analysis.histograms.bucket_histogram import Bucket, BucketHistogram
from tailtrim.analysis.histograms.read import UNITS, read_histograms

__all__ = ["UNITS", "Bucket", "BucketHistogram", "read_histograms"]
