"""Packages of other projects that only power needs: the extra ``tailtrim[power]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tailtrim.errors import MissingPackageError


def required(name: str) -> Any:
    """Return a module of the extra.

    Raises:
        MissingPackageError: it is not installed.

    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        missing = MissingPackageError(f"{name} is not installed, expected it for switching power")
        missing.add_note("pip install 'tailtrim[power]'")
        raise missing from error
