"""Compare each published capture with itself: halves by time, and halves of pieces drawn by lot.

    python benchmarks/halves.py "$TAILTRIM_DATA/low-latency" > halves.md

Halves by time differ where the device drifts; pieces drawn by lot do not, whatever drifts. So the
latter say how often real data lead to a false verdict, the former what a drift leads to.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tailtrim
from tailtrim import _native

QUANTILES = ["0.5", "0.9", "0.99", "0.999", "0.9999"]
PIECES = 64
LOTS = 40
SIGNS = {"better": "−", "worse": "+", "no_difference_shown": "=", "not_supported": "·"}  # noqa: RUF001


def compared(a: Any, b: Any, margin: float, seed: int = 1) -> list[dict[str, Any]]:
    """Return the rows of a comparison of two columns of latencies."""
    sides = [[_native.NativeRepetition(pa.table({"latency_ns": side}))] for side in (a, b)]
    text = _native.compare_runs(
        *sides, quantiles=QUANTILES, curve=[], confidence="0.95", margin=margin, seed=seed
    )
    rows: list[dict[str, Any]] = json.loads(text)["quantiles"]
    return rows


def signs(rows: list[dict[str, Any]]) -> str:
    """Return the verdicts in a word, from the median to p99.99."""
    return "".join(SIGNS[row["verdict"]] for row in rows)


def by_lot(latencies: Any, seed: int) -> tuple[Any, Any]:
    """Put half of the pieces on each side, in their order."""
    pieces = np.array_split(latencies, PIECES)
    lots = np.random.default_rng(seed).permutation(PIECES) < PIECES // 2
    a = [piece for piece, lot in zip(pieces, lots, strict=True) if lot]
    b = [piece for piece, lot in zip(pieces, lots, strict=True) if not lot]
    return np.concatenate(a), np.concatenate(b)


def main() -> None:
    """Print a table in Markdown."""
    print(
        "| capture | median of each sixth, µs | p99 of each sixth, µs | second half over first:"
        " p50, p90, p99 | verdicts, no margin | verdicts, margin 1 % | false verdicts by lot |"
    )
    print("|---|---|---|---|---|---|---|")
    all_false = 0
    captures = sorted(Path(sys.argv[1]).rglob("*-pre-*.pcap.zst"))
    for pre in captures:
        post = pre.with_name(pre.name.replace("-pre-", "-post-"))
        samples = tailtrim.analyze(pre, post, keep_samples=True).samples
        latencies = samples["latency_ns"].to_numpy()
        middle = latencies.size // 2
        halves = latencies[:middle], latencies[middle:]
        exact, wide = (compared(*halves, margin) for margin in (0.0, 0.01))
        sixths = np.array_split(latencies, 6)
        levels = [
            " ".join(f"{np.quantile(part, p, method='inverted_cdf') / 1e3:.2f}" for part in sixths)
            for p in (0.5, 0.99)
        ]
        false = 0
        for seed in range(LOTS):
            rows = compared(*by_lot(latencies, seed), 0.0, seed)
            false += any(row["verdict"] in ("better", "worse") for row in rows)
        all_false += false
        ratios = ", ".join(f"{row['ratio']:.4f}" for row in exact[:3])
        folder = pre.parent.relative_to(sys.argv[1])
        name = f"{folder} {pre.name.split('-burst')[0]}" if "burst" in pre.name else str(folder)
        cells = [
            name,
            *levels,
            ratios,
            f"`{signs(exact)}`",
            f"`{signs(wide)}`",
            f"{false} of {LOTS}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    tried = LOTS * len(captures)
    print(
        f"\nBy lot: {all_false} of {tried} comparisons with any verdict, {all_false / tried:.1%}."
    )


if __name__ == "__main__":
    main()
