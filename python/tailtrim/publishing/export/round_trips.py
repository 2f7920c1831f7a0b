"""HiPerConTracer's ping results of what ``tailtrim ping`` measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.analysis.roundtrip.hpct import hpct_name, write_hpct
from tailtrim.analysis.roundtrip.log import pings
from tailtrim.errors import Remedy, RoundTripError, RunDirectoryError
from tailtrim.publishing.export import Conversion

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.results import RunDirectory


def write(run: RunDirectory, out: Path) -> Conversion:
    """Write ``Ping-….hpct.xz``, named as HiPerConTracer's importer expects it.

    Raises:
        RunDirectoryError: the run holds no round trips.
        OutputError: the file cannot be written.

    """
    if not (run.path / "roundtrip.parquet").exists():
        failure = RunDirectoryError(f"{run.path}: no round trips here, expected a run of ping")
        failure.add_note(Remedy("{ping} leaves such a run"))
        raise failure
    try:
        rows = list(pings(run.table("roundtrip")))
    except RoundTripError as error:
        raise RunDirectoryError(f"{run.path}: {error}") from error
    if not rows:
        raise RunDirectoryError(f"{run.path}: no probe was sent, so nothing is written")
    place = out / hpct_name(rows)
    write_hpct(place, rows)
    return Conversion((place,))
