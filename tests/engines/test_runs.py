"""Runs of pairs on disk, which are merged a few rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tailtrim.engines.runs import Runs

if TYPE_CHECKING:
    from pathlib import Path

ROWS, RUNS = 1_000_000, 4


def batch(seed: int) -> pa.RecordBatch:
    """Pairs as an engine gives them: in order, with one column of few values."""
    random = np.random.default_rng(seed)
    stamps = np.cumsum(random.integers(1, 100_000, ROWS))
    return pa.record_batch({"decided_ns": stamps, "decided_side": np.ones(ROWS, dtype=np.int64)})


def test_a_run_is_read_as_it_was_written_with_little_of_it_in_memory(tmp_path: Path) -> None:
    written = batch(0)
    with Runs(tmp_path) as runs:
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
