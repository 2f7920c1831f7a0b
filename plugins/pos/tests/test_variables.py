"""Variables of an allocation: the grid of runs as pos numbers it, and how values are printed."""

from __future__ import annotations

import pytest

from tailtrim.errors import PlanError
from tailtrim_pos import variables


def test_runs_are_numbered_by_the_length_of_names_and_then_their_bytes() -> None:
    loop: dict[str, list[object]] = {"sig_alg": ["a", "b"], "kem_alg": ["x", "y"], "tc": [1, 2]}
    runs = variables.grid(loop)
    assert [list(run) for run in runs] == [["tc", "kem_alg", "sig_alg"]] * 8
    assert runs[:3] == [
        {"tc": 1, "kem_alg": "x", "sig_alg": "a"},
        {"tc": 1, "kem_alg": "x", "sig_alg": "b"},
        {"tc": 1, "kem_alg": "y", "sig_alg": "a"},
    ]
    assert runs[4]["tc"] == 2


def test_the_length_of_a_name_is_that_of_its_bytes() -> None:
    assert list(variables.grid({"é": [1], "zz": [2], "aa": [3]})[0]) == ["aa", "zz", "é"]


def test_without_loop_variables_there_is_one_run() -> None:
    assert variables.grid({}) == [{}]


def test_ranges_are_written_out() -> None:
    given = variables.read("rate: [10000, 20000, ..., 300000]\nback: [3, 2, ..., 0]\n", "loop.yml")
    loop = variables.read_loop(given, "loop.yml")
    assert loop["rate"] == list(range(10_000, 300_001, 10_000))
    assert loop["back"] == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rate: 5", "rate: expected a list"),
        ("rate: []", "rate: expected a list"),
        ("rate: [1, 3, ..., 8]", "from 1 .*steps of 2 .*never reaches 8"),
        ("rate: [1, ..., 8]", r"\[first, second, \.\.\., last\]"),
        ("rate: [1, 2, ..., 8, 9]", r"\[first, second, \.\.\., last\]"),
        ("rate: [1, 1, ..., 8]", "never reaches 8"),
        ("- 1", "expected names with values"),
        ("rate: [1", "cannot be read"),
    ],
)
def test_a_loop_that_makes_no_sense_is_told(text: str, told: str) -> None:
    with pytest.raises(PlanError, match=f"^loop.yml: .*{told}"):
        variables.read_loop(variables.read(text, "loop.yml"), "loop.yml")


def test_too_many_runs_are_told() -> None:
    with pytest.raises(PlanError, match=r"1,000,000 runs, .* 100,000"):
        variables.grid({"a": list(range(1000)), "b": list(range(1000))})


def test_maps_and_lists_are_printed_as_python_writes_them() -> None:
    nested = {"moongen": {"repo": "https://host/x", "on": True, "none": None}, "ports": ["a", 1]}
    assert variables.printed(variables.look_up(nested, "moongen/repo")) == "https://host/x"
    assert variables.printed(nested["moongen"]) == (
        "{'repo': 'https://host/x', 'on': True, 'none': None}"
    )
    assert variables.printed(variables.look_up(nested, "ports/1")) == "1"
    assert variables.printed(nested["ports"]) == "['a', 1]"


@pytest.mark.parametrize("path", ["nothing", "moongen/nothing", "moongen/repo/deeper", "ports/2"])
def test_a_variable_that_is_not_there_is_not_found(path: str) -> None:
    with pytest.raises(KeyError):
        variables.look_up({"moongen": {"repo": 1}, "ports": [1, 2]}, path)
