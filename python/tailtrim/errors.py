"""What tailtrim raises.

::

    TailtrimError            anything that tailtrim reports as an error
    ├── CaptureError         a capture cannot be read (says where, and what was expected there)
    ├── OutputError          a result cannot be written
    └── RunDirectoryError    a run directory is missing, incomplete or of another version

What to do about an error is in its notes (``error.__notes__``), which tracebacks show.
"""

from tailtrim._native import CaptureError, OutputError, TailtrimError

__all__ = ["CaptureError", "OutputError", "RunDirectoryError", "TailtrimError"]


class RunDirectoryError(TailtrimError):
    """A run directory is missing, incomplete or of another version."""
