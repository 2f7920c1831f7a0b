from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailtrim import units
from tailtrim.units import Times

#: Resolutions of stamps in ps: those of clocks, and any other.
RESOLUTIONS = st.one_of(
    st.sampled_from([1_000, 3_200, 8_000, 12_500, 953_674, 1_000_000, 10**9]),
    st.integers(1_000, 10**10),
)
TIMES = st.one_of(st.integers(-(10**6), 10**6), st.integers(-(10**18), 10**18))
TABLES = st.lists(st.lists(TIMES, min_size=1, max_size=3), min_size=1, max_size=6)
NS = {"ns": 1, "µs": 1_000, "ms": 10**6, "s": 10**9}


def step_ns(text: str, unit: str) -> Fraction:
    """Return one in the last digit."""
    return NS[unit] / Fraction(10 ** len(text.partition(".")[2]))


def value_ns(text: str, unit: str) -> Fraction:
    return NS[unit] * Fraction(text.replace(",", "").replace("\N{MINUS SIGN}", "-"))


@given(TABLES, RESOLUTIONS)
def test_what_differs_by_the_resolution_is_told_apart(table: list[list[int]], ps: int) -> None:
    style = Times.of(table, ps)
    for group in table:
        for one, other in combinations(group, 2):
            if abs(one - other) * 1_000 >= ps:
                assert style.number(one) != style.number(other)


@given(TABLES, RESOLUTIONS)
def test_no_number_has_a_digit_finer_than_the_resolution(table: list[list[int]], ps: int) -> None:
    style = Times.of(table, ps)
    for ns in chain(*table):
        text = style.number(ns)
        assert "." not in text or step_ns(text, style.unit) * 10_000 > ps
        assert abs(value_ns(text, style.unit) - ns) <= step_ns(text, style.unit) / 2


@given(TABLES, RESOLUTIONS)
def test_a_longer_time_never_looks_shorter(table: list[list[int]], ps: int) -> None:
    style = Times.of(table, ps)
    told = [value_ns(style.number(ns), style.unit) for ns in sorted(chain(*table))]
    assert told == sorted(told)


@given(TABLES, TABLES, RESOLUTIONS, RESOLUTIONS)
def test_runs_of_a_table_have_one_unit_and_their_own_resolutions(
    first: list[list[int]], second: list[list[int]], one_ps: int, other_ps: int
) -> None:
    alone = [Times.of(first, one_ps), Times.of(second, other_ps)]
    alike = Times.alike(alone)
    assert len({style.unit for style in alike}) == 1
    assert [style.resolution_ps for style in alike] == [one_ps, other_ps]
    for before, style, table in zip(alone, alike, (first, second), strict=True):
        for one, other in combinations(chain(*table), 2):
            if before.number(one) != before.number(other):
                assert style.number(one) != style.number(other)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (13_550, "13.6 µs"),  # half up, where a binary fraction would give 13.5
        (13_549, "13.5 µs"),
        (9_996, "10.0 µs"),
        (950, "950 ns"),
        (0, "0 µs"),
        (-1_255, "\N{MINUS SIGN}1.26 µs"),
        (999_949, "1,000 µs"),
        (1_673_450, "1.67 ms"),
        (30_609_512_000, "30.6 s"),
    ],
)
def test_a_time_that_stands_alone_has_three_digits(ns: int, text: str) -> None:
    assert units.time(ns) == text


def test_stamps_of_12_5_ns_tell_a_mean_from_its_bounds() -> None:
    style = Times.of([(3_131, 3_118, 3_143)], 12_500)
    assert style.bounded(3_131, 3_118, 3_143) == "3.13 µs (3.12 to 3.14)"
    assert style.bounded(3_131, 3_131, 3_132) == "3.13 µs"
    assert style.bounded(3_131, 3_118, None) == "3.13 µs (3.12 to *)"


def test_percentiles_that_are_near_each_other_are_told_apart_where_their_bounds_are() -> None:
    groups = [(18_212, 18_200, 18_225), (18_262, 18_250, 18_275), (1_000_012, 1_000_000, 1_000_025)]
    style = Times.of(groups, 12_500)
    assert [style.number(value) for value, _, _ in groups] == ["18.21", "18.26", "1,000.01"]


def test_what_is_not_known_and_what_is_infinite_have_a_sign() -> None:
    style = Times.of([(None, math.inf, 5_000)])
    told = [style.number(None), style.bound(None), style.number(math.inf), style.change(1_500)]
    assert told == [units.NONE, units.UNSUPPORTED, "∞", "+1.50"]


@pytest.mark.parametrize(
    ("share", "text"),
    [("0.5", "50"), ("0.9999", "99.99"), ("0.07", "7"), ("0.99999999", "99.999999"), ("1", "100")],
)
def test_percent_is_exact(share: str, text: str) -> None:
    assert units.percent(share) == text


@pytest.mark.parametrize(
    ("lost", "known", "text"),
    [
        (0, 300_000, "0"),
        (0, 0, units.NONE),
        (33, 1_000, "3.3"),
        (1, 1_000, "0.10"),
        (1, 100_000, "0.0010"),
        (7, 7, "100.0"),
    ],
)
def test_a_small_loss_is_not_rounded_away(lost: int, known: int, text: str) -> None:
    assert units.loss(lost, known) == text


def test_what_a_terminal_would_act_on_is_escaped() -> None:
    assert units.printable("a\x1b[31m\n\u202e\udcff µ€") == "a\\x1b[31m\\n\\u202e\\udcff µ€"
