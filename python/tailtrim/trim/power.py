"""The power of the device's node in a trial, as its meter says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tailtrim.energy import LOADED, measured

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.energy.measured import State
    from tailtrim.trim.trial import Observation


def with_power(seen: Observation, run: Path, node: str | None) -> Observation:
    """Return the observation with the watts of its run, as :func:`power` has them."""
    found = power(run, node)
    return seen if found is None else replace(seen, watts=found.watts)


def power(run: Path, node: str | None) -> State | None:
    """Return what was measured while packets passed; ``None`` where it is not known.

    Args:
        run: the directory of the run.
        node: the device's; ``None`` where the whole testbed is one machine.

    Raises:
        RunDirectoryError: what meters measured cannot be read.

    """
    energy = measured.read(run)
    for one in energy.nodes if energy else ():
        state = one.states.get(LOADED)
        if node in (None, one.node) and state is not None and state.watts is not None:
            return state
    return None
