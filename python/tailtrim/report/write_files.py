"""Writing of reports: their folders, and single files that users name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import OutputError
from tailtrim.rundir.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: Where figures are.
FIGURES = "figures"


def store(
    out: Path, contents: Mapping[str, bytes], *, outdated: Callable[[str], object] = lambda _: False
) -> list[Path]:
    """Write files, and return them.

    Args:
        out: the folder.
        contents: of each file, by its path in the folder; folders are made.
        outdated: tells by the name of a figure whether an earlier report may have left it: it is
            removed where it is not written again.

    Raises:
        OutputError: a file cannot be written or removed.

    """
    for name, content in contents.items():
        with replacing(out / name) as file:
            file.write(content)
    figures = out / FIGURES
    try:
        for figure in list(figures.iterdir()) if figures.is_dir() else ():
            if outdated(figure.name) and f"{FIGURES}/{figure.name}" not in contents:
                figure.unlink()
    except OSError as error:
        raise _failed(error.filename or figures, error) from error
    return [out / name for name in contents]


def write(place: Path, content: bytes) -> None:
    """Write one file in its place, which may be a pipe or a terminal.

    Raises:
        OutputError: it cannot be written.

    """
    try:
        place.write_bytes(content)
    except OSError as error:
        raise _failed(place, error) from error


def _failed(place: object, error: OSError) -> OutputError:
    return OutputError(f"{place}: cannot be written: {error.strerror}")
