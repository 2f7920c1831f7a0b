"""Late probes that a watch has caught, explained by the watch itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from tailtrim import units
from tailtrim.analysis.explain.host_explanation import Data, WorstExplained, file_of
from tailtrim.errors import RunDirectoryError
from tailtrim.results.layout import WORST_EXPLAINED

if TYPE_CHECKING:
    from pathlib import Path

CATCH = "catch.json"
#: Folder of catches within that of a target.
CATCHES = "catches"


class _Trace(Data):
    missing: str | None = None


class _CatchFile(Data):
    schema_: Literal["tailtrim.catch/1"] = Field(alias="schema")
    target: str
    bad: dict[str, int] = Field(default_factory=dict)
    trace: _Trace


@dataclass(frozen=True)
class Catch:
    """A folder in which a watch has kept a late probe and those around it.

    ``no_trace`` is why there is no trace of the CPUs, if there is none.
    """

    path: Path
    target: str
    worst: WorstExplained
    no_trace: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the form that ``--json`` prints."""
        told = self.worst.model_dump(mode="json", by_alias=True)
        return {"catch": self.path.name, "target": self.target, **told}


def below(path: Path) -> list[Catch]:
    """Return the catches of a target of a watch in their order, or the one at ``path``.

    What makes probes of several targets late is kept once: those of others are among them in which
    it had late ones, too.

    Raises:
        RunDirectoryError: a file of theirs cannot be read, or a target has none.

    """
    if (path / CATCH).is_file():
        return [_read(path)]
    if not (path / "target.json").is_file():
        return []
    files = path.absolute().parent.glob(f"*/{CATCHES}/*/{CATCH}")
    ordered = sorted(files, key=lambda file: file.parent.name)
    found = [_read(file.parent) for file in ordered if path.name in _late_targets(file)]
    if not found:
        raise RunDirectoryError(
            f"{path}: a target of tailtrim watch without caught probes: with catch in the file of"
            f" targets, late ones are kept; of all probes of a time, explain {path}@today"
        )
    return found


def _late_targets(file: Path) -> set[str]:
    described = file_of(file, _CatchFile)
    return set() if described is None else {described.target, *described.bad}


def _read(path: Path) -> Catch:
    described = file_of(path / CATCH, _CatchFile)
    worst = file_of(path / WORST_EXPLAINED, WorstExplained)
    if described is None or worst is None:
        raise RunDirectoryError(f"{path}: has no {WORST_EXPLAINED}: not a whole catch")
    missing = described.trace.missing
    return Catch(
        path=path,
        target=units.printable(described.target),
        worst=worst,
        no_trace=None if missing is None else units.printable(missing),
    )
