"""Spans of a watch on the command line: ``WATCH/TARGET@SPAN``, ``WATCH@SPAN``."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tailtrim.cli.console import warn
from tailtrim.results.layout import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from tailtrim.analysis.watched import Account, Span, Target
    from tailtrim.results import Summary

#: Without a span.
_DEFAULT = "today"


class Selected(NamedTuple):
    """The targets of a folder in a span, which was typed as ``text``."""

    folder: Path
    targets: list[Target]
    span: Span
    text: str

    @property
    def names(self) -> list[str]:
        """Names of runs of these, no two alike."""
        text = self.text.replace("/", "_")
        several = len({target.host for target in self.targets}) > 1
        names = [
            f"{target.host}, {target.name}" if several else target.name for target in self.targets
        ]
        return [f"{name}@{text}" for name in names]


def selected(
    word: str, text: str | None = None, host: str | None = None, now: datetime | None = None
) -> Selected | None:
    """Return what a word of the command line selects; ``None``: no span of a watch.

    Args:
        word: the folder of a target, of a watch, or of the watches of several hosts, with a span
            behind ``@``.
        text: the span of a word that has none.
        host: what to call the host.
        now: the time of the command, for several words.

    Raises:
        ValueError: the span has none of its forms.
        RoundTripError: no target is there; it says which ones are.

    """
    folder, at, behind = word.rpartition("@")
    is_run = (Path(word) / SUMMARY).is_file()
    if is_run or ("@" not in word and not Path(word).is_dir()):
        return None
    from tailtrim.analysis.watched import is_watched, span, targets_of  # noqa: PLC0415

    now = now or here()
    if Path(word).exists():
        if not is_watched(Path(word)):
            return None
        text = text or _DEFAULT
        return Selected(Path(word), targets_of(Path(word), host), span(text, now), text)
    if not at or not (is_watched(Path(folder)) or _is_span(behind, now)):
        return None
    found = span(behind, now)
    return Selected(Path(folder), targets_of(Path(folder), host), found, behind)


def here() -> datetime:
    """Return the time in the zone of this host, in which spans are typed."""
    from datetime import datetime  # noqa: PLC0415 - most words have no span

    return datetime.now()  # noqa: DTZ005 - see above


def _is_span(text: str, now: datetime) -> bool:
    from tailtrim.analysis.watched import span  # noqa: PLC0415

    try:
        span(text, now)
    except ValueError:
        return False
    return True


class _Scratch(ExitStack):
    """A folder for runs of spans, which is made when it is needed."""

    folder: Path | None = None

    def made(self) -> Path:
        import tempfile  # noqa: PLC0415 - most commands have no span

        from tailtrim.results.drafts import draft_folder  # noqa: PLC0415

        if self.folder is None:
            # The next process removes what a killed one has left.
            place = Path(tempfile.gettempdir()) / "tailtrim-spans"
            self.folder = self.enter_context(draft_folder(place))
            self.folder.chmod(0o700)
        return self.folder


_scratch = _Scratch()


@contextmanager
def removed() -> Iterator[None]:
    """Remove the runs of spans when the command ends."""
    try:
        with _scratch:
            yield
    finally:
        _scratch.folder = None


def folder() -> Path:
    """Return the folder for runs of spans; it lasts as long as the command.

    Raises:
        OutputError: it cannot be made.

    """
    return _scratch.made()


def leave_runs(
    chosen: Selected, place_of: Callable[[str], Path]
) -> list[tuple[str, Path, Summary]]:
    """Leave a run directory for each target that has minutes; return name, place and summary.

    A target without minutes in the span is told, unless all are so.

    Args:
        chosen: the targets.
        place_of: returns where the run of this name is to be left.

    Raises:
        RoundTripError: minutes are missing or unreadable.
        OutputError: a run directory cannot be written.

    """
    from tailtrim.analysis.watched import Account, leave_run  # noqa: PLC0415
    from tailtrim.errors import RoundTripError  # noqa: PLC0415

    runs, missing = [], []
    for target, name in zip(chosen.targets, chosen.names, strict=True):
        account, place = Account(target, chosen.span), place_of(name)
        try:
            runs.append((name, place, leave_run(account, place)))
        except RoundTripError as error:
            missing.append(error)
            continue
        tell(account)
    if not runs:
        raise missing[0]
    for fault in missing:
        warn(str(fault))
    return runs


def runs_of(chosen: Selected) -> list[Path]:
    """Leave the runs of what was selected, as long as the command takes.

    Raises:
        RoundTripError: minutes are missing or unreadable.
        OutputError: a run directory cannot be written.

    """
    return [place for _, place, _ in leave_runs(chosen, place_of)]


def place_of(name: str) -> Path:
    """Return where the run of a span is to be left: a folder of this name, with no other in it."""
    place = folder() / name.replace("/", "_")
    if place.exists():
        place = folder() / str(len(list(folder().iterdir()))) / place.name
    return place


def as_runs(words: Iterable[str]) -> list[str]:
    """Return words with the runs of spans in place of these."""
    found: list[str] = []
    for word in words:
        chosen = selected(word)
        found += [word] if chosen is None else map(str, runs_of(chosen))
    return found


def tell(account: Account) -> None:
    """Tell on standard error what of a span is not there."""
    import time  # noqa: PLC0415

    from tailtrim import units  # noqa: PLC0415
    from tailtrim.publishing.watch_report.account_wording import notes  # noqa: PLC0415

    name = units.printable(f"{account.target.host}/{account.target.name}")
    for note in notes(account, time.time_ns()):
        warn(f"{name}: {units.printable(note)}")
