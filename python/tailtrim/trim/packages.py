"""The packages that a search needs beside those of all commands."""

from __future__ import annotations

from importlib.util import find_spec

from tailtrim.errors import MissingPackageError

_NEEDED = ("pydoe", "scipy")


def require() -> None:
    """Return if they are installed.

    Raises:
        MissingPackageError: one is not.

    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        error = MissingPackageError(f"searching needs the package {missing[0]}")
        error.add_note("pip install 'tailtrim[trim]'")
        raise error
