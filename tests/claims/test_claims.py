"""Claims are judged by intervals, values and comparisons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from swept_experiment import experiment_of, latencies, swept

from tailtrim.errors import PlanError
from tailtrim.publishing import claims
from tailtrim.results.experiments import RecordedExperiment, recorded
from tailtrim.student_t import critical

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> RecordedExperiment:
    """The forwarder and the wire at three rates, 300 packets each; none is lost."""
    return recorded(experiment_of(tmp_path_factory.mktemp("swept"), swept()))


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> RecordedExperiment:
    """Two devices at two rates, 3,000 packets each: enough to compare them."""
    runs = [
        (device, rate, latencies(base_ns + rate // 10, 3_000))
        for device, base_ns in (("fast", 3_000), ("slow", 30_000))
        for rate in (10_000, 20_000)
    ]
    place = experiment_of(tmp_path_factory.mktemp("longer"), runs, vary_device=True)
    return recorded(place)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> RecordedExperiment:
    """The forwarder three times at one rate, with medians of 3.25, 3.35 and 3.45 µs; one loses."""
    lossy = latencies(3_200)
    lossy[100:103] = [None] * 3
    every = [latencies(3_000), latencies(3_100), lossy]
    runs = [("forward", 10_000, one) for one in every]
    place = experiment_of(tmp_path_factory.mktemp("repeated"), runs, repetitions=(0, 1, 2))
    return recorded(place)


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Judge a claim, given its keys as YAML."""

    def judge(experiment: RecordedExperiment, *lines: str) -> tuple[str, str]:
        keys = "".join(f"  {line}\n" for line in lines)
        (tmp_path / "claims.yml").write_text(f"- claim: it is so\n{keys}", encoding="utf-8")
        (claim,) = claims.read(tmp_path / "claims.yml")
        found = claim.judge(experiment)
        assert found.claim == "it is so"
        return found.verdict, found.text

    return judge


@pytest.mark.parametrize(
    ("expect", "verdict"),
    [
        ("median < 50us", "holds"),
        ("median < 1us", "fails"),
        # Of 300 packets no bound above this quantile is known.
        ("p99.99 < 50us", "not decided"),
        ("median > 1us", "holds"),
        ("median >= 50us", "fails"),
        ("mean < 50us", "holds"),
        ("max < 50us", "holds"),
        ("max > 50us", "fails"),
        ("adjusted median < 50us", "holds"),
        ("loss < 5%", "holds"),
        ("loss < 0.01%", "not decided"),
        ("median = 4.24 us ± 0.01 us", "holds"),
        ("median = 4.24 us +- 10 ns", "holds"),
        ("median = 4.24 us +- 9 ns", "fails"),
        ("median = 4.3 us ± 0.01 us", "fails"),
        # 4.25 µs is printed as either.
        ("median prints 4.2 us", "holds"),
        ("median prints 4.3 us", "holds"),
        ("median prints 4.4 us", "fails"),
        ("median prints 4.24 us", "fails"),
        ("median prints 4 us", "holds"),
        ("median prints 4250 ns", "holds"),
        ("max prints 24.5 us", "fails"),
        ("loss prints 0.0 %", "holds"),
        ("loss prints 0.1 %", "fails"),
        ("samples = 300", "holds"),
        ("samples >= 1,000", "fails"),
        ("lost = 0", "holds"),
        ("lost > 0", "fails"),
    ],
)
def test_verdicts_of_one_run(
    experiment: RecordedExperiment,
    judged: Callable[..., tuple[str, str]],
    expect: str,
    verdict: str,
) -> None:
    found, text = judged(experiment, "where: {rate: 10000}", f"expect: {expect}")
    assert (found, "rate=10000" in text) == (verdict, True), text


def test_the_sentence_has_value_interval_and_what_is_expected(
    experiment: RecordedExperiment, judged: Callable[..., tuple[str, str]]
) -> None:
    _, text = judged(experiment, "where: {rate: 10000}", "expect: median < 50us")
    for fact in (
        "median of forward rate=10000",
        "is 4.25 µs (4.22 to 4.28)",
        "95 % confidence",
        "below 50.0 µs",
    ):
        assert fact in text


