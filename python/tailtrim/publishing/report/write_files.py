"""Writing of reports: the packages it takes, folders, and single files that users name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError, PicturesError
from tailtrim.results.drafts import refuse_capture, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

#: Folder of the figures.
FIGURES = "figures"


def require_pictures(formats: Sequence[str] = ()) -> None:
    """Check that pages, and figures in these formats, can be made: by the extra ``pictures``.

    Raises:
        PicturesError: a package is missing; the note says how to install it.

    """
    needed = ["jinja2", *["matplotlib"] * ("pdf" in formats)]
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        named = " and ".join(missing)
        pictures = "figures in PDF" if missing == ["matplotlib"] else "pages and figures"
        failure = PicturesError(f"{pictures} need {named}, which {verb} not installed")
        failure.add_note("pip install 'tailtrim[pictures]'")
        raise failure


def formats(*, pdf: bool) -> tuple[str, ...]:
    """Return the formats of each figure of a report."""
    return ("svg", "pdf") if pdf else ("svg",)


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
        OutputError: it cannot be written, or would replace a capture.

    """
    refuse_capture(place)
    try:
        place.write_bytes(content)
    except OSError as error:
        raise _failed(place, error) from error


def _failed(place: object, error: OSError) -> OutputError:
    return OutputError(f"{place}: cannot be written: {error.strerror}")
