"""The command line: arguments in, calls out, nothing else.

Exit codes, the same as the agent's: 0 success, 1 negative result (nothing matched; B is worse; an
objective failed), 2 invalid arguments or input, 3 not possible on this host, 4 failed while
running, 5 not decided (``--assert``), 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from tailtrim.cli.catalogue import BY_AGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; the process ends with the exit code."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        # Until the command is loaded, Ctrl-C ends the process without a word.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = _loaded(sys.argv[1:])
    try:
        signal.signal(signal.SIGINT, interrupt)
        sys.exit(command())
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _loaded(arguments: Sequence[str]) -> Callable[[], int | None]:
    """Load what runs a command.

    Commands of the agent go to it at once: what reads the other commands' options takes longer to
    load than the agent takes to answer.
    """
    if arguments and arguments[0] in BY_AGENT:
        from tailtrim.cli.delegated import delegate  # noqa: PLC0415 - see above

        return lambda: delegate(arguments[0], arguments[1:])
    if arguments in (["--version"], ["-V"]):
        return _version
    from tailtrim.cli.application import run  # noqa: PLC0415 - see above

    return run


def _version() -> None:
    from tailtrim import __version__  # noqa: PLC0415 - other commands start without

    sys.stdout.write(f"tailtrim {__version__}\n")
