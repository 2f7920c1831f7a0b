"""Result of a conversion: the files written, and notices for their reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.results.summary import Notice


@dataclass(frozen=True, slots=True)
class Conversion:
    """The files that were written, and notices for their reader."""

    files: tuple[Path, ...]
    notices: tuple[Notice, ...] = ()
