"""Numbers as text, rounded half up from exact integers.

Times follow the papers this project grew from: one decimal in µs where all of a row stays below a
millisecond ("7.7 µs", "13.6 µs"); where it does not, two digits suffice beside milliseconds
("69 µs", "107 µs", "1.7 ms"). Below a microsecond nanoseconds are printed as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Iterable

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000

# From here on a digit after the point says nothing beside milliseconds.
_TEN_MICROSECONDS = 10 * MICROSECOND
_WHOLE = 1_000
# From here on two digits are those of 100, which would be written 1e+02.
_NEARLY_ALL = 0.995

NONE = "\N{EN DASH}"


def fixed(value: int, divisor: int, places: int) -> str:
    """Return ``value / divisor`` with ``places`` decimals, half rounded away from zero.

    >>> fixed(13550, 1000, 1)
    '13.6'

    """
    digits = (2 * abs(value) * 10**places + divisor) // (2 * divisor)
    whole, rest = divmod(digits, 10**places)
    sign = "-" if value < 0 and digits else ""
    return f"{sign}{whole}.{rest:0{places}}" if places else f"{sign}{whole}"


@dataclass(frozen=True, slots=True)
class Times:
    """Format of the times of one row; ``coarse`` where some reach milliseconds."""

    coarse: bool = False

    @classmethod
    def of(cls, values: Iterable[int | None]) -> Times:
        """Choose by the largest of ``values`` (ns)."""
        return cls(any(value is not None and abs(value) >= MILLISECOND for value in values))

    def split(self, ns: int) -> tuple[str, str]:
        """Return number and unit.

        >>> Times().split(13550)
        ('13.6', 'µs')
        >>> Times(coarse=True).split(68937)
        ('69', 'µs')

        """
        size = abs(ns)
        if size < MICROSECOND:
            return str(ns), "ns"
        if not self.coarse:
            return fixed(ns, MICROSECOND, 1), "µs"
        places = 1 if size < _TEN_MICROSECONDS else 0
        text = fixed(ns, MICROSECOND, places)
        if abs(Decimal(text)) < _WHOLE:
            return text, "µs"
        text = fixed(ns, MILLISECOND, 1)
        if abs(Decimal(text)) < _WHOLE:
            return text, "ms"
        return fixed(ns, SECOND, 1), "s"

    def text(self, ns: int) -> str:
        """Return number and unit in one.

        >>> Times.of([1673450]).text(1673450)
        '1.7 ms'

        """
        return " ".join(self.split(ns))

    def span(self, low: int, high: int) -> str:
        """Return an interval.

        >>> Times().span(11700, 12700)
        '11.7 to 12.7 µs'

        """
        (first, first_unit), (last, last_unit) = self.split(low), self.split(high)
        if first_unit == last_unit:
            return f"{first} to {last} {last_unit}"
        return f"{first} {first_unit} to {last} {last_unit}"


def time(ns: int) -> str:
    """Return a time that stands alone, number and unit."""
    return Times.of((ns,)).text(ns)


def microseconds(ns: int | None, *, places: int = 1) -> str:
    """Return µs, with one decimal unless told otherwise, thousands apart as in :func:`count`.

    Of a time that is not known, return a dash.

    >>> microseconds(30609512)
    '30,609.5'

    """
    if ns is None:
        return NONE
    whole, _, rest = fixed(abs(ns), MICROSECOND, places).partition(".")
    sign = "\N{MINUS SIGN}" if ns < 0 and (whole + rest).strip("0") else ""
    return f"{sign}{int(whole):,}.{rest}"


def percent(share: str) -> str:
    """Return decimal text as percent, exactly.

    >>> percent("0.9999")
    '99.99'

    """
    digits = f"{Decimal(share).scaleb(2):f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def about(share: float) -> str:
    """Return a share as percent, with two digits, and three where it is nearly all.

    >>> about(0.00012345), about(0.5), about(0.9999)
    ('0.012', '50', '100')

    """
    return f"{100 * share:.{3 if share >= _NEARLY_ALL else 2}g}"


def count(number: int) -> str:
    """Return a number of things with its thousands apart.

    >>> count(289992)
    '289,992'

    """
    return f"{number:,}"


def rate(pps: float | None) -> str:
    """Return packets per second in kpkt/s, one decimal or, if small, three digits.

    >>> rate(14_880_952.4)
    '14,881.0'

    """
    if pps is None:
        return NONE
    return f"{pps / 1000:,.1f}" if pps >= _WHOLE else f"{pps / 1000:.3g}"


def loss(undelivered: int, known: int) -> str:
    """Return the share in percent: one decimal or, if smaller, one digit; a dash if not known.

    >>> loss(1, 100_000), loss(0, 100_000)
    ('0.001', '0')

    """
    if not known:
        return NONE
    if not undelivered:
        return "0"
    places = 1
    while 20 * undelivered * 100 * 10 ** (places - 1) < known:
        places += 1
    return fixed(undelivered * 100, known, places)


def printable(text: str) -> str:
    r"""Escape characters that a terminal, a reader or an encoder would act on.

    >>> printable("a\x1b[31m")
    'a\\x1b[31m'

    """
    return "".join(
        sign
        if sign.isprintable() or category(sign) == "Zs"
        else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )
