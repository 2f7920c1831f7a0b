"""Text on standard output and standard error, progress, and the end of a command by an error."""

from __future__ import annotations

import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.errors import (
    ExitCode,
    PicturesError,
    PlanError,
    Remedy,
    TailtrimError,
    exit_code,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self, TextIO

    from rich.console import RenderableType
    from rich.progress import Progress as Bar

#: Command-line spelling of the arguments that errors name.
TYPED = {
    "ingress_interface": "--ingress INTERFACE",
    "egress_interface": "--egress INTERFACE",
    "nanoseconds": "--stamps nanoseconds",
    "server": "--server WHERE",
    "memory": "--memory SIZE",
    "scratch": "--scratch DIR",
    "ingress": "ingress (DIR:0)",
    "egress": "egress (DIR:1)",
    "load": "tailtrim load DIR",
    "resume": "--resume",
    "out": "--out",
    "floor": "--floor RUN",
    "ping": "tailtrim ping --out DIR",
    "unconfined": "--unrestricted",
    "license": "--license FILE",
    "citation": "--citation FILE",
    "captures": "--captures none",
    "testbed": "--testbed FILE",
    "budget": "--duration TIME",
    "width": "--width SHARE",
    "unit": "--unit UNIT",
}


#: Columns of a line for people.
_WIDEST = 120
#: Characters that control a terminal or make text look like other text: control characters, marks
#: that reverse the direction of writing, halves of characters (of names that are not UTF-8).
_ACTED_ON = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str) -> str:
    r"""Escape control characters of text, or of JSON, which still says the same.

    Ends of lines stay: within a name, which is one line, :func:`units.printable` escapes them.

    >>> escaped("a\x1b[31m\nb\x9b")
    'a\\x1b[31m\nb\\u009b'

    """
    return _ACTED_ON.sub(_code, text)


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    # In JSON, which knows no \x, characters before a space are escaped already.
    return f"\\x{code:02x}" if found[0] < " " else f"\\u{code:04x}"


def say(text: object, *, err: bool = False) -> None:
    """Print text to standard output, or to standard error. Nothing else prints text."""
    told = escaped(str(text))
    # Standard error is for people.
    print(
        _folded(told, sys.stderr) if err else told,
        file=sys.stderr if err else sys.stdout,
        flush=True,
    )


def say_lines(lines: Iterable[str]) -> None:
    """Print lines for people to standard output."""
    for line in lines:
        say(_folded(line, sys.stdout))


def _folded(text: str, stream: TextIO) -> str:
    """Return text in lines that a terminal has room for; for a pipe it stays as it is."""
    if not stream.isatty():
        return text
    import shutil  # noqa: PLC0415 - the agent's commands do without
    import textwrap  # noqa: PLC0415

    room = min(shutil.get_terminal_size().columns, _WIDEST)
    return "\n".join(
        "\n".join(
            textwrap.wrap(
                line,
                room,
                subsequent_indent=" " * (len(line) - len(line.lstrip()) + 2),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
        if len(line) > room
        else line
        for line in text.split("\n")
    )


def say_json(value: object, **layout: Any) -> None:
    """Print a value as JSON to standard output."""
    import json  # noqa: PLC0415 - the agent's commands do without

    say(json.dumps(value, **layout))


def complain(error: BaseException, kind: str = "error") -> None:
    """Print an error, or a warning, and its remedies to standard error."""
    for told in error.args if isinstance(error, PlanError) else [error]:
        tell(f"{kind}: {told}", err=True)
    for note in getattr(error, "__notes__", ()):
        tell(f"hint: {_typed(note)}", err=True)


@contextmanager
def guarded() -> Iterator[None]:
    """Print an error that ends a command, and end the process with the exit code of its class.

    A reader of the output that has what it wanted (``| head``) is no error.
    """
    try:
        yield
    except BrokenPipeError:
        # Nothing must be flushed to it at exit. Typer would exit with 1, a negative result.
        sys.stdout = None
        sys.exit(ExitCode.SUCCESS)
    except (Exception, KeyboardInterrupt) as error:
        code = exit_code(error)
        if code is None:
            raise
        if code is not ExitCode.INTERRUPTED:
            complain(_with_its_file(error) if isinstance(error, OSError) else error)
        sys.exit(code)


def _with_its_file(error: OSError) -> TailtrimError:
    name = error.filename or "standard output, or another open file"
    return TailtrimError(f"{name}: cannot be read or written: {error.strerror or error}")


def _typed(note: str) -> str:
    """Name options in place of the arguments of a note, such as ``salvage=True``."""
    if isinstance(note, Remedy):
        return note.typed(TYPED)
    # From the native module, whose notes are plain text.
    note = re.sub(r"\b([a-z_]+)='([a-z]+)'", r"--\1 \2", note)
    return re.sub(
        r"\b([a-z_]+)=True\b",
        lambda keyword: TYPED.get(keyword[1], "--" + keyword[1].replace("_", "-")),
        note,
    )


def tell(text: object, *, err: bool = False) -> None:
    """Print a line that may have names of others: what is no text in them is escaped."""
    say(units.printable(str(text)), err=err)


def warn(text: str) -> None:
    """Print a warning to standard error."""
    tell(f"warning: {text}", err=True)


def doing(what: str) -> None:
    """Print what is being done, to standard error."""
    say(f"{what} …", err=True)


def show(layout: RenderableType) -> None:
    """Print what ``rich`` lays out, such as a table, to standard output."""
    from tailtrim.cli.terminal import Terminal  # noqa: PLC0415 - not for --json

    Terminal().print(layout)


def show_run(place: Path, report: object, *, err: bool = False) -> None:
    """Print where run directories are, and the command for their report."""
    say(f"\nRun directory: {place}\nReport:        tailtrim report {report}", err=err)


def show_report(
    place: Path, written: Callable[[Path], Sequence[Path]], *, quiet: bool = False
) -> None:
    """Print where an experiment is, and its report; a missing package for it spoils nothing.

    Args:
        place: the experiment.
        written: writes the report to a folder, and returns its files: the page first.
        quiet: print nothing but a warning.

    """
    if not quiet:
        say(f"\nExperiment: {place}")
    try:
        page, *_ = written(place / "report")
    except PicturesError as error:
        complain(error, "warning")
    else:
        if not quiet:
            say(f"Report:     {page}")


class Progress:
    """A bar on a terminal for work that takes longer than a second; silent otherwise.

    None on a terminal that takes no cursor (``TERM=dumb``), and none with ``TTY_INTERACTIVE=0``.
    """

    def __init__(self, what: str) -> None:
        """Name the work."""
        self._what = what
        self._start_s = time.monotonic()
        self._bar: Bar | None = None
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Self:
        """Return the progress itself; call it with the share done, or ``None`` if unknown."""
        return self

    def __call__(self, share: float | None) -> None:
        """Show that this share of the work is done."""
        if not self._shown or (self._bar is None and time.monotonic() - self._start_s < 1):
            return
        if self._bar is None:
            from rich.progress import Progress as Bar  # noqa: PLC0415 - only long work pays for it

            from tailtrim.cli.terminal import Terminal  # noqa: PLC0415

            console = Terminal(stderr=True)
            if not console.is_interactive:
                self._shown = False
                return
            self._bar = Bar(console=console, transient=True)
            self._bar.add_task(self._what, total=None)
            self._bar.start()
        (task,) = self._bar.task_ids
        self._bar.update(task, completed=share or 0, total=None if share is None else 1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
