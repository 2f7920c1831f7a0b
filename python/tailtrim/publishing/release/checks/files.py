"""The level ``files``: checksums, the signature, files that the crate's metadata name, packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError, ReleaseError
from tailtrim.laboratory.experiment import packages
from tailtrim.laboratory.nodes.environment import sum_of
from tailtrim.publishing.release import checksums, safe_files, signing
from tailtrim.publishing.release.checks import CheckResult
from tailtrim.publishing.release.layout import (
    CITATION,
    CLAIMS,
    CRATE,
    EXPERIMENT,
    LICENSE,
    README,
    RECORD,
    REPORT,
    SIGNATURE,
    SIGNERS,
    SOFTWARE,
    SUMS,
    WEBSITE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tailtrim.publishing.release.untrusted_release import UntrustedRelease

_NEEDED = (README, LICENSE, CITATION, CRATE, RECORD)
_KNOWN = {*_NEEDED, CLAIMS, SUMS, SIGNATURE, SIGNERS, EXPERIMENT, REPORT, SOFTWARE, *WEBSITE}


def check(release: UntrustedRelease, signers: Path | None) -> CheckResult:
    """Check the files; ``signers`` is the reader's list of keys.

    Raises:
        ReleaseError: there are no checksums, or they name what is outside.

    """
    wrong = checksums.wrong(release.root)
    there = set(release.files)
    wrong += [f"{name}: missing" for name in _NEEDED if name not in there]
    wrong += [
        f"{name}: not of a release" for name in release.files if name.split("/")[0] not in _KNOWN
    ]
    if CRATE in there:
        wrong += _of_crate(release)
    wrong += _of_packages(release)
    notes, skipped = [], []
    if SIGNATURE in there:
        try:
            signed = signing.signed(release.root, signers)
            of = "of the list given" if signed.trusted else "of the release: compare it"
            notes.append(f"signed by the key {signed.fingerprint}, {of}")
        except ReleaseError as error:
            wrong.append(str(error))
        except HostError as error:
            skipped.append(f"signature: {error}")
    elif release.record.get("signed") or signers is not None:
        wrong.append(f"{SIGNATURE}: missing")
    else:
        skipped.append("signature: there is none")
    told = f"{len(release.files):,} files"
    return CheckResult("files", told, tuple(dict.fromkeys(wrong)), tuple(skipped), tuple(notes))


def _of_crate(release: UntrustedRelease) -> list[str]:
    """Return what the crate's metadata say that is not so."""
    graph = safe_files.record(release.root / CRATE).get("@graph")
    entities = [one for one in graph if isinstance(one, dict)] if isinstance(graph, list) else []
    sums, there = checksums.read(release.root), set(release.files)
    wrong, named = [], set()
    for entity in entities:
        name = entity.get("@id")
        if not isinstance(name, str) or "File" not in _list(entity.get("@type")):
            continue
        named.add(name)
        if not safe_files.inside(name) or name not in there:
            wrong.append(f"{CRATE}: {name}: there is no such file")
        elif entity.get("sha256") != sums.get(name):
            wrong.append(f"{CRATE}: {name}: its sha256 is not that of {SUMS}")
    without = {CRATE, SUMS, SIGNATURE}
    wrong += [f"{CRATE}: lacks {name}" for name in release.files if name not in named | without]
    return wrong


def _of_packages(release: UntrustedRelease) -> list[str]:
    """Return what is wrong with the lists of the nodes' packages: missing, changed, of no node."""
    named = dict(_lists(release))
    there = {name for name in release.files if name.startswith(f"{EXPERIMENT}/{packages.FOLDER}/")}
    found = [f"{name}: missing, the packages of {named[name][0]}" for name in named.keys() - there]
    found += [f"{name}: the packages of no node" for name in there - named.keys()]
    for name in named.keys() & there:
        node, told = named[name]
        try:
            same = sum_of(safe_files.text(release.root / name)) == told
        except ReleaseError:
            same = False
        if not same:
            found.append(f"{name}: not the packages of {node}, their sum is another one")
    return sorted(found)


def _lists(release: UntrustedRelease) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each list that the records name, with a node and the sum that it has there."""
    for environments in (release.told.get("environment"), *_nodes_of_runs(release)):
        for node, told in environments.items() if isinstance(environments, dict) else ():
            name = packages.file_of(told) if isinstance(told, dict) else None
            if name is not None:
                yield f"{EXPERIMENT}/{name}", (node, told["packages"])


def _nodes_of_runs(release: UntrustedRelease) -> Iterator[Any]:
    for run in release.runs:
        place = release.place / run / "nodes.json"
        if place.is_file():
            try:
                yield safe_files.record(place).get("nodes")
            except ReleaseError:
                # That it cannot be read, the level `validity` says.
                continue


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
