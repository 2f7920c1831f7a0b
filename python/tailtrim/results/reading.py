"""A run directory that exists: :class:`RunDirectory`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunDirectoryError
from tailtrim.results.layout import (
    CAPTURE,
    DEVICE,
    GENERATOR,
    GROUPS,
    LOST,
    MINUTES,
    PROVENANCE,
    ROUND_TRIPS,
    SUMMARY,
    TABLES,
)
from tailtrim.results.summary import NO_ORDER, Quantile, Summary
from tailtrim.results.tabular import Tabular
from tailtrim.results.typed_json import read_object

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa


def _found(path: Path) -> str:
    """Say what a path is that should be a run directory, and how to have one."""
    if not path.exists():
        return "does not exist, expected a run directory"
    if path.is_file():
        return "is a file, expected a run directory: analyze --out makes one of captures"
    inside = sorted(one.parent.name for one in path.glob(f"*/{SUMMARY}"))
    several = f"; it holds {len(inside)} of them, such as {inside[0]}" if inside else ""
    return f"is not a run directory, expected a {SUMMARY} in it{several}"


class RunDirectory(Tabular):
    """A run directory that exists.

    Args:
        path: where it is.

    Raises:
        RunDirectoryError: when there is none, or not a whole one.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the directory and read its summary."""
        self.path = Path(path)
        summary = self.path / SUMMARY
        try:
            text = summary.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RunDirectoryError(f"{self.path}: {_found(self.path)}") from error
        self.summary = Summary.from_json(text, source=str(summary))

    def __repr__(self) -> str:
        """Name the place and the essential numbers."""
        return f"<RunDirectory {str(self.path)!r} of {self.summary.samples} samples>"

    def quantile(self, p: str | float) -> Quantile:
        """Return a quantile of the latency with its interval, such as ``"99.9 %"`` or 0.999.

        Raises:
            ValueError: it is none, or was not computed.

        """
        return self.summary.quantile(p)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that are there; ``roundtrip`` is of ``tailtrim ping`` alone."""
        known = (*TABLES, ROUND_TRIPS, LOST)
        return tuple(name for name in known if (self.path / f"{name}.parquet").exists())

    @property
    def name(self) -> str:
        """The directory's own name, which stands for the run in tables and figures."""
        return self.path.resolve().name

    def table(self, name: str, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a table, see ``schema/``, or some of its columns.

        Raises:
            RunDirectoryError: when the directory lacks the table or its file is damaged.

        """
        import pyarrow.parquet  # noqa: PLC0415 - takes longer to import than most commands run

        path = self.table_path(name)
        try:
            # Not read_table, which brings datasets and pandas.
            with pyarrow.parquet.ParquetFile(path) as file:
                return file.read(columns=columns and list(columns))
        except (OSError, pyarrow.ArrowException) as error:
            raise RunDirectoryError(f"{path}: the table cannot be read: {error}") from error

    def table_path(self, name: str) -> Path:
        """Return the file of a table.

        Raises:
            RunDirectoryError: when the directory lacks it; it says why, if that is known.

        """
        path = self.path / f"{name}.parquet"
        if not path.exists():
            why = [notice.text for notice in self.summary.warnings if notice.code == NO_ORDER]
            if (self.path / MINUTES[0]).exists():
                why.append("the run was kept by minute, which needs little disk and has no samples")
            raise RunDirectoryError(
                ": ".join([f"{path}: the table cannot be read: it is missing", *why])
            )
        return path

    def groups(self) -> dict[str, Any]:
        """Tails of the packets by a field: ``field``, ``groups``; empty where none were asked."""
        return self._record(GROUPS)

    def provenance(self) -> dict[str, Any]:
        """Command, versions and inputs of the run; empty where the directory has none."""
        return self._record(PROVENANCE)

    def generator(self) -> dict[str, Any]:
        """Return what the load generator of a live run counted; empty where there is none."""
        return self._record(GENERATOR)

    def capture(self) -> dict[str, Any]:
        """Return what the taps of a live run saw and dropped; empty where there is nothing."""
        return self._record(CAPTURE)

    def device(self) -> dict[str, Any]:
        """Return what is known of the device of a live run; empty where there is nothing."""
        return self._record(DEVICE)

    def _record(self, name: str) -> dict[str, Any]:
        try:
            return read_object(self.path / name)
        except RunDirectoryError:
            return {}
