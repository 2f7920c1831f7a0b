"""``tailtrim pos replay``: the folder that a log of requests stands for."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tailtrim.cli.console import say
from tailtrim.errors import ExitCode, PlanError
from tailtrim.report import units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.pos.scan import Finding

#: The word in the place of a script.
WORD = Path("replay")
#: Where the folder is kept, below the directory of the results.
_KEPT = "replay"


class Replay:
    """A log that is to be replayed on nodes.

    Args:
        arguments: the result folder, and nodes in place of those of the log.

    Raises:
        PlanError: the log is missing, or the number of nodes differs.

    """

    def __init__(self, arguments: Sequence[str]) -> None:
        """Read the log."""
        from tailtrim.pos import recording, replaying  # noqa: PLC0415 - the help does without

        if not arguments:
            raise PlanError("tailtrim pos replay: expected a folder of results")
        self._results, nodes = Path(arguments[0]), arguments[1:]
        self._recording = recording.read(self._results)
        self._renamed = replaying.renamed(self._recording, nodes)
        self.name = self._results.absolute().name
        self.nodes = list(self._renamed.values())

    @property
    def about(self) -> dict[str, Any]:
        """What the experiment is, for its journal."""
        digest = hashlib.sha256(self._recording.place.read_bytes()).hexdigest()
        outcomes = {str(one): count for one, count in sorted(self._recording.outcomes.items())}
        return {"replayed": {"sha256": digest, "entries": outcomes}}

    def tell(self, *, scan: bool) -> None:
        """Say what becomes of the entries, and end if some are unknown and that matters."""
        for problem in self._recording.problems:
            kind = "error" if scan else "warning"
            say(f"{kind}: {self._recording.place}: {units.printable(problem)}", err=True)
        say(f"{self._recording.place}: {self._recording}", err=True)
        if scan and self._recording.problems:
            say("hint: --no-scan replays the other entries", err=True)
            raise typer.Exit(ExitCode.INVALID)

    @contextmanager
    def drafted(self) -> Iterator[Path]:
        """Write the folder for as long as it is scanned; return its script."""
        from tailtrim.pos import replaying  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix="tailtrim-pos-replay-") as place:
            yield replaying.write(self._recording, self._renamed, Path(place))

    def located(self, finding: Finding) -> Finding:
        """Return a finding that says of which log the file is."""
        return replace(finding, path=Path(f"{self._recording.place}: {finding.path.name}"))

    def keep(self, out: Path) -> Path:
        """Write the folder beside the results, where it stays; return its script."""
        from tailtrim.pos import replaying  # noqa: PLC0415

        return replaying.write(self._recording, self._renamed, out / _KEPT)
