"""What a conversion leaves behind, and how its files come into being."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.rundir.writing import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.rundir.summary import Notice


__all__ = ["Conversion", "replacing"]


@dataclass(frozen=True, slots=True)
class Conversion:
    """The files that were written, and what their reader must know."""

    files: tuple[Path, ...]
    notices: tuple[Notice, ...] = ()
