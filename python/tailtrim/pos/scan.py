"""What a folder uses that nodes lack, by file and line, told before anything is started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tailtrim.errors import PlanError
from tailtrim.pos import scan_python, scan_shell, variables
from tailtrim.pos.images import HOST_IMAGE, has_image
from tailtrim.pos.lacking import of_kernel
from tailtrim.pos.local_nodes import LocalNodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.pos.provider import Provider
    from tailtrim.pos.use import Use

_LARGEST = 1_000_000
_SHELLS = ("sh", "bash", "dash")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that is not supported."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        """Say where and what."""
        return f"{self.path}:{self.line}: {self.what}"


class Wanted(NamedTuple):
    """What is asked for beside the folder: nodes, words behind the script, names of images."""

    nodes: Provider
    words: Sequence[str] = ()
    images: Sequence[str] = ()


def folder(script: Path, wanted: Wanted) -> list[Finding]:
    """Return what the folder of a script uses that is not supported.

    Args:
        script: of the experiment.
        wanted: what is asked for beside it.

    Raises:
        MissingPackageError: what reads shell scripts is not installed.
        PlanError: the script cannot be read.

    """
    top = script.parent
    findings: set[Finding] = set()
    for path in sorted({script, *(one for one in top.rglob("*") if _wanted(one, top))}):
        language = _language(path)
        if language is None:
            continue
        uses = scan_shell.uses(path) if language == "sh" else scan_python.uses(path)
        nodes = LocalNodes() if path == script else wanted.nodes
        for use in uses:
            found = [*_of(use, top, wanted), *_installed(use, nodes)]
            findings.update(Finding(path, use.line, what) for what in found)
    return sorted(findings)


def _wanted(path: Path, top: Path) -> bool:
    inside = path.relative_to(top).parts
    hidden = any(part.startswith(".") or part == "results" for part in inside)
    return not hidden and path.is_file() and path.stat().st_size <= _LARGEST


def _language(path: Path) -> str | None:
    if path.suffix in {".sh", ".bash"}:
        return "sh"
    if path.suffix == ".py":
        return "py"
    try:
        with path.open("rb") as file:
            first = file.readline(200).decode("utf-8", "replace")
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror}") from error
    words = first.removeprefix("#!").replace("/", " ").split() if first.startswith("#!") else []
    if any(word in _SHELLS for word in words):
        return "sh"
    return "py" if any(word.startswith("python") for word in words) else None


def _installed(use: Use, nodes: Provider) -> Iterator[str]:
    """Yield which programs are missing where a use runs."""
    for program in use.programs:
        why = nodes.lacks(program)
        if why is not None:
            yield f"{program}: {why}"


def _booted(use: Use, wanted: Wanted) -> str | None:
    """Say why no node can have boot parameters, where a use needs one that can."""
    if use.boots is None:
        return None
    refused = []
    for name in [use.boots] if use.boots else wanted.words:
        try:
            wanted.nodes.check(name)
        except PlanError:
            continue
        why = wanted.nodes.unbootable(name)
        if why is None:
            return None
        refused.append(f"{name}: {why}")
    return f"boot parameters: {', '.join(refused)}" if refused else None


def _of(use: Use, top: Path, wanted: Wanted) -> Iterator[str]:
    """Yield what is wrong with a use."""
    images = wanted.images
    own = wanted.nodes.own_kernel
    yield from (one for one in use.problems if not (own and of_kernel(one)))
    unbootable = _booted(use, wanted)
    if unbootable is not None:
        yield unbootable
    if use.image is not None and not has_image(use.image, images):
        known = ", ".join((HOST_IMAGE, *images))
        yield (
            f"unknown image {use.image!r}, expected one of {known} (--image {use.image} has the"
            " host's files stand in for it)"
        )
    if use.script is not None:
        yield from _script(top / use.script, use.script)
    if use.variables is not None:
        yield from _variables(top / use.variables, use.variables, loop=use.loop)


def _script(path: Path, name: str) -> Iterator[str]:
    """Check a script that is launched; one that is not there may be written meanwhile."""
    if path.is_file():
        with path.open("rb") as file:
            if not file.read(2).startswith(b"#!"):
                yield f"{name}: has no #! line, so that nodes cannot start it"


def _variables(path: Path, name: str, *, loop: bool) -> Iterator[str]:
    """Check a file of variables; one that is not there may be written meanwhile."""
    if not path.is_file():
        return
    try:
        given = variables.read(path.read_text("utf-8"), name, json_text=path.suffix == ".json")
        if loop:
            variables.grid(variables.read_loop(given, name))
    except (OSError, UnicodeDecodeError) as error:
        yield f"{name}: cannot be read: {error}"
    except PlanError as error:
        yield str(error)
