"""Histograms of files, whatever tool has written them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tailtrim.analysis.histograms import trex
from tailtrim.analysis.roundtrip.compression import reading
from tailtrim.errors import RoundTripError
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.analysis.histograms.bucket_histogram import BucketHistogram

#: Units of a log's values, and their ns.
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

#: First lines of HdrHistogram's logs, or of parts of one.
_LOG = re.compile(r'#\[|"StartTimestamp"|(Tag=[^,]*,)?[0-9.]+,[0-9.]+,[^,]*,HIST')
#: Titles of texts about the noise of a host.
_NOISE = re.compile("# RTLA |# Histogram$", re.MULTILINE)
_HEAD_LETTERS = 4096
#: In the first object of irtt's JSON.
_OF_IRTT = '"json_format"'


def read_histograms(files: Sequence[Path], *, unit: str | None = None) -> list[BucketHistogram]:
    """Read the latency histograms of TRex's JSON and of HdrHistogram's logs.

    Args:
        files: the files; compressed ones too.
        unit: of the values in a log of HdrHistogram, one of :data:`UNITS`; the log may tell.

    Returns:
        A histogram for each stream, port or tag; none if the files are of other kinds.

    Raises:
        ValueError: the unit is unknown, or belongs to no log.
        RoundTripError: a file cannot be read, or only some are of these kinds.

    """
    if unit is not None and unit not in UNITS:
        raise ValueError(f"unknown unit {unit!r}, expected one of {', '.join(UNITS)}")
    kinds = [_kind(path) for path in files]
    if unit is not None and "hlog" not in kinds:
        raise ValueError("unit belongs to logs of HdrHistogram, other files tell theirs")
    if all(kind is None for kind in kinds):
        return []
    if None in kinds:
        other = files[kinds.index(None)]
        raise RoundTripError(f"{other}: is of another kind than the others, expected all of one")
    found: list[BucketHistogram] = []
    for path, kind in zip(files, kinds, strict=True):
        if kind == "json":
            found += _trex(path)
        else:
            # numpy and hdrh take longer to import than most commands run.
            from tailtrim.analysis.histograms import hlog  # noqa: PLC0415

            found += hlog.read(path, UNITS[unit] if unit else None)
    return found


def _kind(path: Path) -> str | None:
    """Return the kind of a file with histograms, by its first letters."""
    with reading(path) as file:
        head = file.read(_HEAD_LETTERS).lstrip("\ufeff \t\r\n")
    if head.startswith("{"):
        return None if _OF_IRTT in head else "json"
    if _NOISE.search(head):
        raise RoundTripError(f"{path}: is of cyclictest or rtla, read it by tailtrim noise --read")
    return "hlog" if _LOG.match(head) else None


def _trex(path: Path) -> list[BucketHistogram]:
    with reading(path) as file:
        try:
            value = parsed(file.read())
            found = list(trex.histograms(value, path.name))
        except ValueError as error:
            message = (
                f"{path}: {error}, expected the latency statistics of TRex or the JSON of irtt"
            )
            raise RoundTripError(message) from error
    if not found:
        raise RoundTripError(_unknown(path, value))
    return found


def _unknown(path: Path, value: dict[str, object]) -> str:
    if "thread" in value:
        return f"{path}: is of cyclictest or oslat, read it by tailtrim noise --read"
    return (
        f"{path}: JSON without latency histograms, expected that of TRex's get_stats() with streams"
        " that measure latency, or that of irtt client -o"
    )
