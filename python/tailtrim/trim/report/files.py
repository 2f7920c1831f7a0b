"""Write the page, the numbers and the figures of a search."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tailtrim.report.figures import drawing, values
from tailtrim.report.write_files import FIGURES, store
from tailtrim.trim.report import page
from tailtrim.trim.report.figures import figures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.trim.report.findings import Findings

#: What an earlier report may have left.
_OURS = re.compile(r"(path|tradeoff)\.(svg|pdf|csv)")


def write(found: Findings, out: Path, formats: Sequence[str]) -> list[Path]:
    """See :func:`tailtrim.trim.report.write`."""
    drawn = figures(found)
    told = json.dumps(found.as_json(), indent=1, allow_nan=False)
    contents = {
        "report.html": page.render(found, drawn, formats),
        "findings.json": f"{told}\n".encode(),
    }
    for figure in drawn:
        for suffix, content in drawing.render(figure, (), formats=formats).items():
            contents[f"{FIGURES}/{figure.key}.{suffix}"] = content
        contents[f"{FIGURES}/{figure.key}.csv"] = values.csv(figure, ())
    return store(out, contents, outdated=_OURS.fullmatch)