def test_a_higher_confidence_than_that_of_the_intervals_decides_nothing(
    experiment: RecordedExperiment, judged: Callable[..., tuple[str, str]]
) -> None:
    lines = ("where: {rate: 10000}", "expect: median < 50us")
    assert judged(experiment, *lines, "confidence: 0.9")[0] == "holds"
    found, text = judged(experiment, *lines, "confidence: 0.99")
    assert found == "not decided"
    for fact in ("0.95 confidence", "0.99 is asked"):
        assert fact in text


def test_a_claim_is_about_each_combination(
    experiment: RecordedExperiment, judged: Callable[..., tuple[str, str]]
) -> None:
    # Medians are 4.25, 5.25 and 7.25 µs.
    found, text = judged(experiment, "expect: median < 10us")
    assert found == "holds"
    assert text.endswith("(likewise the other 2 combinations)")
    found, text = judged(experiment, "expect: median < 6us")
    assert found == "fails"
    assert "rate=40000" in text
    assert text.endswith("(1 of 3 combinations)")
    assert judged(experiment, "where: {rate: [10000, 20000]}", "expect: median < 6us")[0] == "holds"
    assert judged(experiment, "expect: samples = 300")[0] == "holds"


def test_repetitions_are_judged_together(
    repeated: RecordedExperiment, judged: Callable[..., tuple[str, str]]
) -> None:
    found, text = judged(repeated, "expect: median < 4us")
    assert found == "holds"
    # Geometric mean of 3.25, 3.35 and 3.45 µs; t of two degrees of freedom is 4.303.
    for fact in ("is 3.35 µs (3.11 to 3.61)", "95 % confidence", "over 3 runs"):
        assert fact in text
    # Each run alone is below, but with the spread of runs it could be more.
    assert judged(repeated, "expect: median < 3.5us")[0] == "not decided"
    assert judged(repeated, "expect: median < 3us")[0] == "fails"
    assert judged(repeated, "where: {repetition: 0}", "expect: median < 3.5us")[0] == "holds"
    # Three of 900 packets.
    found, text = judged(repeated, "expect: loss < 2%")
    assert (found, "3 of 900 packets" in text) == ("holds", True)
    assert judged(repeated, "expect: max < 24us")[0] == "holds"


def test_equal_repetitions_are_no_more_certain_than_their_own_intervals(
    tmp_path: Path, judged: Callable[..., tuple[str, str]]
) -> None:
    runs = [("forward", 10_000, latencies(3_000))] * 2
    equal = recorded(experiment_of(tmp_path, runs, repetitions=(0, 1)))
    _, text = judged(equal, "expect: median < 50us")
    assert "is 3.25 µs (3.22 to 3.28)" in text


def test_published_values_are_those_of_each_repetition(
    repeated: RecordedExperiment, judged: Callable[..., tuple[str, str]]
) -> None:
    found, text = judged(repeated, "expect: median prints 3.25 us")
    assert found == "fails"
    assert "(run-001)" in text
    assert judged(repeated, "expect: median = 3.3 us ± 0.2 us")[0] == "holds"
    assert judged(repeated, "expect: lost = 0")[0] == "fails"
    # 3 of 300 packets are 1 % exactly, which no binary number is.
    lossy = ("where: {repetition: 2}", "expect: loss = 2 % ± 1 %")
    assert judged(repeated, *lossy)[0] == "holds"


def test_invalid_runs_are_left_out_and_told(
    tmp_path: Path, judged: Callable[..., tuple[str, str]]
) -> None:
    runs = [("forward", 10_000, latencies(3_000)), ("forward", 10_000, latencies(90_000))]
    place = experiment_of(tmp_path, runs, repetitions=(0, 1), invalid=(1,))
    found, text = judged(recorded(place), "expect: median < 50us")
    assert found == "holds"
    for fact in ("left out: run-001", "invalid: the generator was"):
        assert fact in text
    (tmp_path / "all").mkdir()
    place = experiment_of(tmp_path / "all", runs, repetitions=(0, 1), invalid=(0, 1))
    found, text = judged(recorded(place), "expect: median < 50us")
    assert found == "not decided"
    assert "has no run that" in text


