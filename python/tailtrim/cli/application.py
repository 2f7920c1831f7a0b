"""Application of all commands: each is loaded when it is called, not when another one is."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tailtrim.cli import spans
from tailtrim.cli.catalogue import BY_AGENT, CATALOGUE, COMMANDS, ELSEWHERE, FORMER, IMPORTS
from tailtrim.cli.console import guarded, say
from tailtrim.cli.delegated import candidates, delegate
from tailtrim.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Command(TyperCommand):
    """A command whose arguments are shown as ``NAME``, or ``[NAME]`` where they may be left out."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line: former spellings of options."""
        words = _renamed(args, FORMER.get(self.name or "", {}))
        return super().parse_args(context, list(words))

    def collect_usage_pieces(self, context: Any) -> list[str]:
        """Return the rest of the usage line, behind the name."""
        arguments = [p for p in self.get_params(context) if p.param_type_name == "argument"]
        return ["[OPTIONS]", *(_name(p) if p.required else f"[{_name(p)}]" for p in arguments)]

    def format_options(self, context: Any, formatter: Any) -> None:
        """Write arguments and options."""
        arguments, options = [], []
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append((_name(parameter), record[1].removesuffix("  [required]")))
            else:
                options.append(record)
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _renamed(words: Sequence[str], former: dict[str, str]) -> Iterator[str]:
    """Yield present spellings of options; a note names each that was not one."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in former:
            say(f"note: {name} is called {former[name]} now", err=True)
            name = former[name]
        yield name + equals + value
        if word == "--":
            yield from rest


def _name(parameter: Any) -> str:
    shown = parameter.metavar or str(parameter.name).upper()
    return str(shown) + ("…" if parameter.nargs != 1 and not shown.endswith("…") else "")


class AgentCommand(Command):
    """A command of the agent, which completes its options."""

    def shell_complete(self, context: Any, incomplete: str) -> Any:
        """Return completions of the last word."""
        return candidates(context.info_name or "", context.args, incomplete)


class Commands(TyperGroup):
    """The commands of the catalogue, in its groups."""

    def list_commands(self, _context: Any) -> list[str]:
        """Return their names in the order of the help."""
        return [*CATALOGUE, *COMMANDS.names(), "help"]

    def get_command(self, _context: Any, name: str) -> Any:
        """Load a command; ``None`` where there is none of this name."""
        if name not in self.commands:
            made = _command(name)
            if made is None:
                return None
            self.commands[name] = made
        return self.commands[name]

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:
        """Find the command; suggest others for a misspelt one."""
        name, *rest = arguments
        if name == "import" and rest and rest[0] in IMPORTS:
            name = f"import {rest[0]}"
            return name, _of_module(name, IMPORTS.load(rest[0])), rest[1:]
        if self.get_command(context, name) is None and not name.startswith("-"):
            close = get_close_matches(name, [*CATALOGUE, *COMMANDS.names()])
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            if name in ELSEWHERE:
                meant = f" It is in a package of its own: pip install {ELSEWHERE[name]}"
            context.fail(f"No such command {name!r}.{meant}")
        return super().resolve_command(context, arguments)

    def invoke(self, context: Any) -> Any:
        """Run a command."""
        with guarded(), spans.removed():
            return super().invoke(context)

    def format_commands(self, _context: Any, formatter: Any) -> None:
        """Write the groups, one line a command; nothing is loaded for it."""
        for group in dict.fromkeys(entry.group for entry in CATALOGUE.values()):
            of_group = [name for name, entry in CATALOGUE.items() if entry.group == group]
            with formatter.section(group):
                formatter.write_dl([(n.ljust(_WIDEST), CATALOGUE[n].summary) for n in of_group])
        if added := COMMANDS.names():
            with formatter.section("Plug-ins"):
                formatter.write_dl([(n.ljust(_WIDEST), COMMANDS.summary(n)) for n in added])


_WIDEST = max(map(len, CATALOGUE))


def _command(name: str) -> Any:
    if name == "help":
        return _alone(name, _help, hidden=True, context_settings={"help_option_names": []})
    if name in BY_AGENT:
        return _alone(
            name, _agent, AgentCommand, context_settings=_PASSED_ON, help=CATALOGUE[name].summary
        )
    if name in CATALOGUE:
        return _of_module(name, import_module(f"tailtrim.cli.{CATALOGUE[name].module}"))
    return _of_module(name, COMMANDS.load(name)) if name in COMMANDS else None


def _of_module(name: str, module: Any) -> Any:
    """Return the command of a module that has it as ``command``, and ``EXAMPLES`` for its help."""
    return _alone(name, module.command, epilog=module.EXAMPLES)


def _alone(
    name: str, command: Callable[..., None], kind: type[Command] = Command, **options: Any
) -> Any:
    """Return one command as typer makes it."""
    one = typer.Typer(rich_markup_mode=None, add_completion=False)
    one.command(name, cls=kind, **options)(command)
    return typer.main.get_command(one)


#: The agent reads the arguments, and has the help.
_PASSED_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def _agent(context: typer.Context) -> None:
    raise typer.Exit(delegate(context.info_name or "", context.args))


def _help(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="COMMAND")] = None,
) -> None:
    """Show the help of a command."""
    application = context.parent
    if application is None or name is None:
        say((application or context).get_help())
        return
    arguments = [name, "--help"]
    application.command.main(arguments, prog_name=application.info_name)


app = typer.Typer(
    name="tailtrim",
    cls=Commands,
    help="Measure, explain and trim the tail latency of packet processing.",
    epilog=f"Exit codes: {', '.join(f'{code} {code.told}' for code in ExitCode)}.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from tailtrim import __version__  # noqa: PLC0415 - the native module

        say(f"tailtrim {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass
