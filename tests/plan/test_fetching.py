"""Files of hosts arrive whole, whatever else sudo and sshd print."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast

import pytest

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.ssh.fetching import fetched

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.nodes.ssh.session import SshSession

WARNING = "sudo: unable to resolve host far: Temporary failure in name resolution"


def session(said: str, then: str = "") -> SshSession:
    """Return a session with this machine, that says something before each command."""

    def fetch(target: IO[bytes], *words: str) -> subprocess.CompletedProcess[bytes]:
        script = f'echo "{said}" >&2; {then} exec "$@"'
        return subprocess.run(
            ["/bin/sh", "-c", script, "sh", *words],
            stdout=target,
            stderr=subprocess.PIPE,
            check=False,
        )

    given: Any = SimpleNamespace(
        role="far", reading=SimpleNamespace(fetch=fetch), held=lambda words: words
    )
    return cast("SshSession", given)


@pytest.mark.parametrize("name", ["text.txt", "packed.zst"])
@pytest.mark.parametrize("said", ["", WARNING, "Welcome.\n7 users\n"])
def test_what_sudo_says_is_not_taken_for_the_sum(tmp_path: Path, said: str, name: str) -> None:
    there, here = tmp_path / name, tmp_path / "here"
    there.write_bytes(bytes(range(256)) * 999)
    assert fetched(session(said), str(there), str(tmp_path / "mark"), here)
    assert here.read_bytes() == there.read_bytes()


def test_a_file_of_a_folder_that_is_not_here_yet_arrives(tmp_path: Path) -> None:
    there, here = tmp_path / "minute.jsonl", tmp_path / "matched" / "around" / "minute.jsonl"
    there.write_text("{}\n")
    assert fetched(session(""), str(there), str(tmp_path / "mark"), here)
    assert here.read_text() == "{}\n"


def test_what_does_not_arrive_is_told_with_what_was_said(tmp_path: Path) -> None:
    there = tmp_path / "text.txt"
    there.write_text("whole")
    with pytest.raises(RunError, match=r"not arrive .*sudo: unable"):
        fetched(session(WARNING, "exit 1;"), str(there), str(tmp_path / "m"), tmp_path / "here")


def test_what_a_lost_connection_cut_is_fetched_on_although_the_script_ended_well(
    tmp_path: Path,
) -> None:
    """ssh returns the script's exit code, if that came before the last bytes were written."""
    there, here = tmp_path / "packed.zst", tmp_path / "here"
    there.write_bytes(bytes(range(256)) * 999)
    cut: Any = session("")
    whole = cut.reading.fetch
    connections: list[str] = []

    def fetch(target: IO[bytes], *words: str) -> subprocess.CompletedProcess[bytes]:
        ended = whole(target, *words)
        if not connections:
            target.truncate(1_000)
        return cast("subprocess.CompletedProcess[bytes]", ended)

    cut.reading.fetch, cut.go_on = fetch, lambda: connections.append("new")
    assert fetched(cut, str(there), str(tmp_path / "mark"), here)
    assert here.read_bytes() == there.read_bytes()
    assert connections == ["new"]