@pytest.mark.parametrize(
    ("expect", "verdict"),
    [
        ("median of A < median of B", "holds"),
        ("median of A > median of B", "fails"),
        ("adjusted median of A < adjusted median of B", "holds"),
        ("p99.99 of A < p99.99 of B", "not decided"),
        ("p75 of A < p75 of B", "holds"),
    ],
)
def test_selections_are_compared(
    longer: RecordedExperiment,
    judged: Callable[..., tuple[str, str]],
    expect: str,
    verdict: str,
) -> None:
    sides = ("a: {dut: fast, rate: 10000}", "b: {dut: slow, rate: 10000}")
    found, text = judged(longer, *sides, f"expect: {expect}")
    assert found == verdict, text
    if expect == "median of A < median of B":
        for fact in (
            "4.25 µs (fast rate=10000)",
            "31.3 µs (slow rate=10000)",
            "B / A is 7.3",
        ):
            assert fact in text


def test_compared_combinations_have_the_same_other_loop_variables(
    longer: RecordedExperiment, judged: Callable[..., tuple[str, str]]
) -> None:
    lines = ("a: {dut: fast}", "expect: median of A < median of B")
    found, text = judged(longer, *lines, "b: {dut: slow}")
    assert found == "holds"
    assert text.endswith("(likewise the other combination)")
    with pytest.raises(PlanError, match=r"fast rate=10000 .*combination of B"):
        judged(longer, "a: {dut: fast, rate: 10000}", "b: {dut: slow}", lines[1])


def test_the_floor_is_selected_by_its_run_alone(
    experiment: RecordedExperiment, judged: Callable[..., tuple[str, str]]
) -> None:
    assert "wire" in judged(experiment, "where: {run: run-000}", "expect: samples = 300")[1]
    with pytest.raises(PlanError, match="no run has 7"):
        judged(experiment, "where: {rate: 7}", "expect: samples = 300")


def test_runs_are_selected_by_what_the_plan_says(
    tmp_path: Path, judged: Callable[..., tuple[str, str]]
) -> None:
    place = experiment_of(tmp_path, swept())
    for number, node in ((1, "vm"), (3, "bare"), (5, "bare")):
        told = place / f"run-{number:03d}" / "loop.json"
        told.write_text(json.dumps(json.loads(told.read_text()) | {"dut": {"node": node}}))
    lines = ("where: {dut.node: vm}", "expect: samples = 300")
    found, text = judged(recorded(place), *lines)
    assert (found, "run-001" in text) == ("holds", True)


def test_a_selection_that_matches_nothing_is_told_by_name(
    experiment: RecordedExperiment, tmp_path: Path
) -> None:
    path = tmp_path / "claims.yml"
    path.write_text(
        """\
- claim: first
  where: {rte: 10000, rate: 20001}
  expect: p99 < 1ms
- claim: second
  where: {rate: 10000, run: run-003}
  expect: p99 < 1ms
""",
        encoding="utf-8",
    )
    with pytest.raises(PlanError) as raised:
        claims.judge_all(claims.read(path), experiment)
    for told, facts in zip(
        raised.value.args,
        (
            (f"{path}: line 2: where.rte: ", "mean rate?", "claim 'first'"),
            (
                *(f"{path}: line 2: where.rate: ", "no run has 20001", "10000, 20000, 40000"),
                *("mean 20000?", "claim 'first'"),
            ),
            (f"{path}: line 5: where: ", "rate: 10000, run: run-003", "claim 'second'"),
        ),
        strict=True,
    ):
        for fact in facts:
            assert fact in told


@pytest.mark.parametrize(
    ("freedom", "confidence", "t"),
    # Tables of Student's distribution, two-sided.
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.95, 3.182),
        (4, 0.95, 2.776),
        (9, 0.99, 3.250),
        (30, 0.95, 2.042),
    ],
)
def test_students_t_is_that_of_the_tables(freedom: int, confidence: float, t: float) -> None:
    assert round(critical(freedom, confidence), 3) == t


@pytest.mark.parametrize(
    ("expect", "verdict", "told"),
    [
        ("[median prints 4.25 us, lost = 0]", "holds", "rate=10000 (run-001) has 0 lost"),
        ("[median < 50us, p99.99 < 50us, samples = 300]", "not decided", "(1 of 3 statements)"),
        ("[median < 1us, p99.99 < 50us, lost > 0]", "fails", "(2 of 3 statements)"),
    ],
)
def test_of_a_list_all_is_expected(
    experiment: RecordedExperiment,
    judged: Callable[..., tuple[str, str]],
    expect: str,
    verdict: str,
    told: str,
) -> None:
    found, text = judged(experiment, "where: {rate: 10000}", f"expect: {expect}")
    assert (found, told in text) == (verdict, True), text
