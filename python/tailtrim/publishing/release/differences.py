"""The first difference of two results, as readers look for it: file, quantile, both values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tailtrim.publishing.release.derivation import Derived
    from tailtrim.results import RunDirectory

_LONGEST = 80


def of_run(released: RunDirectory, derived: Derived) -> str | None:
    """Return the first difference of a released run from the same derived again."""
    return _of_summaries(released, derived) or _of_tables(released, derived)


def _of_summaries(released: RunDirectory, derived: Derived) -> str | None:
    mine, theirs = derived.run.summary.text, released.summary.text
    if derived.parts is None and mine == theirs:
        return None
    here, there = json.loads(mine), json.loads(theirs)
    parts = [*here, *(key for key in there if key not in here)]
    for part in parts if derived.parts is None else derived.parts:
        one, other = here.get(part), there.get(part)
        if derived.parts is not None and part == "latency_ns":
            one, other = _common(one, other), _common(other, one)
        found = of_json(other, one, part)
        if found is not None:
            return f"summary.json: {found}"
    return None if derived.parts is not None else "summary.json: the same values, written otherwise"


def _common(one: Any, other: Any) -> Any:
    """Leave out the quantiles that the other does not have: samples give the usual ones."""
    known = {quantile["p"] for quantile in other["quantiles"]}
    kept = [quantile for quantile in one["quantiles"] if quantile["p"] in known]
    return one | {"quantiles": kept}


def of_json(released: Any, derived: Any, where: str) -> str | None:
    """Return the first difference of two values of JSON, where in them, and both."""
    if isinstance(released, dict) and isinstance(derived, dict):
        for key in [*released, *(key for key in derived if key not in released)]:
            found = of_json(released.get(key), derived.get(key), f"{where}.{key}" if where else key)
            if found is not None:
                return found
        return None
    if isinstance(released, list) and isinstance(derived, list):
        for place in range(max(len(released), len(derived))):
            one = released[place] if place < len(released) else None
            other = derived[place] if place < len(derived) else None
            found = of_json(one, other, f"{where} {_named(one, other, place)}")
            if found is not None:
                return found
        return None
    if released == derived and type(released) is type(derived):
        return None
    return f"{where}: {_told(released)} in the release, {_told(derived)} derived again"


def _named(one: Any, other: Any, place: int) -> str:
    """Return what a part of a list is called: a quantile by its probability."""
    if (
        isinstance(one, dict)
        and isinstance(other, dict)
        and "p" in one
        and one["p"] == other.get("p")
    ):
        return f"p {one['p']}"
    return f"[{place}]"


def _told(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _of_tables(released: RunDirectory, derived: Derived) -> str | None:
    for name in derived.tables:
        mine = derived.run.table(name)
        theirs = released.table(name)
        columns = [column for column in mine.column_names if column not in derived.without]
        if name == "quantile" and derived.parts is not None:
            theirs = _rows_of(theirs, mine)
        found = _of_table(theirs, mine, columns)
        if found is not None:
            return f"{name}.parquet: {found}"
    return None


def _rows_of(table: pa.Table, other: pa.Table) -> pa.Table:
    import pyarrow.compute as pc  # noqa: PLC0415 - takes longer to import than most commands run

    return table.filter(pc.is_in(table["p"], value_set=other["p"].combine_chunks()))


def _of_table(released: pa.Table, derived: pa.Table, columns: Sequence[str]) -> str | None:
    missing = [name for name in columns if name not in released.column_names]
    if missing:
        return f"column {missing[0]} is missing"
    if released.num_rows != derived.num_rows:
        return f"{released.num_rows:,} rows in the release, {derived.num_rows:,} derived again"
    if released.select(columns).equals(derived.select(columns)):
        return None
    for name in columns:
        one, other = released[name], derived[name]
        if one.equals(other):
            continue
        if one.type != other.type:
            return f"column {name} is {one.type}, expected {other.type}"
        row = next(n for n, (a, b) in enumerate(zip(one, other, strict=True)) if not a.equals(b))
        at = f"p {released['p'][row]}, " if "p" in released.column_names else f"row {row}, "
        return f"{at}{name}: {one[row]} in the release, {other[row]} derived again"
    return None
