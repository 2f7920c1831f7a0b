"""Prints the histogram of a synthetic pair of captures as JSON, without any matching.

The synthetic device is first in, first out and loses nothing: the n-th frame out is the n-th in.

    truth.py INGRESS EGRESS FRAME_BYTES
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from decode import CHUNK, stamps_ns, view


def main() -> None:
    """Count the latencies of one pair."""
    frame_bytes = int(sys.argv[3])
    ingress, egress = (view(Path(name), frame_bytes) for name in sys.argv[1:3])
    histogram: Counter[int] = Counter()
    for start in range(0, len(ingress), CHUNK):
        entered, left = (side[start : start + CHUNK] for side in (ingress, egress))
        if (entered["sequence"] != left["sequence"]).any():
            raise SystemExit("the captures are not in the same order")
        latencies_ns, counts = np.unique(stamps_ns(left) - stamps_ns(entered), return_counts=True)
        histogram.update(dict(zip(latencies_ns.tolist(), counts.tolist(), strict=True)))
    json.dump({"histogram": sorted(histogram.items())}, sys.stdout)


if __name__ == "__main__":
    main()
