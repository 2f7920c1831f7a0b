"""``pos results``."""

from typing import Any

from ._asking import ask


def list(allocation: Any) -> Any:  # noqa: A001 - pos calls it so
    """Return the paths of all results of an allocation."""
    return ask("results", "list", allocation)
