"""The versions that a release depends on, and which of its files are the same bytes with them."""

from __future__ import annotations

import platform
import zlib
from importlib.metadata import PackageNotFoundError, version

from tailtrim._native import VERSION

#: Drawings contain what zlib has compressed.
_OF_DRAWINGS = ("tailtrim", "jinja2", "matplotlib", "numpy", "zlib")


def versions() -> dict[str, str]:
    """Return the versions here."""
    found = {"tailtrim": VERSION, "python": platform.python_version()}
    for name in ("jinja2", "matplotlib", "numpy", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"zlib": zlib.ZLIB_RUNTIME_VERSION}


def drawn_otherwise(released: dict[str, str]) -> list[str]:
    """Return which versions differ from those of a release by which pages are drawn."""
    here = versions()
    return [
        f"{name} {here.get(name, 'missing')} here, {released.get(name, 'unknown')} then"
        for name in _OF_DRAWINGS
        if here.get(name) != released.get(name)
    ]
