"""Claims are read with all their mistakes told at once, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailtrim.errors import PlanError
from tailtrim.publishing import claims
from tailtrim.publishing.claims.statement import statement

ROOT = Path(__file__).parents[2]
STATEMENTS = (
    *("'p99.99 < 50us'", "'p99.9 = 104.1 us ± 0.1 us'", "'p99.9 prints 104.1 us'"),
    *("'samples = 289992'", "'lost = 0'", "'p99 of A < "),
)


def mistakes(folder: Path, text: str) -> list[str]:
    path = folder / "claims.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError) as raised:
        claims.read(path)
    return [str(told).removeprefix(f"{path}: ") for told in raised.value.args]


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    told = mistakes(
        tmp_path,
        """\
- claim: one
  were: {rate: 1}
  expect: p99 < 1ms
- claim: two
  expect: p99 below 1ms
- expect: p99 < 1ms
- claim: three
  expect: p99 < 1ms
- claim: confident
  expect: p99 < 1ms
  confidence: 95
- claim: three
  expect: p99 < 1ms
- claim: fourth
  expect: p101 < 1ms
- claim: four
  expect: p99 of A < p99.9 of B
- claim: five
  expect: p99 of A < p99 of B
  where: {rate: 1}
- claim: six
  a: {rate: 1}
  expect: p99 < 1ms
- claim: seven
  expect: p99 = 104.1 us
- claim: eight
  expect: loss prints 3 us
- just text
""",
    )
    for one, facts in zip(
        told,
        (
            ("line 2: were: unknown", "claim, expect, where,", "a, b, confidence", "mean where?"),
            ("line 5: expect: ", *STATEMENTS, "not 'p99 below 1ms'"),
            ("line 6: claim: ", "missing"),
            ("line 11: confidence: ", "less than 1", "95.0"),
            ("line 12: claim: 'three' ", "twice"),
            ("line 15: expect: ", "unknown quantity 'p101'", *STATEMENTS, "not 'p101 < 1ms'"),
            ("line 17: expect: ", "same quantile", "not 'p99 of A < ", "p99.9 of B'"),
            ("line 19: expect: ", "compares A with B", "a and b"),
            ("line 22: a: ", "only for comparisons", "'p99 of A < "),
            (
                *("line 25: expect: ", "tolerance", "'p99 = 104.1 us ± 0.1 us'"),
                *("'p99 prints 104.1 us'", "rounding", "not 'p99 = 104.1 us'"),
            ),
            ("line 27: expect: ", "share such as 0.1 %", "not 'loss prints 3 us'"),
            ("line 28: ", "claim, where, expect"),
        ),
        strict=True,
    ):
        for fact in facts:
            assert fact in one


@pytest.mark.parametrize("text", ["", "claim: one\nexpect: p99 < 1ms\n", "3\n"])
def test_a_file_without_a_list_is_refused(tmp_path: Path, text: str) -> None:
    (told,) = mistakes(tmp_path, text)
    for fact in ("expected a list", "claim, where, expect"):
        assert fact in told


def test_a_key_that_is_given_twice_is_told_with_its_line(tmp_path: Path) -> None:
    text = "- claim: one\n  expect: p99 < 1ms\n- claim: two\n  expect: p9 < 1s\n  expect: x\n"
    assert mistakes(tmp_path, text) == ["line 5: expect: given twice"]


def test_claims_of_the_example_are_right() -> None:
    assert len(claims.read(ROOT / "examples" / "claims" / "demo.yml")) == 2


def test_the_published_schema_is_that_of_the_code() -> None:
    # python -c 'from tailtrim.publishing.claims import json_schema; print(json_schema(), end="")'
    # > schema/claims.json
    published = (ROOT / "schema" / "claims.json").read_text("utf-8")
    assert published == claims.json_schema()


@pytest.mark.parametrize("expect", ["[]", "[lost = 0, p99 of A < p99 of B]"])
def test_a_list_has_statements_of_one_kind(tmp_path: Path, expect: str) -> None:
    (told,) = mistakes(tmp_path, f"- claim: one\n  expect: {expect}\n")
    for fact in ("line 2: expect: ", "at least one statement", "none beside comparisons"):
        assert fact in told


def test_a_wrong_statement_of_a_list_is_told(tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, "- claim: one\n  expect: [lost = 0, p99 below 1ms]\n")
    for fact in ("line 2: expect: ", *STATEMENTS, "not ['lost = 0', ", "'p99 below 1ms']"):
        assert fact in told


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "p99.9",
                    "median",
                    "mean",
                    "max",
                    "loss",
                    "samples",
                    "lost",
                    "adjusted ",
                    "prints",
                ),
                *(
                    "<",
                    ">",
                    "<=",
                    "=",
                    "±",
                    "+-",
                    " of A",
                    " of B",
                    "1",
                    "104.1",
                    "9" * 30,
                    "1e400",
                ),
                *(
                    " us",
                    "ms",
                    "%",
                    " ",
                    ".",
                    ",",
                    "-",
                    "\N{INFINITY}",
                    "\N{ARABIC-INDIC DIGIT THREE}",
                ),
            ]
        ),
        max_size=8,
    )
)
def test_whatever_the_text_a_statement_is_read_or_refused(words: list[str]) -> None:
    try:
        assert statement("".join(words)) is not None
    except ValueError as error:
        assert "expected" in str(error)  # noqa: PT017 - either of both is right
