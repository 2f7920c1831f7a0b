"""What can be wrong with files of round trips."""

from __future__ import annotations

from tailtrim.errors import TailtrimError


class RoundTripError(TailtrimError):
    """A file of round trips cannot be read."""
