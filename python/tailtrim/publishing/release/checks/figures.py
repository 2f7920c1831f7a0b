"""The level ``figures``: the values of all figures, derived again from the tables of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import PicturesError, TailtrimError
from tailtrim.publishing.release import report
from tailtrim.publishing.release.checks import CheckResult
from tailtrim.publishing.release.layout import EARLIER_REPORT, REPORT

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.publishing.release.untrusted_release import UntrustedRelease

#: Pages and drawings are no values: their bytes depend on the versions of what draws them.
_VALUES = (".csv", ".json", ".md")


def check(release: UntrustedRelease) -> CheckResult:
    """Compare the tables and values in the report with those that the runs give here."""
    try:
        derived = report.values(release.root)
    except PicturesError as error:
        return CheckResult("figures", str(error), skipped=(str(error),), without=True)
    except TailtrimError as error:
        return CheckResult("figures", "cannot be derived again", (str(error),))
    folders = [one for one in (REPORT, EARLIER_REPORT) if _of(release, one)] or [REPORT]
    there = {name for one in folders for name in _of(release, one) if name.endswith(_VALUES)}
    expected = {f"{one}/{name}": derived[name] for one in folders for name in derived}
    wrong = [f"{name}: missing" for name in sorted(expected.keys() - there)]
    wrong += [f"{name}: not of the report" for name in sorted(there - expected.keys())]
    for name in sorted(there & expected.keys()):
        found = _first_difference(release.root / name, expected[name])
        wrong += [] if found is None else [f"{name}: {found}"]
    told = f"values of {sum(name.endswith('.csv') for name in derived):,} figures"
    return CheckResult("figures", told, tuple(wrong))


def _of(release: UntrustedRelease, folder: str) -> list[str]:
    return [name for name in release.files if name.startswith(f"{folder}/")]


def _first_difference(place: Path, expected: bytes) -> str | None:
    found = place.read_bytes()
    if found == expected:
        return None
    released, derived = found.decode(errors="replace").splitlines(), expected.decode().splitlines()
    for number, (one, other) in enumerate(zip(released, derived, strict=False), 1):
        if one != other:
            return f"line {number}: {one!r} in the release, {other!r} derived again"
    return f"{len(released):,} lines in the release, {len(derived):,} derived again"
