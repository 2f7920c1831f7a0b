"""Options that all engines read alike."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What the device under test may rewrite.
MASKS = ("nat", "tos", "tunnel")

_LONGEST_S = 2**61 // 10**9


def known_masks(masks: Sequence[str]) -> list[str]:
    """Return the masks, each of which is one of :data:`MASKS`.

    Raises:
        ValueError: when one is not.

    """
    unknown = [mask for mask in masks if mask not in MASKS]
    if unknown:
        raise ValueError(f"mask {unknown[0]!r} is unknown, expected one of {', '.join(MASKS)}")
    return list(masks)


def nanoseconds(name: str, seconds: str | float) -> int:
    """Return seconds as an exact number of nanoseconds.

    Raises:
        ValueError: when that is no time.

    """
    try:
        exact = Decimal(str(seconds))
        valid = 0 <= exact < _LONGEST_S
    except InvalidOperation:
        valid = False
    if not valid:
        message = f"{name} {str(seconds)!r} is no time, expected seconds such as 5 or 0.25"
        raise ValueError(message)
    return int(exact * 10**9)
