"""Write the table and the figures."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError
from tailtrim.factors import effect_figures
from tailtrim.factors.effect_table import markdown
from tailtrim.factors.effects import QUANTILES
from tailtrim.report.units import percent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tailtrim.factors.effects import Effects

SCHEMA = "tailtrim.factors/1"
_CASES = ("loop", "case", "runs", "samples", *(f"p{percent(p)}_ns" for p in QUANTILES), "verdict")
_RULES = ("loop", "firewall", "rule", "median_ns")


def write(effects: Effects, out: Path) -> list[Path]:
    """See :func:`tailtrim.factors.write`."""
    told = {"schema": SCHEMA, **asdict(effects)}
    contents = {
        f"{effects.kind}.md": markdown(effects).encode(),
        f"{effects.kind}.json": (json.dumps(told, indent=2) + "\n").encode(),
    }
    for key, drawn in effect_figures.render(effects).items():
        contents |= {f"figures/{key}.{suffix}": content for suffix, content in drawn.items()}
        contents[f"figures/{key}.csv"] = _csv(_RULES if key == "rules" else _CASES, effects)
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (out / name).write_bytes(content)
    except OSError as error:
        place = error.filename or out
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    return [out / name for name in contents]


def _csv(head: tuple[str, ...], effects: Effects) -> bytes:
    """Return the values of a figure: a row for each case, or for each position of a rule."""
    rows = _rules(effects) if head is _RULES else _cases(effects)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue().encode()


def _cases(effects: Effects) -> Iterator[tuple[object, ...]]:
    for case in effects.cases:
        if case.quantiles_ns is not None:
            values = [case.quantiles_ns[p] for p in QUANTILES]
            verdict = case.median.verdict if case.median else ""
            yield case.loop, case.name, case.runs, case.samples, *values, verdict


def _rules(effects: Effects) -> Iterator[tuple[object, ...]]:
    for slope in effects.slopes:
        for one in slope.positions:
            yield slope.loop, slope.firewall, one.rule, one.median_ns
