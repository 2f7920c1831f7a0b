"""A release from others, opened with its limits checked: :class:`UntrustedRelease`."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError, ReleaseError
from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.plan import load, load_testbed
from tailtrim.laboratory.plan.plan_file import Source
from tailtrim.publishing.release import safe_files
from tailtrim.publishing.release.layout import EXPERIMENT, PLAN, RECORD, SCHEMA, SEARCHES, TESTBED
from tailtrim.results.experiments import RECORD as EXPERIMENT_RECORD
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow.parquet as pq

    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.results.experiments import RecordedExperiment

_RUN = re.compile(r"run-[0-9]{3,9}")
_TEXTS = (".json", ".yml", ".csv")
#: Bytes of a value by its physical type in Parquet.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class UntrustedRelease:
    """A release.

    Args:
        root: where it is.

    Raises:
        ReleaseError: it is not a release, or has what leads out of it.

    """

    def __init__(self, root: Path) -> None:
        """Look at its files and read its record."""
        if not (root / RECORD).is_file():
            raise ReleaseError(f"{root}: not a release, expected one with a {RECORD}")
        self.root = root
        #: All files, by their path from the root on.
        self.files = safe_files.files(root)
        self.record = safe_files.record(root / RECORD)
        if self.record.get("schema") != SCHEMA:
            found = self.record.get("schema")
            raise ReleaseError(f"{root / RECORD}: the schema is {found!r}, expected {SCHEMA!r}")
        for name in self.files:
            self._bounded(name)
        self.place = root / EXPERIMENT
        #: ``experiment.json`` as it is.
        self.told = safe_files.record(self.place / EXPERIMENT_RECORD)
        #: The runs that it names.
        self.runs: list[str] = []
        outcomes = self.told.get("outcomes")
        for outcome in outcomes if isinstance(outcomes, list) else ():
            run = outcome.get("run") if isinstance(outcome, dict) else None
            if not isinstance(run, str) or not _RUN.fullmatch(run):
                place = self.place / EXPERIMENT_RECORD
                raise ReleaseError(f"{place}: {run!r} is not the name of a run, such as run-000")
            self.runs.append(run)

    def _bounded(self, name: str) -> None:
        place = self.root / name
        if place.suffix in _TEXTS and place.stat().st_size > safe_files.MOST_TEXT_BYTES:
            raise ReleaseError(
                f"{place}: more than {safe_files.MOST_TEXT_BYTES:,} bytes, too large"
            )
        if place.suffix != ".parquet":
            return
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        try:
            about = pq.read_metadata(place)
        except (OSError, pa.ArrowException):
            return  # that it is damaged, its level says
        size = _unpacked_bytes(about)
        if size > (most := _most_bytes()):
            told = f"{place}: up to {size:,} bytes unpacked, too large"
            raise ReleaseError(f"{told}: expected at most {most:,}, half of this machine's memory")

    @cached_property
    def experiment(self) -> RecordedExperiment:
        """The experiment and its runs.

        Raises:
            RunDirectoryError: they cannot be read.

        """
        return recorded(self.place)

    @property
    def imported(self) -> str | None:
        """Origin of imported results, such as pos, which have no plan; ``None`` for others."""
        told = self.told.get("imported")
        return str(told.get("from")) if isinstance(told, dict) else None

    @cached_property
    def described(self) -> TestbedDescription | None:
        """The testbed; ``None`` for one machine.

        Raises:
            PlanError: the plan names another file than the release's, or that is not a testbed.

        """
        if self.imported:
            return None
        said = Source(self.place / PLAN).data.get("testbed", LOCAL)
        if said == LOCAL:
            return None
        if said != TESTBED:
            raise PlanError(f"{self.place / PLAN}: testbed: expected {LOCAL} or {TESTBED}")
        return load_testbed(self.place / TESTBED)

    @cached_property
    def planned(self) -> tuple[Plan, list[Run]]:
        """The plan and its runs.

        Raises:
            PlanError: the plan cannot be read.

        """
        return load(self.place / PLAN, self.described)

    @cached_property
    def trials(self) -> list[str] | None:
        """The runs that a search chose; ``None`` where the plan has the runs.

        Raises:
            ReleaseError: the record of the search is damaged.

        """
        for name in SEARCHES:
            place = self.place / name
            if place.is_file():
                told = safe_files.record(place).get("trials")
                if not isinstance(told, list) or not all(isinstance(one, dict) for one in told):
                    raise ReleaseError(f"{place}: trials: expected a list of objects")
                return [str(one.get("run")) for one in told]
        return None


def _unpacked_bytes(about: pq.FileMetaData) -> int:
    """Return the most that the values of a table can take.

    Parquet's own metadata have the size of encoded values: a value that repeats a billion times
    takes a few bytes there.
    """
    size = 0
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        for at in range(group.num_columns):
            column = group.column(at)
            # Of any length: none is longer than all that is encoded.
            width = _WIDTHS.get(column.physical_type, column.total_uncompressed_size)
            size += column.num_values * width
    return size


def _most_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
