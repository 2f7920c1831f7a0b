"""What tailtrim raises.

::

    TailtrimError            anything that tailtrim reports as an error
    ├── CaptureError         a capture cannot be read (says where, and what was expected there)
    ├── OutputError          a result cannot be written
    ├── RunDirectoryError    a run directory is missing, incomplete or of another version
    ├── DecodedError         likewise a directory of decoded captures
    ├── EngineError          an engine is missing, cannot be reached, refuses or broke
    ├── PlanError            a plan asks for what makes no sense (says line, key, what is allowed)
    ├── HostError            this host cannot do it: no permission, a program that is missing
    ├── RunError             a run broke: a device that died, an interface that went
    ├── RoundTripError       a file of round trips cannot be read
    └── ReportError          a report was asked for that makes no sense

What to do about an error is in its notes (``error.__notes__``), which tracebacks show.
"""

from tailtrim._native import CaptureError, OutputError, TailtrimError

__all__ = [
    "CaptureError",
    "DecodedError",
    "EngineError",
    "HostError",
    "OutputError",
    "PlanError",
    "ReportError",
    "RoundTripError",
    "RunDirectoryError",
    "RunError",
    "TailtrimError",
]


class RunDirectoryError(TailtrimError):
    """A run directory is missing, incomplete or of another version."""


class DecodedError(TailtrimError):
    """A directory of decoded captures is missing, incomplete or of another version."""


class EngineError(TailtrimError):
    """An engine is missing, cannot be reached, refuses what is asked of it, or broke."""


class PlanError(TailtrimError):
    """A plan asks for what makes no sense."""


class HostError(TailtrimError):
    """The host cannot do what is asked for."""


class RunError(TailtrimError):
    """Something broke while it ran."""


class RoundTripError(TailtrimError):
    """A file of round trips cannot be read."""


class ReportError(TailtrimError):
    """A report was asked for that makes no sense."""
