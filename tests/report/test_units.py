from __future__ import annotations

import pytest

from tailtrim import units
from tailtrim.units import Times


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (13_550, "13.6 µs"),  # half up, where a binary fraction would give 13.5
        (13_549, "13.5 µs"),
        (12_162, "12.2 µs"),
        (950, "950 ns"),
        (0, "0 ns"),
        (-1_250, "-1.3 µs"),
        (999_949, "999.9 µs"),
    ],
)
def test_a_row_below_a_millisecond_has_one_decimal(ns: int, text: str) -> None:
    assert Times.of([ns]).text(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (68_937, "69 µs"),
        (88_087, "88 µs"),
        (106_699, "107 µs"),
        (1_673_450, "1.7 ms"),
        (2_518_062, "2.5 ms"),
        (3_137, "3.1 µs"),
        (999_600, "1.0 ms"),
        (999_949_999, "999.9 ms"),
        (999_950_000, "1.0 s"),
    ],
)
def test_beside_milliseconds_two_digits_suffice(ns: int, text: str) -> None:
    assert Times(coarse=True).text(ns) == text


def test_an_interval_names_its_unit_once_unless_it_changes() -> None:
    assert Times().span(11_700, 12_700) == "11.7 to 12.7 µs"
    assert Times(coarse=True).span(99_899, 1_275_487) == "100 µs to 1.3 ms"


def test_microseconds_of_the_page_keep_thousands_apart() -> None:
    assert units.microseconds(30_609_512) == "30,609.5"
    assert units.microseconds(-10_437) == "\N{MINUS SIGN}10.4"
    assert units.microseconds(-10) == "0.0"
    assert units.microseconds(38, places=3) == "0.038"


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
        (1, 1_000, "0.1"),
        (1, 100_000, "0.001"),
        (7, 7, "100.0"),
    ],
)
def test_a_small_loss_is_not_rounded_away(lost: int, known: int, text: str) -> None:
    assert units.loss(lost, known) == text


def test_what_a_terminal_would_act_on_is_escaped() -> None:
    assert units.printable("a\x1b[31m\n\u202e\udcff µ€") == "a\\x1b[31m\\n\\u202e\\udcff µ€"
