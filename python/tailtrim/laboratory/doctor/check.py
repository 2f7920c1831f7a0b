"""A thing that a command needs, and whether it is here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.errors import TailtrimError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Check:
    """A thing that a command needs.

    Args:
        command: which command.
        what: the thing.
        missing: the package or the right that is missing; ``None`` where it works.
        demo: whether the demo needs it.

    """

    command: str
    what: str
    missing: str | None
    demo: bool = False


def attempt(action: Callable[[], object]) -> str | None:
    """Try it. Return why it does not work, with what to do; ``None`` if it works."""
    try:
        action()
    except TailtrimError as error:
        return "; ".join([str(error), *getattr(error, "__notes__", ())])
    except OSError as error:
        return error.strerror or str(error)
    return None
