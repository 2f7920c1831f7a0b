"""Patterns of traffic: when packets are sent.

A pattern is written as one word, in plans, in records and for the agent: ``cbr``, ``burst:32``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic_core import CoreSchema, core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler


@dataclass(frozen=True, slots=True)
class Pattern:
    """When packets are sent, in the words that plans have for it.

    A subclass is a kind of pattern. Its docstring is what editors show.
    """

    text: str

    #: Regular expression for its words, and their form in error messages.
    form: ClassVar[str]
    told: ClassVar[str]
    #: Whether it has a rate of its own, so that a plan gives none.
    brings_rate: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return the words."""
        return self.text

    @property
    def burst(self) -> int | None:
        """Number of packets that are sent in one go; ``None`` where that is not fixed."""
        return None

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        """Have plans and records hold the words."""
        return core_schema.chain_schema(
            [
                core_schema.str_schema(strict=True),
                core_schema.no_info_plain_validator_function(parse),
            ],
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Have editors know the words of each kind."""
        return {"anyOf": [kind.json_schema() for kind in PATTERNS]}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return what is known of the words of this kind."""
        described = {"type": "string", "description": cls.__doc__}
        fixed = re.escape(cls.form) == cls.form
        return {**described, **({"const": cls.form} if fixed else {"pattern": f"^{cls.form}$"})}


class Cbr(Pattern):
    """Constant rate: all packets at the same distance."""

    form: ClassVar[str] = "cbr"
    told: ClassVar[str] = "cbr"

    @property
    def burst(self) -> int:
        """One packet at a time."""
        return 1


class Golden(Pattern):
    """Constant rate, each packet at another place within its gap: meets all phases of a clock."""

    form: ClassVar[str] = "golden"
    told: ClassVar[str] = "golden"


class Poisson(Pattern):
    """Random, independent, exponentially distributed distances."""

    form: ClassVar[str] = "poisson"
    told: ClassVar[str] = "poisson"


class Burst(Pattern):
    """burst:N, bursts of N packets back to back at the same distance."""

    form: ClassVar[str] = r"burst:[1-9]\d*"
    told: ClassVar[str] = "burst:N"

    @property
    def burst(self) -> int:
        """Number of packets in a burst."""
        return int(self.text.removeprefix("burst:"))


class Jitter(Pattern):
    """jitter:SHARE, constant rate, each packet moved by up to this share of the distance."""

    form: ClassVar[str] = r"jitter:0?\.([0-4]\d*|50*)"
    told: ClassVar[str] = "jitter:SHARE up to 0.5"


class Replay(Pattern):
    """replay:CAPTURE or replay:CAPTURE:SCALE, the distances of a capture, multiplied by SCALE."""

    form: ClassVar[str] = r"replay:.+"
    told: ClassVar[str] = "replay:CAPTURE"
    brings_rate: ClassVar[bool] = True


PATTERNS: tuple[type[Pattern], ...] = (Cbr, Golden, Poisson, Burst, Jitter, Replay)


def parse(text: str) -> Pattern:
    """Return the pattern that words stand for.

    >>> parse("burst:32").burst
    32

    Raises:
        ValueError: they stand for none.

    """
    for kind in PATTERNS:
        if re.fullmatch(kind.form, text):
            pattern = kind(text)
            # For a loop over burst sizes.
            return Cbr(Cbr.form) if isinstance(pattern, Burst) and pattern.burst == 1 else pattern
    *others, last = (kind.told for kind in PATTERNS)
    raise ValueError(f"expected {', '.join(others)} or {last}")
