"""How long the trials of a search may take."""

from __future__ import annotations


def budget_s(text: str) -> float:
    """Return the seconds of ``--budget``.

    Raises:
        ValueError: the text is not a time, or the time is 0.

    """
    from tailtrim.analysis.options import nanoseconds  # noqa: PLC0415 - the help does without

    example = "90s, 20min or 2h"
    time_ns = nanoseconds("budget", text, example=example)
    if time_ns == 0:
        raise ValueError(f"invalid budget {text!r}, expected more than 0, such as {example}")
    return time_ns / 1e9
