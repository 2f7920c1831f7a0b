"""Publishing of an experiment as a release: :func:`release`."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.errors import MissingPackageError, OutputError, ReleaseError, Remedy
from tailtrim.publishing.release import (
    anonymising,
    checksums,
    crate,
    documents,
    readme,
    report,
    safe_files,
    signing,
)
from tailtrim.publishing.release.copying import Copy
from tailtrim.publishing.release.layout import (
    CITATION,
    CLAIMS,
    CRATE,
    EXPERIMENT,
    LICENSE,
    README,
    RECORD,
    SCHEMA,
    SOFTWARE,
)
from tailtrim.publishing.release.redaction import Redaction
from tailtrim.publishing.release.verifying import verify
from tailtrim.publishing.report import write_files
from tailtrim.results.drafts import draft_folder, settle
from tailtrim.results.experiments import RECORD as EXPERIMENT_RECORD
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_NEEDED = ("rocrate",)


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """Contents of a release.

    Args:
        captures: whether the captures of the runs are in it.
        anonymise: without addresses and payloads.
        license: the text of the licence; by default LICENSE in the folder of the experiment.
        citation: likewise CITATION.cff.
        claims: likewise claims.yml, which may be missing.
        wheel: the wheel of the version here, to be installed by readers.
        sign: the private key that signs.

    """

    captures: bool = True
    anonymise: bool = False
    license: Path | None = None
    citation: Path | None = None
    claims: Path | None = None
    wheel: Path | None = None
    sign: Path | None = None


def release(
    experiment: Path,
    out: Path,
    wanted: ReleaseOptions,
    told: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Make a release, verified, or nothing.

    Args:
        experiment: the directory of the experiment.
        out: where to; it must not exist, or be empty.
        wanted: the options of the release.
        told: is called with what is being done.

    Returns:
        Files of the experiment's folder that are not in it.

    Raises:
        ReleaseError: something is missing, or the result could not be verified.
        RunDirectoryError: it is not an experiment.
        MissingPackageError: the extra ``release`` is not installed.
        OutputError: ``out`` exists, or cannot be written.

    """
    write_files.require_pictures()
    _require()
    recorded(experiment)
    authored = documents.found(experiment, wanted.license, wanted.citation, wanted.claims)
    _look_at(wanted.wheel)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        error = OutputError(f"{out}: exists, and a release is made anew")
        error.add_note(Remedy("choose another {out}"))
        raise error
    try:
        with draft_folder(out) as draft:
            left_out = _made(experiment, draft, wanted, authored, told)
            told("verifying")
            _verified(draft)
            settle(draft, out)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror}") from error
    return left_out


def _made(
    experiment: Path,
    draft: Path,
    wanted: ReleaseOptions,
    authored: documents.Documents,
    told: Callable[[str], None],
) -> list[str]:
    told("copying")
    target = draft / EXPERIMENT
    target.mkdir()
    redaction = Redaction(safe_files.record(experiment / EXPERIMENT_RECORD)["plan"])
    if wanted.anonymise:
        told("anonymising")
    anonymous = anonymising.prepared(experiment, redaction) if wanted.anonymise else None
    copy = Copy(experiment, target, redaction, captures=wanted.captures)
    copy.make()
    if anonymous is not None:
        anonymising.anonymise(target, anonymous)
    for name, place in ((LICENSE, authored.license), (CITATION, authored.citation)):
        shutil.copyfile(place, draft / name)
    if authored.claims is not None:
        shutil.copyfile(authored.claims, draft / CLAIMS)
    if wanted.wheel is not None:
        (draft / SOFTWARE).mkdir()
        shutil.copyfile(wanted.wheel, draft / SOFTWARE / wanted.wheel.name)
    record = _record(draft, wanted, copy.left_out)
    (draft / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    told("drawing")
    report.write(draft)
    signed = wanted.sign is not None
    text = readme.text(draft, authored.cited, wanted.wheel, signed=signed)
    (draft / README).write_text(text, encoding="utf-8")
    if wanted.sign is not None:
        signing.put_signer(draft, wanted.sign)
    (draft / CRATE).write_text(crate.text(draft, authored.cited), encoding="utf-8")
    checksums.write(draft)
    if wanted.sign is not None:
        signing.sign(draft, wanted.sign)
    return copy.left_out


def _record(draft: Path, wanted: ReleaseOptions, left_out: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "name": recorded(draft / EXPERIMENT).name,
        "versions": _versions(),
        "captures": wanted.captures,
        "anonymised": wanted.anonymise,
        "signed": wanted.sign is not None,
        "left_out": list(left_out),
    }


def _versions() -> dict[str, str]:
    found = {"tailtrim": VERSION, "python": platform.python_version()}
    for name in ("jinja2", "numpy", "pyarrow"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _require() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        failure = MissingPackageError(f"a release needs {missing[0]}, which is not installed")
        failure.add_note("pip install 'tailtrim[release]'")
        raise failure


def _look_at(wheel: Path | None) -> None:
    if wheel is None:
        return
    if not wheel.is_file() or not wheel.name.startswith(f"tailtrim-{VERSION}-"):
        raise ReleaseError(f"{wheel}: expected the wheel of tailtrim {VERSION}")


def _verified(draft: Path) -> None:
    """Verify what was made.

    Raises:
        ReleaseError: it cannot be verified.

    """
    for level in verify(draft):
        if level.wrong:
            error = ReleaseError(f"the release would not hold ({level.name}): {level.wrong[0]}")
            measured = recorded(draft / EXPERIMENT).versions.get("tailtrim")
            if measured != VERSION:
                error.add_note(f"the experiment is of tailtrim {measured}, this is {VERSION}")
            raise error
