"""Packages for pages and figures, which are an extra: `tailtrim[pictures]`."""

from __future__ import annotations

from importlib.util import find_spec

from tailtrim.errors import PicturesError

_NEEDED = ("jinja2", "matplotlib")


def require() -> None:
    """Check that pages and figures can be made.

    Raises:
        PicturesError: a package is missing; the note says how to install it.

    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        named = " and ".join(missing)
        failure = PicturesError(f"pages and figures need {named}, which {verb} not installed")
        failure.add_note("pip install 'tailtrim[pictures]'")
        raise failure


def formats(*, pdf: bool) -> tuple[str, ...]:
    """Return the formats of each figure of a report."""
    return ("svg", "pdf") if pdf else ("svg",)
