"""Options that choose an engine, and the analysis with one."""

from __future__ import annotations

import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailtrim.cli.console import Progress, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim import Analysis
    from tailtrim.analysis.decode import Decoded
    from tailtrim.analysis.engines import EngineOptions


class EngineName(StrEnum):
    """Engines that match packets."""

    NATIVE = "native"
    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SPARK = "spark"


# Options that have another name in Python.
_OPTIONS = {"masks": "mask", "x552_trailer": "x552-trailer"}

Server = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="postgres: a DSN such as postgresql://user@host/database (completed from libpq's"
        " environment variables); spark: sc://HOST:PORT; duckdb: a database file.",
    ),
]
Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory limit of DuckDB, such as 2GB.")
]
Scratch = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Directory for data that does not fit into memory."),
]


def analyze(  # noqa: PLR0913 - what the command line says
    captures: Sequence[str],
    *,
    engine: EngineName,
    server: str | None,
    memory: str | None,
    scratch: Path | None,
    decoding: dict[str, Any],
    matching: dict[str, Any],
) -> Analysis:
    """Match decoded captures, or captures that are decoded for the occasion."""
    from tailtrim.analysis import engines  # noqa: PLC0415 - the native matcher does without
    from tailtrim.analysis.decode import Decoded, decode  # noqa: PLC0415

    options = engines.EngineOptions(server=server, memory=memory, scratch=scratch)
    directory, numbers = _decoded(captures)
    if directory is not None:
        given = [name for name, value in decoding.items() if value]
        if given:
            raise ValueError(
                f"{directory}: was decoded without --{_OPTIONS.get(given[0], given[0])}, expected"
                " it at decode: decode the captures again"
            )
        decoded = Decoded(directory)
        with engines.connect(str(engine), options) as at:
            return _match(at, decoded, numbers, matching)
    if engine is EngineName.SPARK:
        return _in_stretches(captures, options, decoding | matching)
    with (
        engines.connect(str(engine), options) as at,
        tempfile.TemporaryDirectory(prefix="tailtrim-decoded-", dir=scratch) as place,
        Progress("decoding") as progress,
    ):
        decoded = decode(captures, place, progress=progress, **decoding)
        return _match(at, decoded, (None, None), matching)


def _in_stretches(captures: Sequence[str], at: EngineOptions, options: dict[str, Any]) -> Analysis:
    """Match captures on a Spark cluster, or here if they cannot be cut."""
    import tailtrim  # noqa: PLC0415 - the help does without
    from tailtrim.analysis import engines  # noqa: PLC0415
    from tailtrim.analysis.engines.stretches import analyze_captures  # noqa: PLC0415

    if options["out"] is None and not options["keep_samples"]:
        of_samples = ("out", "keep_samples")
        asked = {name: value for name, value in options.items() if name not in of_samples}
        with engines.connect(EngineName.SPARK, at) as spark, Progress("matching") as progress:
            analysis = analyze_captures(spark, *captures, progress=progress, **asked)
        if analysis is not None:
            return analysis
        why = (
            "these captures cannot be cut into stretches: only plain pcap files of some million"
            " packets can, in which no packet comes again much later or is there several times"
        )
    else:
        why = "to send the samples, for --out or an objective, takes longer than to match packets"
    say(f"note: matched on this host, since {why}", err=True)
    with Progress("matching") as progress:
        return tailtrim.analyze(*captures, progress=progress, **options)


def _match(
    engine: Any, decoded: Decoded, numbers: tuple[int | None, int | None], matching: dict[str, Any]
) -> Analysis:
    from tailtrim.analysis import engines  # noqa: PLC0415

    return engines.analyze(engine, decoded, ingress=numbers[0], egress=numbers[1], **matching)


def _decoded(captures: Sequence[str]) -> tuple[Path | None, tuple[int | None, int | None]]:
    """Return the decoded directory that ``DIR`` or ``DIR:0 DIR:1`` stand for, if they do."""
    if len(captures) == 1:
        if not Path(captures[0]).is_dir():
            raise ValueError(f"{captures[0]}: is one capture, expected a second one")
        return Path(captures[0]), (None, None)
    parted = [capture.rpartition(":") for capture in captures]
    if all(Path(path).is_dir() and number.isdigit() for path, _, number in parted):
        folders = {path for path, _, _ in parted}
        if len(folders) > 1:
            raise ValueError(
                "captures of two decoded directories cannot be matched: name one directory"
            )
        return Path(folders.pop()), (int(parted[0][2]), int(parted[1][2]))
    return None, (None, None)


def is_decoded(captures: Sequence[str]) -> bool:
    """Tell decoded captures, which the native matcher does not read, from others."""
    return any(Path(capture.rpartition(":")[0] or capture).is_dir() for capture in captures)
