"""Write the page, the numbers and the figures of a search."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError
from tailtrim.report.figures import drawing, values
from tailtrim.trim.report import page
from tailtrim.trim.report.figures import figures

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.trim.report.findings import Findings

_FOLDER = "figures"
#: What an earlier report may have left.
_FIGURES = ("path", "tradeoff")


def write(found: Findings, out: Path) -> list[Path]:
    """See :func:`tailtrim.trim.report.write`."""
    drawn = figures(found)
    told = json.dumps(found.as_json(), indent=1, allow_nan=False)
    contents = {
        "report.html": page.render(found, drawn),
        "findings.json": f"{told}\n".encode(),
    }
    for figure in drawn:
        for suffix, content in drawing.render(figure, ()).items():
            contents[f"{_FOLDER}/{figure.key}.{suffix}"] = content
        contents[f"{_FOLDER}/{figure.key}.csv"] = values.csv(figure, ())
    try:
        (out / _FOLDER).mkdir(parents=True, exist_ok=True)
        for key in _FIGURES:
            for suffix in ("svg", "pdf", "csv"):
                (out / _FOLDER / f"{key}.{suffix}").unlink(missing_ok=True)
        for name, content in contents.items():
            (out / name).write_bytes(content)
    except OSError as error:
        place = error.filename or out
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    return [out / name for name in contents]
