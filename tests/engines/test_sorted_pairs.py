"""Runs of pairs on disk, which are merged a few rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tailtrim.analysis.engines.sorted_pairs import SortedPairs

if TYPE_CHECKING:
    from pathlib import Path

ROWS, RUNS = 1_000_000, 4


def batch(seed: int, rows: int = ROWS) -> pa.RecordBatch:
    """Pairs as an engine gives them: in order, with one column of few values."""
    random = np.random.default_rng(seed)
    stamps = np.cumsum(random.integers(1, 100_000, rows))
    return pa.record_batch({"decided_ns": stamps, "decided_side": np.ones(rows, dtype=np.int64)})


def test_a_run_is_read_as_it_was_written_with_little_of_it_in_memory(tmp_path: Path) -> None:
    written = batch(0)
    with SortedPairs(tmp_path) as runs:
        for _ in range(RUNS):
            runs.write(iter([written]))
        before = pa.total_allocated_bytes()
        reading = runs.batches()
        firsts = [next(batches) for batches in reading]
        held = pa.total_allocated_bytes() - before
        # However long a run is. All of one takes some 3 MB.
        assert held < RUNS << 20, held
        again = pa.Table.from_batches([firsts[0], *reading[0]])
        assert again.equals(pa.Table.from_batches([written]))
    assert not list(tmp_path.iterdir())


def test_many_runs_share_the_rows_that_are_held(tmp_path: Path) -> None:
    # A billion pairs have 512 runs: with as many rows of each as of few, their merge took 2 GiB.
    many, written = 512, batch(1, 50_000)
    with SortedPairs(tmp_path) as runs:
        for _ in range(many):
            runs.write(iter([written]))
        before = pa.total_allocated_bytes()
        firsts = [next(batches) for batches in runs.batches()]
        held = pa.total_allocated_bytes() - before
    assert sum(map(len, firsts)) <= 1 << 20
    assert held < many << 17, held
