"""One exit code for each class of errors, as the help says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tailtrim import errors
from tailtrim.cli.application import app
from tailtrim.cli.console import guarded
from tailtrim.errors import ExitCode, TailtrimError, exit_code
from tailtrim.laboratory.nodes.vm.guest import GuestDiedError

if TYPE_CHECKING:
    from collections.abc import Iterator


def descendants(kind: type[TailtrimError]) -> Iterator[type[TailtrimError]]:
    for one in kind.__subclasses__():
        yield one
        yield from descendants(one)


CLASSES: list[type[TailtrimError]] = [TailtrimError, *descendants(TailtrimError)]


def test_each_public_class_has_a_code_of_its_own() -> None:
    public = {kind for kind in CLASSES if kind.__name__ in errors.__all__}
    assert len(public) == sum(name.endswith("Error") for name in errors.__all__)
    assert public <= set(errors.EXIT_CODES)


@pytest.mark.parametrize("kind", [*CLASSES, ValueError, OverflowError, OSError])
def test_an_error_ends_a_command_with_the_code_of_its_class(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, guarded():
        raise kind("a wire is cut")
    assert ended.value.code == exit_code(kind())
    usual = {ExitCode.INVALID, ExitCode.IMPOSSIBLE, ExitCode.FAILED}
    undecided = kind is errors.NotPredictedError
    assert ended.value.code in ({ExitCode.UNDECIDED} if undecided else usual)
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch("error: .*a wire is cut\n", told.err)


def test_what_broke_what_is_missing_and_what_is_wrong_differ() -> None:
    assert exit_code(GuestDiedError()) is exit_code(errors.RunError()) is ExitCode.FAILED
    assert exit_code(errors.PicturesError()) is exit_code(errors.HostError()) is ExitCode.IMPOSSIBLE
    assert exit_code(errors.QueryError()) is exit_code(errors.PlanError()) is ExitCode.INVALID


def test_an_interruption_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, guarded():
        raise KeyboardInterrupt
    assert ended.value.code == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""


def test_a_bug_stays_a_traceback() -> None:
    with pytest.raises(KeyError), guarded():
        raise KeyError("p50")


def test_the_help_names_all_codes() -> None:
    told = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    listed = told.partition("Exit codes: ")[2]
    numbers = [int(number) for number in re.findall(r"(?:^|, )(\d+) ", listed)]
    assert numbers == list(ExitCode)
    for code in {*errors.EXIT_CODES.values()}:
        assert f"{code} {code.told}" in listed
