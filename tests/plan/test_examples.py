"""Example plans are found by name, wherever tailtrim is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory.plan import examples, load

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_all_plans_of_the_checkout_are_in_the_package() -> None:
    assert examples.names() == sorted(place.stem for place in EXAMPLES.glob("*.yml"))


@pytest.mark.parametrize("name", examples.names())
def test_an_example_is_a_plan_of_its_name(name: str) -> None:
    place = examples.located(Path(name))
    assert place.read_text() == (EXAMPLES / f"{name}.yml").read_text()
    plan, runs = load(place)
    assert plan.name == name
    assert runs


def test_a_file_goes_before_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    assert examples.located(Path("demo")) != Path("demo")
    Path("demo").rmdir()
    Path("demo").write_text("name: mine")
    assert examples.located(Path("demo")) == Path("demo")


def test_an_unknown_name_is_told_with_those_there_are() -> None:
    with pytest.raises(PlanError, match=r"demoo: no such .*busy-forwarder, cont"):
        examples.located(Path("demoo"))


@pytest.mark.parametrize("plan", ["demoo.yml", "folder/demo"])
def test_a_path_is_no_name(plan: str) -> None:
    assert examples.located(Path(plan)) == Path(plan)
