"""Energy of a node (``pos_energy``): its meter, read until it is stopped, as a CSV file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.laboratory.energy import pos_csv
from tailtrim.laboratory.energy.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.nodes.meters import Reader

#: Name of a file for which a script gives none.
UNNAMED = "energy"
_SUFFIX = ".csv"


class Measuring:
    """A meter that is read every second until :meth:`stop`.

    Args:
        reader: the meter, which is open.
        place: for the file.
        of_run: whether the file is one of the current run.

    """

    def __init__(self, reader: Reader, place: Path, *, of_run: bool) -> None:
        """Begin to read."""
        self.place, self.of_run = place, of_run
        self._recorder = Recorder({UNNAMED: reader})
        self._recorder.__enter__()

    def stop(self) -> None:
        """End, and write what was read.

        Raises:
            OutputError: it cannot be written.

        """
        self._recorder.read()
        self._recorder.__exit__()
        ((reader, series, _),) = self._recorder.meters.values()
        pos_csv.write(self.place, reader.channels, series.readings)

    @property
    def problem(self) -> str | None:
        """Reason why the meter could not be read at times, if so."""
        ((_, _, failed),) = self._recorder.meters.values()
        return f"{len(failed)} readings failed: {failed[-1]}" if failed else None


def named(name: str | None) -> str:
    """Return the name of a file: pos puts the suffix behind what scripts give.

    >>> named("measurement"), named("measurement.csv"), named(None)
    ('measurement.csv', 'measurement.csv', 'energy.csv')

    """
    return f"{(name or UNNAMED).removesuffix(_SUFFIX)}{_SUFFIX}"
