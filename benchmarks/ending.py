"""The end of a program: its exit code, and errors in one line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, NoReturn

from tailtrim.errors import TailtrimError

if TYPE_CHECKING:
    from collections.abc import Callable


def end_with(main: Callable[[], int], missing: str | None = None) -> NoReturn:
    """Run a program and end with its exit code; with 1 and an error if something is missing."""
    try:
        if missing is None:
            sys.exit(main())
        print(f"error: {missing}", file=sys.stderr)
    except (TailtrimError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
    sys.exit(1)
