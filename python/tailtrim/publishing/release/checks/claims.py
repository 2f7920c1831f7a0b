"""The level ``claims``: each claim about the numbers, judged by the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import TailtrimError
from tailtrim.publishing import claims
from tailtrim.publishing.claims import Conclusion
from tailtrim.publishing.release.checks import CheckResult
from tailtrim.publishing.release.layout import CLAIMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.publishing.claims import Judgement
    from tailtrim.publishing.release.untrusted_release import UntrustedRelease


def check(release: UntrustedRelease) -> CheckResult:
    """Judge each claim by the data of the release."""
    place = release.root / CLAIMS
    if not place.is_file():
        told = f"there is no {CLAIMS}"
        return CheckResult("claims", told, skipped=(told,), without=True)
    try:
        judged = claims.judge_all(claims.read(place), release.experiment)
    except TailtrimError as error:
        return CheckResult("claims", "cannot be judged", (str(error),))
    holds, fails, open_ = (
        _texts(judged, verdict)
        for verdict in (Conclusion.HOLDS, Conclusion.FAILS, Conclusion.UNDECIDED)
    )
    count = f"{len(holds)} of {len(judged)} claims hold"
    return CheckResult("claims", count, fails, notes=holds, undecided=open_)


def _texts(judged: Sequence[Judgement], verdict: Conclusion) -> tuple[str, ...]:
    return tuple(f"{one.claim}: {one.text}" for one in judged if one.verdict is verdict)
