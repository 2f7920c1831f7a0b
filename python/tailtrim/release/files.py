"""The level ``files``: checksums, the signature, what the crate's metadata name, packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError, ReleaseError
from tailtrim.release import checksums, installed, signing, tree
from tailtrim.release.layout import (
    CITATION,
    CLAIMS,
    CRATE,
    EXPERIMENT,
    INDEX,
    LICENSE,
    README,
    RECORD,
    SIGNATURE,
    SIGNERS,
    SITE,
    SOFTWARE,
    SUMS,
)
from tailtrim.release.level import Level

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.release.opened import Opened

_NEEDED = (README, LICENSE, CITATION, CRATE, RECORD, INDEX)
_KNOWN = {*_NEEDED, CLAIMS, SUMS, SIGNATURE, SIGNERS, EXPERIMENT, SITE, SOFTWARE}


def check(release: Opened, signers: Path | None) -> Level:
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
    wrong += installed.wrong(release)
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
    return Level("files", told, tuple(dict.fromkeys(wrong)), tuple(skipped), tuple(notes))


def _of_crate(release: Opened) -> list[str]:
    """Return what the crate's metadata say that is not so."""
    graph = tree.record(release.root / CRATE).get("@graph")
    entities = [one for one in graph if isinstance(one, dict)] if isinstance(graph, list) else []
    sums, there = checksums.read(release.root), set(release.files)
    wrong, named = [], set()
    for entity in entities:
        name = entity.get("@id")
        if not isinstance(name, str) or "File" not in _list(entity.get("@type")):
            continue
        named.add(name)
        if not tree.inside(name) or name not in there:
            wrong.append(f"{CRATE}: {name}: there is no such file")
        elif entity.get("sha256") != sums.get(name):
            wrong.append(f"{CRATE}: {name}: its sha256 is not that of {SUMS}")
    without = {CRATE, SUMS, SIGNATURE}
    wrong += [f"{CRATE}: lacks {name}" for name in release.files if name not in named | without]
    return wrong


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
