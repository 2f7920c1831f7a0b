"""Repositories that nodes would clone, and what they have in their place."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tailtrim.errors import PlanError, RunError
from tailtrim_pos.standin.git import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Name of the stand-in for MoonGen, instead of a folder.
MOONGEN = "moongen"
_NOTHING_TO_DO = ("build.sh", "setup-hugetlbfs.sh", "bind-interfaces.sh")


class Repository(NamedTuple):
    """The URL of a repository, and the folder that stands in; ``None``: that for MoonGen."""

    url: str
    folder: Path | None


def repositories_of(given: Sequence[str]) -> list[Repository]:
    """Return the repositories that a user wrote as ``URL=FOLDER`` or ``URL=moongen``.

    Raises:
        PlanError: one is not written like that, or there is no such folder.

    """
    found = []
    for text in given:
        url, _, folder = text.rpartition("=")
        if not url or not folder:
            raise PlanError(f"repository {text!r}: expected URL=FOLDER, or URL={MOONGEN}")
        if folder != MOONGEN and not Path(folder).is_dir():
            raise PlanError(f"repository {url}: {folder} is not a folder")
        source = None if folder == MOONGEN else Path(folder).resolve()
        found.append(Repository(plain(url), source))
    return found


def write(
    folder: Path, python: str, repositories: Sequence[Repository], ports: Sequence[str]
) -> None:
    """Write what a node has instead of repositories, and the git that clones them.

    Args:
        folder: here; the node has it at :data:`tailtrim_pos.programs.SHARED`.
        python: the path of Python on the node.
        repositories: nothing is written without any.
        ports: of the node, in their order.

    Raises:
        RunError: a folder cannot be copied.

    """
    if not repositories:
        return
    (folder / "ports.json").write_text(json.dumps(list(ports)), "utf-8")
    urls = [repository.url for repository in repositories]
    (folder / "repositories.json").write_text(json.dumps(urls), "utf-8")
    _program(folder / "bin" / "git", "git.py", python)
    for number, repository in enumerate(repositories):
        place = folder / "repositories" / str(number)
        if place.exists():
            continue
        if repository.folder is None:
            _moongen(place, python)
            continue
        try:
            shutil.copytree(repository.folder, place, symlinks=True)
        except OSError as error:
            raise RunError(f"{repository.folder}: cannot be copied: {error}") from error


def _moongen(place: Path, python: str) -> None:
    (place / "build").mkdir(parents=True)
    _program(place / "build" / "MoonGen", "moongen.py", python)
    for name in _NOTHING_TO_DO:
        script = place / name
        told = f"{name}: nothing done: tailtrim's stand-in for MoonGen needs none of it"
        script.write_text(f'#!/bin/sh\necho "{told}" >&2\n', "utf-8")
        script.chmod(0o755)


def _program(place: Path, source: str, python: str) -> None:
    """Write a program that the kernel starts under its own name, as ``killall`` looks for it."""
    text = resources.files("tailtrim_pos.standin").joinpath(source).read_text("utf-8")
    place.write_text(f"#!{python} -IS\n{text}", "utf-8")
    place.chmod(0o755)
