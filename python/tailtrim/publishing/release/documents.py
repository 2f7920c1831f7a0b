"""Documents that only the authors of a release can write: its licence, citation and claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from tailtrim.errors import ReleaseError, Remedy
from tailtrim.laboratory.plan import bounded_yaml
from tailtrim.publishing.release import safe_files
from tailtrim.publishing.release.layout import CITATION, CLAIMS, LICENSE

if TYPE_CHECKING:
    from pathlib import Path

#: Required keys of a citation file (Citation File Format 1.2.0).
_NEEDED = ("cff-version", "message", "title", "authors")


@dataclass(frozen=True, slots=True)
class Documents:
    """The files of the authors; ``cited`` is what the citation file says."""

    license: Path
    citation: Path
    claims: Path | None
    cited: dict[str, Any]


def found(
    experiment: Path, licence: Path | None, citation: Path | None, claims: Path | None
) -> Documents:
    """Return the files that are given, or else lie in the folder of the experiment.

    Raises:
        ReleaseError: one is missing or cannot be read; all that are missing are told.

    """
    given = {LICENSE: licence, CITATION: citation}
    places = {name: place or experiment / name for name, place in given.items()}
    missing = [place for place in places.values() if not place.is_file()]
    if missing:
        names = " and ".join(map(str, missing))
        error = ReleaseError(f"{names}: missing, and others cannot use or cite data without")
        for name in (name for name, place in places.items() if place in missing):
            error.add_note(_REMEDIES[name])
        raise error
    there = claims or experiment / CLAIMS
    if claims is not None and not claims.is_file():
        raise ReleaseError(f"{claims}: missing")
    cited = citation_of(places[CITATION])
    return Documents(places[LICENSE], places[CITATION], there if there.is_file() else None, cited)


_REMEDIES = {
    LICENSE: Remedy(
        "{license} names the text of the licence of the data, such as that of CC BY 4.0; or put it"
        " into the experiment's folder as LICENSE"
    ),
    CITATION: Remedy(
        "{citation} names a citation file (citation-file-format.github.io) with title and authors;"
        " or put it into the experiment's folder as CITATION.cff"
    ),
}


def citation_of(place: Path) -> dict[str, Any]:
    """Return what a citation file says.

    Raises:
        ReleaseError: it is not one.

    """
    try:
        root = bounded_yaml.compose(safe_files.text(place))
        cited: Any = None if root is None else bounded_yaml.data(root)
    except yaml.YAMLError as error:
        raise ReleaseError(f"{place}: not YAML: {' '.join(str(error).split())}") from error
    lacking = [key for key in _NEEDED if not isinstance(cited, dict) or not cited.get(key)]
    if lacking:
        raise ReleaseError(f"{place}: lacks {', '.join(lacking)}, expected a CITATION.cff")
    if not isinstance(cited["authors"], list) or not all(map(_named, cited["authors"])):
        told = "each of authors needs family-names, or the name of an organisation"
        raise ReleaseError(f"{place}: {told}")
    return dict(cited)


def _named(author: Any) -> bool:
    return isinstance(author, dict) and any(author.get(key) for key in ("family-names", "name"))
