"""A release verified, level by level: :func:`verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.release import claimed, figures, files, grid, numbers, rerun, validity
from tailtrim.release.level import Level
from tailtrim.release.opened import Opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.release.rerun import Rerun


def verify(
    root: Path,
    *,
    signers: Path | None = None,
    again: Rerun | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> list[Level]:
    """Verify a release with the version here.

    Args:
        root: where it is. Nothing is written there.
        signers: the reader's list of keys that may have signed it, as ``ssh-keygen`` has it.
        again: what is to be measured again; by default nothing is.
        told: is called with what is being done.

    Returns:
        The levels: files, grid, numbers, figures, validity, claims, rerun.

    Raises:
        ReleaseError: it is not a release, or has what leads out of its folder.
        HostError: this host cannot measure runs again.
        OutputError: their results cannot be written.

    """
    release = Opened(root)
    levels: list[Level] = []
    steps: list[tuple[str, Callable[[], Level]]] = [
        ("files", lambda: files.check(release, signers)),
        ("grid", lambda: grid.check(release)),
        ("numbers", lambda: numbers.check(release, lambda run: told(f"numbers: {run}"))),
        ("figures", lambda: figures.check(release)),
        ("validity", lambda: validity.check(release)),
        ("claims", lambda: claimed.check(release)),
    ]
    for name, step in steps:
        told(name)
        levels.append(step())
    if again is None:
        asked = "nothing was measured again"
        levels.append(Level("rerun", asked, skipped=(asked,), without=True))
    else:
        levels.append(rerun.check(release, again, told))
    return levels
