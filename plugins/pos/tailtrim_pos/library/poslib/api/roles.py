"""``pos roles``."""

from typing import Any

from ._asking import ask, each


def add(role: Any, node: Any) -> Any:
    """Add nodes to a role."""
    return ask("roles", "add", role, *each(node))
