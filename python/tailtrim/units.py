"""Numbers as text, rounded half up from exact integers.

Times of a table have one unit, and as many digits as tell each value from its bounds: at least
three, and no decimal finer than the stamps. They are significant digits, so that of two times the
longer one never looks shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from itertools import chain, pairwise
from math import isfinite, isinf
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000

_UNITS = {"s": SECOND, "ms": MILLISECOND, "µs": MICROSECOND, "ns": 1}
_FEWEST = 3
# An integer of 64 bit has no more.
_ALL = 19
_WHOLE = 1_000
# From here on two digits are those of 100, which would be written 1e+02.
_NEARLY_ALL = 0.995

NONE = "\N{EN DASH}"
INFINITE = "\N{INFINITY}"
#: Behind what the samples do not support, and in place of a bound that they do not give.
UNSUPPORTED = "*"
#: The explanation below a table that has the mark.
UNSUPPORTED_LEGEND = f"{UNSUPPORTED}: not supported, too few independent episodes."


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
    """Unit and number of digits of the times of a table, whose stamps have this resolution."""

    unit: str = "µs"
    digits: int = _FEWEST
    resolution_ps: int = 1_000

    @classmethod
    def of(cls, groups: Iterable[Iterable[float | None]], resolution_ps: int = 1_000) -> Times:
        """Choose for times in ns; those of a group, such as a value and its bounds, are told apart.

        The unit is the largest one in which none is below 1, and ns only where all are.

        >>> Times.of([[18_262, 18_254, 18_270], [1_673_450]]).text(18_262)
        '18.26 µs'

        """
        known = [[ns for ns in of if ns is not None and isfinite(ns)] for of in groups]
        sizes = [abs(ns) for group in known for ns in group if round(ns)]
        least = max(min(sizes, default=MICROSECOND), resolution_ps / 1_000)
        if max(sizes, default=0) >= MICROSECOND:
            least = max(least, MICROSECOND)
        unit = next(name for name, size in _UNITS.items() if size <= least)
        finest = cls(unit, _ALL, resolution_ps)
        style = replace(finest, digits=_FEWEST)
        for low, high in chain.from_iterable(map(pairwise, map(sorted, known))):
            alike = finest.number(low) == finest.number(high)
            while not alike and style.number(low) == style.number(high):
                style = replace(style, digits=style.digits + 1)
        return style

    @staticmethod
    def alike(styles: Sequence[Times]) -> list[Times]:
        """Return those of several runs in one unit, with as many digits as one of them needs."""
        unit = min((style.unit for style in styles), key=_UNITS.__getitem__, default="µs")
        digits = max((style.digits for style in styles), default=_FEWEST)
        return [replace(style, unit=unit, digits=digits) for style in styles]

    def number(self, ns: float | None) -> str:
        """Return the time without its unit, thousands apart; of one that is not known, a dash.

        That of a lost packet is infinite.

        >>> Times().number(30_609_512), Times(resolution_ps=12_500).number(3_137)
        ('30,610', '3.14')

        """
        if ns is None:
            return NONE
        if isinf(ns):
            return INFINITE
        time = Decimal(round(ns)) / _UNITS[self.unit]
        rounded = self._rounded(time, time)
        # 9.996 has become 10.00, which is a digit too many.
        rounded = self._rounded(time, rounded)
        return f"{rounded:,f}".replace("-", "\N{MINUS SIGN}") if rounded else "0"

    def _rounded(self, time: Decimal, size: Decimal) -> Decimal:
        places = max(0, min(self.digits - 1 - size.adjusted(), self._places))
        return time.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)

    @property
    def _places(self) -> int:
        """Fewest decimals of which the last one is no coarser than the resolution."""
        unit_ps = 1_000 * _UNITS[self.unit]
        return next(places for places in range(_ALL) if unit_ps <= self.resolution_ps * 10**places)

    def bound(self, ns: float | None) -> str:
        """Return the number of a bound, or the mark where there is none."""
        return UNSUPPORTED if ns is None else self.number(ns)

    def change(self, ns: float | None) -> str:
        """Return the number of a difference, with its sign."""
        return f"+{self.number(ns)}" if ns is not None and ns > 0 else self.bound(ns)

    def text(self, ns: float) -> str:
        """Return number and unit.

        >>> Times().text(13_550)
        '13.6 µs'

        """
        return f"{self.number(ns)} {self.unit}"

    def span(self, low: float, high: float) -> str:
        """Return an interval.

        >>> Times().span(11_700, 12_700)
        '11.7 to 12.7 µs'

        """
        return f"{self.number(low)} to {self.text(high)}"

    def bounded(self, value: float, low: float | None, high: float | None) -> str:
        """Return a value with its interval, unless that is within the resolution.

        >>> Times().bounded(12_100, 11_700, 12_700)
        '12.1 µs (11.7 to 12.7)'

        """
        ends = [self.bound(low), self.bound(high)]
        return self.text(value) + ("" if ends[0] == ends[1] else f" ({' to '.join(ends)})")


def listed(named: dict[str, int], resolution_ps: int = 1_000) -> str:
    """Return named times in one unit.

    >>> listed({"p50": 3_137, "p99": 18_262})
    'p50 3.14, p99 18.3 µs'

    """
    style = Times.of([[ns] for ns in named.values()], resolution_ps)
    told = ", ".join(f"{name} {style.number(ns)}" for name, ns in named.items())
    return f"{told} {style.unit}" if named else ""


def time(ns: float) -> str:
    """Return a time that stands alone, number and unit.

    >>> time(1_673_450), time(950)
    ('1.67 ms', '950 ns')

    """
    return Times.of([[round(ns)]]).text(ns)


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


def moment(ns: int) -> str:
    """Return a time of the clock.

    >>> moment(1_000_000_000_000_005_000)
    '2001-09-09 01:46:40.000005 UTC'

    """
    second = datetime.fromtimestamp(ns // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{second}.{ns % SECOND // MICROSECOND:06} UTC"


def count(number: int) -> str:
    """Return a number of things with its thousands apart.

    >>> count(289992)
    '289,992'

    """
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """Return a number of things with their name.

    >>> counted(1, "sample"), counted(289992, "sample")
    ('1 sample', '289,992 samples')

    """
    return f"{count(number)} {noun}{'s' * (number != 1)}"


def rate(pps: float | None) -> str:
    """Return packets per second in kpkt/s, one decimal or, if small, three digits.

    >>> rate(14_880_952.4)
    '14,881.0'

    """
    if pps is None:
        return NONE
    return f"{pps / 1000:,.1f}" if pps >= _WHOLE else f"{pps / 1000:.3g}"


def loss(undelivered: int, known: int) -> str:
    """Return the share in percent: one decimal or, below 1, two digits; a dash if not known.

    >>> loss(32, 60_000), loss(32, 600), loss(0, 100_000)
    ('0.053', '5.3', '0')

    """
    if not known:
        return NONE
    if not undelivered:
        return "0"
    places = 1
    while 100 * undelivered * 10**places < min(10, 10**places) * known:
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
