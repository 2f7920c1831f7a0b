"""Spans of a watch in place of run directories: ``WATCH/TARGET@SPAN``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.cli.console import say, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Commands that take run directories.
COMMANDS = frozenset({"compare", "convert", "explain", "query", "report"})


def runs(words: Iterable[str]) -> Iterator[str]:
    """Yield the words of a command line; a span becomes a run directory of the same name, here.

    Raises:
        ValueError: a span has none of its forms.
        RoundTripError: there are no minutes, or they cannot be read.
        OutputError: the run directory cannot be written.

    """
    for word in words:
        yield _run(word) if "@" in word else word


def _run(word: str) -> str:
    from datetime import datetime  # noqa: PLC0415 - most words have no span

    from tailtrim.analysis.roundtrip import watched  # noqa: PLC0415

    found = watched.split(word)
    if found is None:
        return word
    folder, text = found
    span = watched.read(folder, watched.span(text, datetime.now().astimezone()))
    out = Path(f"{span.name}@{text.replace('/', '_')}")
    watched.leave_run(span, out)
    say(f"note: the run of {span.minutes} minutes is left in {out}", err=True)
    if own := {name: span.counts[name] for name in watched.OF_THE_METER if span.counts[name]}:
        told = ", ".join(f"{count} {name}" for name, count in own.items())
        warn(f"{out}: left out as faults of the meter: {told}")
    return str(out)
