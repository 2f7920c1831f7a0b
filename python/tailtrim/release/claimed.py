"""The level ``claims``: whether what is claimed of the numbers holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import claims
from tailtrim.claims import Conclusion
from tailtrim.errors import TailtrimError
from tailtrim.release.layout import CLAIMS
from tailtrim.release.level import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.claims import Judgement
    from tailtrim.release.opened import Opened


def check(release: Opened) -> Level:
    """Judge each claim by the data of the release."""
    place = release.root / CLAIMS
    if not place.is_file():
        told = f"there is no {CLAIMS}"
        return Level("claims", told, skipped=(told,), without=True)
    try:
        judged = claims.judge_all(claims.read(place), release.experiment)
    except TailtrimError as error:
        return Level("claims", "cannot be judged", (str(error),))
    holds, fails, open_ = (
        _texts(judged, verdict)
        for verdict in (Conclusion.HOLDS, Conclusion.FAILS, Conclusion.UNDECIDED)
    )
    count = f"{len(holds)} of {len(judged)} claims hold"
    return Level("claims", count, fails, notes=holds, undecided=open_)


def _texts(judged: Sequence[Judgement], verdict: Conclusion) -> tuple[str, ...]:
    return tuple(f"{one.claim}: {one.text}" for one in judged if one.verdict is verdict)
