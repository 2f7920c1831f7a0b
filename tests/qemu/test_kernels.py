"""Findings of the linter by version agree with the behaviour of Debian's kernels of four versions.

Each version is booted once, and once more as its real-time flavour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from guest import machine

if TYPE_CHECKING:
    from guest import Boot

SYSTEM = "/sys/devices/system/cpu"
# Words that came or went with one of the versions, that are of another architecture, or that the
# kernel searches for in the whole line.
LINE = (
    "isolcpus=2-N nohz_full=all preempt=none nosmap powersave=off spectre_v2=off nopti "
    "split_lock_detect=off nokaslr sched_debug noht"
)


@dataclass(frozen=True)
class Expected:
    """Expected behaviour of a kernel with the line."""

    handed_on: str
    isolated: str
    nohz_full: str
    # Words of Linux that this build of it does not take: only its log tells the linter.
    without: str = ""


NEVER = "powersave=off nokaslr noht"
SEARCHED = "spectre_v2=off split_lock_detect=off"
OLD = f"{NEVER} {SEARCHED} nopti"
V5_10 = Expected(f"{OLD} isolcpus=2-N nohz_full=all preempt=none", "", "")
V6_1 = Expected(f"{OLD} nosmap sched_debug", "2-3", "1-3")
V6_12 = Expected(f"{NEVER} {SEARCHED} nosmap sched_debug", "2-3", "1-3")
V7_2 = Expected(f"{NEVER} nosmap sched_debug preempt=none", "2-3", "1-3")


def without_preempt(known: Expected) -> Expected:
    """Return the same for a kernel whose preemption model is fixed: real-time, up to 6.12."""
    words = f"{known.handed_on} preempt=none"
    return Expected(words, known.isolated, known.nohz_full, "preempt=none")


KERNELS = {
    "bullseye-amd64": V5_10,
    "bullseye-rt-amd64": V5_10,
    "amd64": V6_1,
    "rt-amd64": without_preempt(V6_1),
    "trixie-amd64": V6_12,
    "trixie-rt-amd64": without_preempt(V6_12),
    "sid-amd64": V7_2,
    "sid-rt-amd64": V7_2,
}


@pytest.fixture(scope="module", params=KERNELS)
def booted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Boot, Expected]:
    name: str = request.param
    boot = machine(name, tmp_path_factory.mktemp(name)).boot(LINE)
    return boot, KERNELS[name]


def shown(boot: Boot, name: str) -> str:
    """Return the list of a file; a kernel that is built without has no such file."""
    text = boot.file(f"{SYSTEM}/{name}")
    return "" if text.startswith("cat: ") else text


def test_words_are_taken_as_the_sources_say(booted: tuple[Boot, Expected]) -> None:
    boot, expected = booted
    assert boot.handed_on == set(expected.handed_on.split())
    assert shown(boot, "isolated") == expected.isolated
    assert shown(boot, "nohz_full") == expected.nohz_full


def test_the_linter_predicts_it(booted: tuple[Boot, Expected]) -> None:
    boot, expected = booted
    made = boot.audit["prediction"]
    predicted = {*made["to_init"], *made["to_environment"]}
    assert predicted == boot.handed_on - set(expected.without.split())
    assert made["isolated"] == shown(boot, "isolated")
    assert made["nohz_full"] == shown(boot, "nohz_full")


def test_words_that_do_nothing_are_told_and_no_others(booted: tuple[Boot, Expected]) -> None:
    boot, _ = booted
    # Words that the kernel searches for in the whole line work although they are handed on.
    work = set(SEARCHED.split()) | {"nopti", "nokaslr"}
    told = {one["word"] for one in boot.audit["findings"] if one["severity"] != "note"}
    assert told >= boot.handed_on - work
    assert not told & work
