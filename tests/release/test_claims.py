"""Claims of a release are judged by its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import ReleaseError
from tailtrim.publishing.release import ReleaseOptions, Verdict, release, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.publishing.release import CheckResult

pytestmark = pytest.mark.long

HOLDS = "- claim: The forwarder is fast\n  expect: max < 1s\n"
FAILS = "- claim: It takes no time\n  expect: p50 < 1ns\n"
OPEN = "- claim: The tail is short\n  expect: p99.9999 < 1s\n"


def judged(root: Path) -> CheckResult:
    (level,) = (one for one in verify(root, only=("claims",)) if one.name == "claims")
    return level


@pytest.fixture
def claimed(copied: Path, sealed: Callable[[Path], None]) -> Callable[[str], Path]:
    """Return what gives the release other claims."""

    def with_claims(text: str) -> Path:
        (copied / "claims.yml").write_text(text, "utf-8")
        sealed(copied)
        return copied

    return with_claims


def test_claims_that_hold_pass(claimed: Callable[[str], Path]) -> None:
    level = judged(claimed(HOLDS))
    assert level.verdict == Verdict.PASS
    assert level.told == "1 of 1 claims hold"
    assert level.notes[0].startswith("The forwarder is fast: ")


def test_claims_that_fail_or_are_open_are_told_with_the_value(
    claimed: Callable[[str], Path],
) -> None:
    level = judged(claimed(HOLDS + FAILS + OPEN))
    assert level.verdict == Verdict.FAIL
    assert level.told == "1 of 3 claims hold"
    (wrong,), (undecided,) = level.wrong, level.undecided
    assert wrong.startswith("It takes no time: ")
    assert "below 1 ns" in wrong
    assert undecided.startswith("The tail is short: ")


def test_a_claim_of_no_run_cannot_be_judged(claimed: Callable[[str], Path]) -> None:
    level = judged(claimed(HOLDS.replace("  expect", "  where: {rate: 7}\n  expect")))
    assert level.verdict == Verdict.FAIL
    assert level.told == "cannot be judged"


def test_a_release_whose_claims_fail_is_not_made(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "claims.yml").write_text(FAILS, "utf-8")
    with pytest.raises(ReleaseError, match="It takes no time"):
        release(experiment, tmp_path / "out", ReleaseOptions(claims=tmp_path / "claims.yml"))
    assert not (tmp_path / "out").exists()
