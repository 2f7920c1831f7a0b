"""A folder of pos results: its runs, their loop variables, and the files that belong to each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tailtrim.errors import ResultsError
from tailtrim.laboratory.plan.variables import MOST_RUNS
from tailtrim_pos.naming import FINISHED, LOOP, OWN, STATUS, command_of, run_of
from tailtrim_pos.results.bounded import files_below, json_of, text_of
from tailtrim_pos.variables import grid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_LOOP_BYTES = 1 << 20
_MOST_STATUS_BYTES = 1 << 10
_MOST_VARIABLES_BYTES = 16 << 20
_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a run: where it is, and the name that it had before it got its run."""

    path: Path
    name: str


@dataclass(slots=True)
class PosRun:
    """A run: loop variables, its problem, and its uploads, by node and name."""

    number: int
    loop: dict[str, Any] | None = None
    problems: list[str] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PosResults:
    """Content of a folder; ``layout`` is 2020 or 2026, ``missing`` are runs without a file."""

    name: str
    layout: int
    nodes: tuple[str, ...]
    runs: tuple[PosRun, ...]
    missing: tuple[tuple[int, dict[str, Any]], ...]
    left_out: tuple[str, ...]


def read(path: Path) -> PosResults:
    """Read a folder of results, in the layout of 2020 or of 2026.

    Raises:
        ResultsError: it is none, or cannot be read.

    """
    if not path.is_dir():
        raise ResultsError(f"{path}: no folder, expected results of pos")
    layout = 2026 if (path / "scripts").is_dir() else 2020
    left_out: list[str] = []
    runs: dict[int, PosRun] = {}
    nodes: dict[str, None] = {}
    for node, file in _files(path, layout, left_out):
        nodes[node] = None
        _take(file, node, path, runs)
    known = [run for run in runs.values() if run.loop is not None]
    if not known:
        error = ResultsError(
            f"{path}: no results of pos, which have a file …_run0.loop for each run"
        )
        error.add_note("expected a folder such as 2026-06-30_16-35-26_707763, with config inside")
        raise error
    return PosResults(
        name=path.resolve().name,
        layout=layout,
        nodes=tuple(nodes),
        runs=tuple(sorted(known, key=lambda run: run.number)),
        missing=tuple(_against_grid(path, runs)),
        left_out=tuple(left_out),
    )


def _files(path: Path, layout: int, left_out: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield node and file of all that nodes left behind."""
    parents = (path / "scripts", path / "files") if layout == 2026 else (path,)  # noqa: PLR2004
    for parent in parents:
        if parent.is_symlink() or not parent.is_dir():
            continue
        for folder in sorted(parent.iterdir()):
            if folder.is_symlink():
                left_out.append(str(folder.relative_to(path)))
            elif folder.is_dir() and folder != path / "config":
                for file in files_below(folder, left_out):
                    yield folder.name, file


def _take(file: Path, node: str, root: Path, runs: dict[int, PosRun]) -> None:
    """Note a file with the run that it belongs to, by its name or by that of a folder above it."""
    number, name = run_of(file.name)
    for above in file.relative_to(root).parts[:-1]:
        number = run_of(above)[0] if number is None else number
    if number is None:
        return
    if number >= MOST_RUNS:
        raise ResultsError(f"{file}: run {number:,}, expected fewer than {MOST_RUNS:,} runs")
    run = runs.setdefault(number, PosRun(number))
    if file.suffix == LOOP:
        loop = json_of(file, _MOST_LOOP_BYTES)
        if run.loop is None:
            run.loop = loop
        elif run.loop != loop:
            run.problems.append(f"{node} has other loop variables than the nodes before it")
    elif file.suffix == STATUS:
        status = text_of(file, _MOST_STATUS_BYTES).strip()
        if status != FINISHED:
            told = f"{command_of(file.name)} on {node} has the status {status[:100]!r}"
            run.problems.append(f"{told}, expected {FINISHED!r}")
    elif file.suffix not in OWN:
        run.uploads.append(Upload(file, name))


def _against_grid(path: Path, runs: dict[int, PosRun]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the runs that are missing, where the folder says which there were to be."""
    lists = _loop_lists(path)
    if not lists:
        return
    for number, loop in enumerate(grid(lists)):
        run = runs.get(number)
        if run is None or run.loop is None:
            yield number, loop
        elif run.loop != loop:
            told = json.dumps(loop)[:200]
            run.problems.append(f"its loop variables are not those of its number, {told}")


def _loop_lists(path: Path) -> dict[str, list[Any]]:
    """Return the values of each loop variable, as the controller kept them; empty where unknown."""
    config = path / "config"
    if config.is_symlink() or not config.is_dir():
        return {}
    # The newest comes first: its name begins with the time.
    for place in [
        *sorted(config.glob("*_variables.json"), reverse=True),
        config / "allocation.json",
    ]:
        if not place.is_file():
            continue
        loop = json_of(place, _MOST_VARIABLES_BYTES).get("loop")
        if not isinstance(loop, dict):
            continue
        lists = {
            str(key): value for key, value in loop.items() if isinstance(value, list) and value
        }
        count = 1
        for values in lists.values():
            count *= len(values)
        # A range that is not written out, or what is no list, says nothing of the runs.
        plain = len(lists) == len(loop) and not any("..." in values for values in lists.values())
        return lists if plain and count <= MOST_RUNS else {}
    return {}


def told_left_out(left_out: tuple[str, ...]) -> str:
    """Return a sentence about what was not followed."""
    shown = ", ".join(left_out[:_MOST_TOLD]) + (", …" if left_out[_MOST_TOLD:] else "")
    what = (
        "symbolic link or special file was"
        if len(left_out) == 1
        else "symbolic links or special files were"
    )
    return f"{len(left_out)} {what} left out: {shown}"
