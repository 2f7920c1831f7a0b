"""Write the table and the figures."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError
from tailtrim.factors import effect_figures
from tailtrim.factors.effect_table import markdown

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.factors.effects import Effects

SCHEMA = "tailtrim.factors/1"


def write(effects: Effects, out: Path) -> list[Path]:
    """See :func:`tailtrim.factors.write`."""
    told = {"schema": SCHEMA, **asdict(effects)}
    contents = {
        "factors.md": markdown(effects).encode(),
        "factors.json": (json.dumps(told, indent=2) + "\n").encode(),
    }
    for key, drawn in effect_figures.render(effects).items():
        contents |= {f"figures/{key}.{suffix}": content for suffix, content in drawn.items()}
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (out / name).write_bytes(content)
    except OSError as error:
        place = error.filename or out
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    return [out / name for name in contents]
