"""``pos results``."""

from ._asking import ask


def list(allocation):  # noqa: A001 - pos calls it so
    """Return the paths of all results of an allocation."""
    return ask("results", "list", allocation)
