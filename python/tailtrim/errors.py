"""Errors that tailtrim raises, and the exit codes by which the command line reports them.

::

    TailtrimError            anything that tailtrim reports as an error
    ├── CaptureError         a capture cannot be read (says where, and what was expected there)
    ├── OutputError          a result cannot be written
    ├── RunDirectoryError    a run directory is missing, incomplete or of another version
    │   └── NotPredictedError the model of a run misses what was measured
    ├── DecodedError         likewise a directory of decoded captures
    ├── EngineError          an engine is missing, cannot be reached, refuses or broke
    │   └── QueryError       the query is wrong: its SQL, a name in it, or its values
    ├── PlanError            a plan, testbed or claim is wrong (says line, key, what is allowed)
    ├── HostError            this host cannot do it: no permission, a program that is missing
    ├── RunError             a run broke: a device that died, an interface that went
    ├── RoundTripError       a file of round trips cannot be read
    ├── ResultsError         results of another orchestrator cannot be read
    ├── ReleaseError         a release cannot be made, or what is verified is not one
    ├── MissingPackageError  an optional package is missing or broken (the note says what to do)
    └── ReportError          a report was asked for that makes no sense
        └── PicturesError    what makes pages and figures is not installed

Advice on an error is in its notes (``error.__notes__``), which tracebacks show. A note that
names arguments of the call is a :class:`Remedy`.
"""

from __future__ import annotations

from enum import IntEnum
from string import Formatter
from typing import TYPE_CHECKING, Self

from tailtrim._native import CaptureError, OutputError, TailtrimError, TwoDirectionsError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "EXIT_CODES",
    "CaptureError",
    "DecodedError",
    "EngineError",
    "ExitCode",
    "HostError",
    "MissingPackageError",
    "NotPredictedError",
    "OutputError",
    "PicturesError",
    "PlanError",
    "QueryError",
    "ReleaseError",
    "Remedy",
    "ReportError",
    "ResultsError",
    "RoundTripError",
    "RunDirectoryError",
    "RunError",
    "TailtrimError",
    "TwoDirectionsError",
    "exit_code",
]


class Remedy(str):
    """Advice on an error, added as a note: the arguments to give to the call, and why.

    As text it has the arguments by their own names; a command line, where they are called
    otherwise, has its own with :meth:`typed`.

    >>> remedy = Remedy("{scratch} names a disk with more room")
    >>> print(remedy)
    scratch names a disk with more room
    >>> remedy.typed({"scratch": "--scratch DIR"})
    '--scratch DIR names a disk with more room'

    """

    __slots__ = ("_template",)

    _template: str

    def __new__(cls, template: str) -> Self:
        """Take the text with each argument in braces."""
        remedy = super().__new__(cls, _filled(template, {}))
        remedy._template = template
        return remedy

    def typed(self, options: Mapping[str, str]) -> str:
        """Return the text with what a user types for each argument; others keep their names."""
        return _filled(self._template, options)


def _filled(template: str, words: Mapping[str, str]) -> str:
    names = {name for _, name, _, _ in Formatter().parse(template) if name}
    return template.format(**{name: words.get(name, name) for name in names})


class RunDirectoryError(TailtrimError):
    """A run directory is missing, incomplete or of another version."""


class NotPredictedError(RunDirectoryError):
    """The model of a run misses what was measured, so that it predicts nothing."""


class DecodedError(TailtrimError):
    """A directory of decoded captures is missing, incomplete or of another version."""


class EngineError(TailtrimError):
    """An engine is missing, cannot be reached, refuses what is asked of it, or broke."""


class QueryError(EngineError):
    """A query is wrong: its SQL, a name in it, or the values that it works on."""


class PlanError(TailtrimError):
    """A plan, a testbed or a claim makes no sense: each of ``args`` is one mistake."""

    def __str__(self) -> str:
        """Return all mistakes."""
        return "; ".join(map(str, self.args))


class HostError(TailtrimError):
    """The host cannot do what is asked for."""


class RunError(TailtrimError):
    """Something broke while it ran."""


class RoundTripError(TailtrimError):
    """A file of round trips cannot be read."""


class ResultsError(TailtrimError):
    """Results of another orchestrator cannot be read."""


class ReleaseError(TailtrimError):
    """A release cannot be made, or what is to be verified is not one."""


class MissingPackageError(TailtrimError):
    """An optional package is not installed."""


class ReportError(TailtrimError):
    """A report was asked for that makes no sense."""


class PicturesError(ReportError):
    """Pages and figures need packages that are not installed; the note says how to install them."""


class ExitCode(IntEnum):
    """Exit codes of the command line; those of the agent are the same."""

    told: str

    def __new__(cls, code: int, told: str) -> Self:
        """Keep the words of the help with the number."""
        one = int.__new__(cls, code)
        one._value_, one.told = code, told
        return one

    SUCCESS = 0, "success"
    NEGATIVE = (
        1,
        "negative result (nothing matched; clocks disagree; B is worse; an objective failed)",
    )
    INVALID = 2, "invalid arguments or input"
    IMPOSSIBLE = 3, "not possible on this host"
    FAILED = 4, "failed while running"
    UNDECIDED = 5, "not decided (--assert), or not predicted"
    INTERRUPTED = 130, "interrupted"


#: Of each class of errors; subclasses defined elsewhere have that of their base.
EXIT_CODES: dict[type[BaseException], ExitCode] = {
    TailtrimError: ExitCode.INVALID,
    CaptureError: ExitCode.INVALID,
    TwoDirectionsError: ExitCode.INVALID,
    OutputError: ExitCode.INVALID,
    RunDirectoryError: ExitCode.INVALID,
    NotPredictedError: ExitCode.UNDECIDED,
    DecodedError: ExitCode.INVALID,
    EngineError: ExitCode.IMPOSSIBLE,
    QueryError: ExitCode.INVALID,
    PlanError: ExitCode.INVALID,
    HostError: ExitCode.IMPOSSIBLE,
    RunError: ExitCode.FAILED,
    RoundTripError: ExitCode.INVALID,
    ResultsError: ExitCode.INVALID,
    ReleaseError: ExitCode.INVALID,
    MissingPackageError: ExitCode.IMPOSSIBLE,
    ReportError: ExitCode.INVALID,
    PicturesError: ExitCode.IMPOSSIBLE,
    # Of an argument that makes no sense: the native module raises these two.
    ValueError: ExitCode.INVALID,
    OverflowError: ExitCode.INVALID,
    # A disk or a mounted store that does not answer when a command only looks what is there.
    OSError: ExitCode.FAILED,
    KeyboardInterrupt: ExitCode.INTERRUPTED,
}


def exit_code(error: BaseException) -> ExitCode | None:
    """Return the exit code of a command that an error ends; ``None`` where it is a bug."""
    return next((EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES), None)
