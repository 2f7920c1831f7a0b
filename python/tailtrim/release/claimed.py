"""The level ``claims``: whether what is claimed of the numbers holds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailtrim.errors import TailtrimError
from tailtrim.release.layout import CLAIMS
from tailtrim.release.level import Level

if TYPE_CHECKING:
    from tailtrim.release.opened import Opened

_HOLDS, _FAILS = "holds", "fails"


def check(release: Opened) -> Level:
    """Judge each claim by the data of the release."""
    place = release.root / CLAIMS
    if not place.is_file():
        told = f"there is no {CLAIMS}"
        return Level("claims", told, skipped=(told,), without=True)
    claims = import_module("tailtrim.claims")
    try:
        judged = [claim.judge(release.experiment) for claim in claims.read(place)]
    except TailtrimError as error:
        return Level("claims", "cannot be judged", (str(error),))
    holds, fails = (_texts(judged, verdict) for verdict in (_HOLDS, _FAILS))
    undecided = tuple(one.text for one in judged if one.verdict not in (_HOLDS, _FAILS))
    count = f"{len(holds)} of {len(judged)} claims hold"
    return Level("claims", count, fails, notes=holds, undecided=undecided)


def _texts(judged: list[Any], verdict: str) -> tuple[str, ...]:
    return tuple(one.text for one in judged if one.verdict == verdict)
