"""Devices that are passed through are looked at before anything is built or booted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fake_pci import FakeHost

from tailtrim.errors import HostError
from tailtrim.laboratory.experiment import Experiment, Listener, guests
from tailtrim.laboratory.nodes.vm import image, pci
from tailtrim.laboratory.plan import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN = """\
name: passed
dut: {preset: router, node: vm}
boot: {kernel: trixie/amd64}
boots: 1
vm: {ports: {in: {pci: "03:00.0", cable: eth4}, out: {pci: "03:00.1", cable: eth5}}}
traffic: {rate_pps: 100, duration_s: 2}
"""


class Built(Exception):  # noqa: N818 - ends what would go on to boot
    """An image is asked for."""


@pytest.fixture
def experiment(tmp_path: Path) -> Iterator[Experiment]:
    plan = tmp_path / "plan.yml"
    plan.write_text(PLAN)
    loaded, runs = load(plan)
    with Experiment(tmp_path / "out", loaded, runs, resume=False) as made:
        yield made


@pytest.fixture
def recipes(monkeypatch: pytest.MonkeyPatch) -> list[image.Recipe]:
    asked: list[image.Recipe] = []

    def built(recipe: image.Recipe, told: Any) -> None:
        del told
        asked.append(recipe)
        raise Built

    monkeypatch.setattr(image, "built", built)
    return asked


def test_the_image_has_the_drivers_of_the_cards(
    experiment: Experiment,
    recipes: list[image.Recipe],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pci, "ROOT", FakeHost(tmp_path, monkeypatch).root)
    with pytest.raises(Built):
        guests.images_for(experiment, Listener())
    assert [recipe.drivers for recipe in recipes] == [("ixgbe",)]


def test_without_an_iommu_nothing_is_built(
    experiment: Experiment,
    recipes: list[image.Recipe],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pci, "ROOT", tmp_path / "nothing")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(HostError, match="no IOMMU"):
        guests.images_for(experiment, Listener())
    assert recipes == []
