"""``pos roles``."""

from ._asking import ask, each


def add(role, node):
    """Add nodes to a role."""
    return ask("roles", "add", role, *each(node))
