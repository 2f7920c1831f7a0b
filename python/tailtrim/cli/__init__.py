"""The command line: arguments in, calls out, nothing else.

Exit codes, the same as the agent's: 0 success, 1 negative result (nothing matched; B is worse; an
objective failed), 2 invalid arguments or input, 3 not possible on this host, 4 failed while
running, 5 not decided (``--assert``), 130 interrupted.
"""

from __future__ import annotations

import sys

from tailtrim.cli.catalogue import BY_AGENT


def main() -> None:
    """Run the command line; the process ends with the exit code.

    Commands of the agent go to it at once: what reads the other commands' options takes longer to
    load than the agent takes to answer.
    """
    arguments = sys.argv[1:]
    if arguments and arguments[0] in BY_AGENT:
        from tailtrim.cli.delegated import delegate  # noqa: PLC0415 - see above

        sys.exit(delegate(arguments[0], arguments[1:]))
    if arguments in (["--version"], ["-V"]):
        from tailtrim import __version__  # noqa: PLC0415 - other commands start without

        sys.stdout.write(f"tailtrim {__version__}\n")
        return
    from tailtrim.cli.application import run  # noqa: PLC0415 - see above

    run()
