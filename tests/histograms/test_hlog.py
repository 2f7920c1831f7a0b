"""HdrHistogram's interval logs, encoded here from known values by the format's description."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailtrim.analysis.histograms import BucketHistogram, read_histograms
from tailtrim.errors import RoundTripError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

V2 = 0x1C849313
COMPRESSED = 0x1C849314
HIGHEST = 1 << 40
HEADER = "#[Histogram log format version 1.3]\n#[Latency in nanoseconds]\n"
LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def encoded(
    values: Sequence[int], digits: int = 3, cookies: tuple[int, int] = (V2, COMPRESSED)
) -> str:
    bits = math.ceil(math.log2(2 * 10**digits))
    half = 1 << (bits - 1)

    def index(value: int) -> int:
        shift = max(0, value.bit_length() - bits)
        return shift * half + (value >> shift)

    counts = Counter(map(index, values))
    payload, at = b"", 0
    for place, count in sorted(counts.items()):
        payload += (varint(at - place) if place > at else b"") + varint(count)
        at = place + 1
    head = struct.pack(">Iiiiqqd", cookies[0], len(payload), 0, digits, 1, HIGHEST, 1.0)
    packed = zlib.compress(head + payload)
    return base64.b64encode(struct.pack(">Ii", cookies[1], len(packed)) + packed).decode()


def line(values: Sequence[int], tag: str = "", **how: object) -> str:
    prefix = f"Tag={tag}," if tag else ""
    return f"{prefix}0.127,1.007,2.769,{encoded(values, **how)}\n"  # type: ignore[arg-type]


def write(folder: Path, text: str) -> Path:
    path = folder / "some.hlog"
    path.write_text(text)
    return path


def exact(values: Sequence[int], share: Fraction) -> int:
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


@settings(deadline=None)
@given(
    intervals=st.lists(
        st.lists(st.integers(0, HIGHEST - 1), min_size=1, max_size=30), min_size=1, max_size=4
    ),
    digits=st.integers(1, 5),
)
def test_an_interval_has_the_exact_quantile(
    tmp_path_factory: pytest.TempPathFactory, intervals: list[list[int]], digits: int
) -> None:
    lines = "".join(line(values, digits=digits) for values in intervals)
    (found,) = read_histograms([write(tmp_path_factory.mktemp("log"), HEADER + LEGEND + lines)])
    together = [value for values in intervals for value in values]
    assert (found.count, found.counters) == (len(together), {"intervals": len(intervals)})
    for share in (Fraction(1, 2), Fraction(99, 100), Fraction(999, 1000), Fraction(1)):
        low, high = found.quantile(share) or (0, 0)
        assert low <= exact(together, share) <= high
        assert high - low <= low / 10**digits


def test_tags_are_apart_and_intervals_of_other_precision_are_together(tmp_path: Path) -> None:
    text = HEADER + line([1_000_000], "A") + line([5], digits=1) + line([2_000_000], "A", digits=2)
    untagged, tagged = sorted(read_histograms([write(tmp_path, text)]), key=lambda one: one.name)
    assert (untagged.name, untagged.quantile(Fraction(1))) == ("some.hlog", (5, 5))
    assert (tagged.name, tagged.count, tagged.counters) == ("some.hlog, tag A", 2, {"intervals": 2})
    # The second begins at a multiple of 2¹³ and has two digits.
    assert tagged.quantile(Fraction(1)) == (1_998_848, 2_007_039)


@pytest.mark.parametrize(
    ("comment", "unit", "scale"),
    [
        ("#[Logged with jHiccup version 2.0.7]\n", None, 1),
        ("#[Latency in microseconds]\n", None, 1_000),
        ("#[Values are milliseconds]\n", None, 1_000_000),
        ("", "us", 1_000),
        ("#[Logged with jHiccup version 2.0.7]\n", "s", 10**9),
    ],
)
def test_the_unit_is_told_by_the_log_or_the_user(
    tmp_path: Path, comment: str, unit: str | None, scale: int
) -> None:
    (found,) = read_histograms([write(tmp_path, comment + line([7]))], unit=unit)
    # 7 ms is what is left of 7.0 to 7.9… ms.
    assert found.quantile(Fraction(1)) == (7 * scale, 8 * scale - 1)


def told(folder: Path, text: str) -> str:
    with pytest.raises(RoundTripError) as failure:
        read_histograms([write(folder, text)])
    return " ".join([str(failure.value), *getattr(failure.value, "__notes__", ())])


def test_a_log_that_tells_no_unit_is_not_guessed(tmp_path: Path) -> None:
    assert "does not tell the unit" in told(tmp_path, line([7]))
    with pytest.raises(ValueError, match="expected one of ns, us, ms, s"):
        read_histograms([write(tmp_path, line([7]))], unit="h")


def test_damage_is_told_with_its_line(tmp_path: Path) -> None:
    good = line([7])
    assert "ends before its first interval" in told(tmp_path, HEADER + LEGEND)
    assert "line 4: " in told(tmp_path, HEADER + good + "nonsense\n")
    assert "is damaged" in told(tmp_path, HEADER + good[:-9] + "\n")
    assert "version 1 of the encoding" in told(
        tmp_path, HEADER + line([7], cookies=(V2, 0x1C849302))
    )
    assert "floating-point" in told(tmp_path, HEADER + line([7], cookies=(V2, 0x0C72124F)))
    assert "is damaged" in told(tmp_path, HEADER + line([7], cookies=(1, COMPRESSED)))
    assert "is damaged" in told(tmp_path, HEADER + line([7], cookies=(V2, 1)))


def test_a_histogram_that_would_fill_memory_is_refused(tmp_path: Path) -> None:
    packed = zlib.compress(bytes(1 << 27))
    bomb = base64.b64encode(struct.pack(">Ii", COMPRESSED, len(packed)) + packed).decode()
    assert "larger than one can be" in told(tmp_path, f"{HEADER}0.1,1.0,2.0,{bomb}\n")


def test_a_log_without_values_has_no_quantile(tmp_path: Path) -> None:
    (found,) = read_histograms([write(tmp_path, HEADER + line([]))])
    assert isinstance(found, BucketHistogram)
    assert (found.count, found.quantile(Fraction(1, 2))) == (0, None)
