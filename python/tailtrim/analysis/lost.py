"""Lost packets: their frames in the ingress capture, and the clusters that they form."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tailtrim.errors import OutputError
from tailtrim.results.drafts import refuse_capture

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

#: Lost packets that are told, the first ones: 4 million take 200 MB.
MOST = 1 << 22


class Cluster(NamedTuple):
    """A run of successive lost packets: no packet between them was delivered."""

    packets: int
    first_frame: int
    first_ns: int
    last_ns: int


def clusters(lost: pa.Table) -> list[Cluster]:
    """Return the clusters of a table of lost packets, largest first, then in order of time."""
    import pyarrow.compute as pc  # noqa: PLC0415 - takes longer to import than most commands run

    by = lost.group_by("cluster").aggregate(
        [("frame", "count"), ("frame", "min"), ("ingress_ns", "min"), ("ingress_ns", "max")]
    )
    order = pc.sort_indices(by, [("frame_count", "descending"), ("frame_min", "ascending")])
    columns = ("frame_count", "frame_min", "ingress_ns_min", "ingress_ns_max")
    ordered = by.take(order)
    return [Cluster(*row) for row in zip(*(ordered[name].to_pylist() for name in columns))]  # noqa: B905


def write(lost: pa.Table, path: Path) -> None:
    """Write a table of lost packets as CSV, or as Parquet where the name ends so.

    Raises:
        OutputError: the file cannot be written, or would replace a capture.

    """
    refuse_capture(path)
    import pyarrow.csv  # noqa: PLC0415 - as above
    import pyarrow.parquet  # noqa: PLC0415

    try:
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(lost, path)
        else:
            pyarrow.csv.write_csv(lost, path, pyarrow.csv.WriteOptions(quoting_style="needed"))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error}") from error
