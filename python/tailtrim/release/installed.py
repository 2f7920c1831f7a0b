"""The packages of the nodes in a release: whether each list that the records name is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.errors import ReleaseError
from tailtrim.experiment.packages import FOLDER, file_of
from tailtrim.nodes.packages import sum_of
from tailtrim.release import tree
from tailtrim.release.layout import EXPERIMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.release.opened import Opened


def wrong(release: Opened) -> list[str]:
    """Return what is wrong with the lists of packages: missing, changed, or of no node."""
    named = dict(_named(release))
    there = {name for name in release.files if name.startswith(f"{EXPERIMENT}/{FOLDER}/")}
    found = [f"{name}: missing, the packages of {named[name][0]}" for name in named.keys() - there]
    found += [f"{name}: the packages of no node" for name in there - named.keys()]
    for name in named.keys() & there:
        node, told = named[name]
        try:
            same = sum_of(tree.text(release.root / name)) == told
        except ReleaseError:
            same = False
        if not same:
            found.append(f"{name}: not the packages of {node}, their sum is another one")
    return sorted(found)


def _named(release: Opened) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each list that the records name, with a node and the sum that it has there."""
    for environments in (release.told.get("environment"), *_of_runs(release)):
        for node, told in environments.items() if isinstance(environments, dict) else ():
            name = file_of(told) if isinstance(told, dict) else None
            if name is not None:
                yield f"{EXPERIMENT}/{name}", (node, told["packages"])


def _of_runs(release: Opened) -> Iterator[Any]:
    for run in release.runs:
        place = release.place / run / "nodes.json"
        if place.is_file():
            try:
                yield tree.record(place).get("nodes")
            except ReleaseError:
                # That it cannot be read, the level `validity` says.
                continue
