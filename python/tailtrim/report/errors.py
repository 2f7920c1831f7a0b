"""What a report raises beside the errors of :mod:`tailtrim.errors`."""

from tailtrim.errors import TailtrimError


class ReportError(TailtrimError):
    """A report was asked for that makes no sense."""
