"""A node that does not answer is given up: nothing waits for it without end."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.holder import first_line
from tailtrim_pos.node import HOME, PosNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHORT_S = 0.2


class Here(PosNode):
    """This machine in place of a node."""

    name = "tartu"
    alive = True

    def end(self) -> None:
        """Nothing was begun."""

    def words(
        self,
        command: Sequence[str],
        folder: str = HOME,  # noqa: ARG002 - as of every node
        environment: Mapping[str, str] | None = None,  # noqa: ARG002 - as of every node
    ) -> list[str]:
        """Return the command as it is."""
        return list(command)


def test_a_command_that_does_not_end_is_told_with_the_node() -> None:
    with pytest.raises(RunError, match=r"tartu: sleep .* 0\.2 s"):
        Here().call("sleep", "60", limit_s=_SHORT_S)
    assert Here().call("echo", "there") == b"there\n"


def test_who_does_not_say_that_it_is_ready_is_not_waited_for() -> None:
    for command, line in (("echo ready; exec sleep 60", "ready"), ("exec sleep 60", "")):
        with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True) as process:
            assert first_line(process, 10.0 if line else _SHORT_S) == line
            process.kill()
