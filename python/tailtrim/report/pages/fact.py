"""A line of what is known of runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """A line: what it is, what is shown as code, and the rest."""

    label: str
    code: str = ""
    text: str = ""
    more: str = ""
