"""Verification of a release, level by level: :func:`verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.release.checks import (
    DAMAGED,
    CheckResult,
    claims,
    figures,
    files,
    grid,
    numbers,
    rerun,
    validity,
)
from tailtrim.publishing.release.untrusted_release import UntrustedRelease

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from tailtrim.publishing.release.checks.rerun import Rerun

#: In their order.
LEVELS = ("files", "grid", "numbers", "figures", "validity", "claims", "rerun")


def verify(
    root: Path,
    *,
    signers: Path | None = None,
    again: Rerun | None = None,
    only: Collection[str] = (),
    told: Callable[[str], None] = lambda _: None,
) -> list[CheckResult]:
    """Verify a release with the version here.

    Args:
        root: where it is. Nothing is written there.
        signers: the reader's list of keys that may have signed it, as ``ssh-keygen`` has it.
        again: runs to measure again; by default none.
        only: the levels that are checked; by default all. The others are skipped.
        told: is called with what is being done.

    Returns:
        The levels, :data:`LEVELS`.

    Raises:
        ValueError: a level is unknown.
        ReleaseError: it is not a release, or has what leads out of its folder.
        HostError: this host cannot measure runs again.
        OutputError: their results cannot be written.

    """
    unknown = [name for name in only if name not in LEVELS]
    if unknown:
        raise ValueError(f"unknown level {unknown[0]!r}, expected one of {', '.join(LEVELS)}")
    release = UntrustedRelease(root)
    steps: dict[str, Callable[[], CheckResult]] = {
        "files": lambda: files.check(release, signers),
        "grid": lambda: grid.check(release),
        "numbers": lambda: numbers.check(release, lambda run: told(f"numbers: {run}")),
        "figures": lambda: figures.check(release),
        "validity": lambda: validity.check(release),
        "claims": lambda: claims.check(release),
        "rerun": lambda: (
            _skipped("rerun", "nothing was measured again")
            if again is None
            else rerun.check(release, again, told)
        ),
    }
    levels = []
    for name in LEVELS:
        if only and name not in only:
            levels.append(_skipped(name, "was not asked for"))
            continue
        told(name)
        try:
            levels.append(steps[name]())
        except RunDirectoryError as error:
            levels.append(CheckResult(name, "the runs cannot be read", wrong=(str(error),)))
        except (OSError, *DAMAGED) as error:
            levels.append(CheckResult(name, "cannot be checked", wrong=(repr(error),)))
    return levels


def _skipped(name: str, why: str) -> CheckResult:
    return CheckResult(name, why, skipped=(why,), without=True)
