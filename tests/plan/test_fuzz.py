"""Whatever the text, ``load`` returns a plan or raises a ``PlanError``, and soon.

``TAILTRIM_FUZZ=N`` looks at N texts in place of a few hundred.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "examples", ROOT / "python" / "tailtrim" / "selftest" / "plans")
EXAMPLES = [path.read_text() for folder in FOLDERS for path in sorted(folder.glob("*.yml"))]
#: Tokens with a meaning in YAML and plans.
TOKENS = [
    *"[]{},:-?&*!|>%@`'\"#$~=\n \t",
    *("- ", "? ", ": ", "&a ", "*a", "<<: *a\n", "<<: ", "!!int ", "!!str ", "!!set ", "!!omap "),
    *("!!binary ", "!!timestamp ", "!!python/tuple ", "---\n", "...", "...\n", "%YAML 1.1\n"),
    *("$rate", "${", "$$", "${rate}", "$", "loop: ", "factors: ", "together: ", "repeat: "),
    *("1_000", "0x10", "1e999", ".inf", ".nan", "1:2:3", "null", "yes", "2001-01-01", "-1", "0"),
    *(
        "9" * 30,
        "[1, 2, ..., 9]",
        "[1, 2, ..., 99999999999]",
        "[..., ..., ..., ...]",
        "burst:",
        "replay:",
        "imix",
    ),
    *("\x00", "\x1b", "\x7f", "\x85", "\u2028", "\ufeff", "\ud7ff", "\U0001f600"),
]
#: A part that is taken out, and the text that is put there.
EDIT = st.tuples(
    st.integers(0, 3_000),
    st.integers(0, 40),
    st.one_of(st.sampled_from(TOKENS), st.text(max_size=8), st.sampled_from(EXAMPLES)),
)
#: Values where a plan has others.
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.dates(),
        st.binary(max_size=3),
        st.sampled_from(["$rate", "$preset", "...", "forward", "reflector", "burst:5", "64,1518"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)
FEW = settings(
    max_examples=int(os.environ.get("TAILTRIM_FUZZ", "300")),
    # Generous: the machine that tests may be busy. A bomb takes minutes.
    deadline=timedelta(seconds=20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def look_at(folder: Path, text: str) -> None:
    path = folder / "plan.yml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        plan, runs = plans.load(path)
    except PlanError as error:
        told = str(error)
        assert told.startswith(f"{path}: ")
        assert len(told) < 2_000
    else:
        assert isinstance(plan, plans.Plan)
        assert runs


def nodes(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where a value of a plan is, for each."""
    items: list[Any] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [at, *(place for key, item in items for place in nodes(item, (*at, key)))]


@FEW
@given(st.sampled_from(EXAMPLES), st.lists(EDIT, min_size=1, max_size=6))
def test_edited_text(tmp_path: Path, text: str, edits: list[tuple[int, int, str]]) -> None:
    for place, length, other in edits:
        start = place % (len(text) + 1)
        text = text[:start] + other + text[start + length :]
    look_at(tmp_path, text)


@FEW
@given(st.data())
def test_other_values(tmp_path: Path, data: st.DataObject) -> None:
    plan = yaml.safe_load(data.draw(st.sampled_from(EXAMPLES)))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(nodes(plan)))
        value = data.draw(VALUES)
        if not place:
            plan = value
            continue
        inner = plan
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
    look_at(tmp_path, yaml.safe_dump(plan, allow_unicode=True))


@FEW
@given(st.lists(st.one_of(st.sampled_from(TOKENS), st.text(max_size=4)), max_size=40))
def test_any_tokens(tmp_path: Path, tokens: list[str]) -> None:
    look_at(tmp_path, "".join(tokens))
