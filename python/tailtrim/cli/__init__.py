"""The command line: arguments in, calls out, nothing else.

Exit codes: :class:`tailtrim.errors.ExitCode`.
"""

from __future__ import annotations

import signal
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

from tailtrim.cli.catalogue import BY_AGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main() -> None:
    """Run the command line; the process ends with the exit code."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        # Until the command is loaded, Ctrl-C ends the process without a word.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if isinstance(sys.stdout, TextIOWrapper):
        # An output without Unicode shows escapes in place of µ, and not an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    command = _loaded(sys.argv[1:])
    from tailtrim.cli.console import guarded  # noqa: PLC0415 - see above

    with guarded():
        signal.signal(signal.SIGINT, interrupt)
        sys.exit(command())


def _loaded(arguments: Sequence[str]) -> Callable[[], int | None]:
    """Load the function of a command.

    Commands of the agent go to it at once: loading the parser of the other commands' options
    takes longer than the agent's answer.
    """
    if arguments and arguments[0] in BY_AGENT:
        from tailtrim.cli.delegated import delegate  # noqa: PLC0415 - see above

        return lambda: delegate(arguments[0], arguments[1:])
    if arguments in (["--version"], ["-V"]):
        return _version
    from tailtrim.cli.application import app  # noqa: PLC0415 - see above

    return app


def _version() -> None:
    from tailtrim import __version__  # noqa: PLC0415 - other commands start without

    sys.stdout.write(f"tailtrim {__version__}\n")
