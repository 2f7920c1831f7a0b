"""The result of an agent that ends by itself, or is stopped when it does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.nodes.agent import Agent

#: An agent may take this many times as long as its traffic, and a few seconds more.
_GRACE = 3.0
_MORE_S = 10.0


def result_in_time(  # noqa: PLR0913 - each is named
    agent: Agent,
    name: str,
    look: Callable[[], None],
    *,
    duration_s: float,
    waits_s: float = 0.0,
    every_s: float,
) -> tuple[dict[str, Any], list[str]]:
    """Return what an agent counted, and why it is in doubt if the agent had to be stopped.

    Args:
        agent: it ends by itself if nothing is overloaded.
        name: its name.
        look: called until then; an exception that it raises ends the wait.
        duration_s: how long it sends.
        waits_s: how long it waits for replies afterwards.
        every_s: time between two calls.

    """
    limit_s = duration_s * _GRACE + waits_s + _MORE_S
    until_s = time.monotonic() + limit_s
    while agent.poll() and time.monotonic() < until_s:
        look()
        time.sleep(every_s)
    if agent.poll():
        # Overloaded: the count of packets sent says by how much.
        return agent.stop(), [f"the {name} did not end in time and was stopped after {limit_s:g} s"]
    return agent.finished(5), []
