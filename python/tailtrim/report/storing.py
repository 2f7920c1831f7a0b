"""The files of a report, written to its folder."""

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
        out: the folder; it is made where it is missing.
        contents: of each file, by its path in the folder.
        outdated: tells by the name of a figure whether an earlier report may have left it: it is
            removed where it is not written again.

    Raises:
        OutputError: a file cannot be written or removed.

    """
    try:
        (out / FIGURES).mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            with replacing(out / name) as file:
                file.write(content)
        for figure in list((out / FIGURES).iterdir()):
            if outdated(figure.name) and f"{FIGURES}/{figure.name}" not in contents:
                figure.unlink()
    except OSError as error:
        place = error.filename or out
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    return [out / name for name in contents]
