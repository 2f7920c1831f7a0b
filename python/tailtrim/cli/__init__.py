"""The command line: arguments in, calls out, nothing else.

Exit codes, the same as the agent's: 0 done, 1 done but the answer is no (nothing matched; B is
worse), 2 wrong request or input,
3 not possible on this host, 4 broke while running, 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tailtrim import __version__
from tailtrim.cli import (
    analyze,
    compare,
    convert,
    decode,
    explain,
    import_,
    load,
    ping,
    query,
    report,
    run,
    selftest,
    simulate_interrupts,
    verbs,
)
from tailtrim.cli.console import INTERRUPTED, USAGE, complain, say
from tailtrim.errors import TailtrimError

EXIT_CODES = (
    "Exit codes: 0 done, 1 done but the answer is no (nothing matched; B is worse), 2 wrong request"
    " or input, 3 not possible on this host, 4 broke while running, 130 interrupted."
)

app = typer.Typer(
    name="tailtrim",
    help="Measure, explain and trim the tail latency of packet processing.",
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("analyze", epilog=analyze.EXAMPLES)(analyze.command)
app.command("run", epilog=run.EXAMPLES)(run.command)
app.command("selftest", epilog=selftest.EXAMPLES)(selftest.command)
for verb, told in verbs.VERBS.items():
    app.command(verb, help=told, context_settings=verbs.CONTEXT)(verbs.command)
app.command("ping", help=ping.HELP, context_settings=verbs.CONTEXT)(ping.command)
app.command("explain", epilog=explain.EXAMPLES)(explain.command)
app.command("compare", epilog=compare.EXAMPLES)(compare.command)
app.command("plan-length", epilog=compare.LENGTH_EXAMPLES)(compare.plan_length)
app.command("simulate-interrupts", epilog=simulate_interrupts.EXAMPLES)(simulate_interrupts.command)
app.command("decode", epilog=decode.EXAMPLES)(decode.command)
app.command("load", epilog=load.EXAMPLES)(load.command)
app.command("query", epilog=query.EXAMPLES)(query.command)
app.command("report", epilog=report.EXAMPLES)(report.command)
app.command("convert", epilog=convert.EXAMPLES)(convert.command)
app.command("import", epilog=import_.EXAMPLES)(import_.command)


def _version(asked: bool) -> None:
    if asked:
        say(f"tailtrim {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; the process ends with the exit code."""
    try:
        app()
    except TailtrimError as error:
        complain(error)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has what it wanted (`| head`); nothing must be flushed to it at exit.
        sys.stdout = None
