"""Record of the meters of a run: ``energy.json``, made and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunDirectoryError
from tailtrim.results import ENERGY
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = "tailtrim.energy/1"
#: The states of a device: it is not started; it waits for packets; packets pass it.
IDLE, READY, LOADED = "idle", "ready", "loaded"


@dataclass(frozen=True, slots=True)
class State:
    """A state in a run: its power, and its uncertainty by the meter's resolution and accuracy.

    ``watts`` is ``None`` where it is not known; ``problem`` says why.
    """

    watts: float | None
    type_b_w: float
    duration_s: float
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class MeteredNode:
    """Measurement of a node's meter in a run."""

    node: str
    meter: str
    accuracy_percent: float | None
    states: dict[str, State]


@dataclass(frozen=True, slots=True)
class RunEnergy:
    """Content of ``energy.json``: the load, and the measurement of each meter."""

    packets_per_s: float
    nodes: tuple[MeteredNode, ...]


def read(run: Path) -> RunEnergy | None:
    """Read the file of a run directory; ``None`` where no meter was read.

    Raises:
        RunDirectoryError: the file is not what was written.

    """
    place = run / ENERGY
    if not place.is_file():
        return None
    try:
        raw = parsed(place.read_text("utf-8"))
        if raw["schema"] != SCHEMA:
            found = raw["schema"]
            raise RunDirectoryError(f"{place}: the schema is {found!r}, expected {SCHEMA!r}")
        nodes = tuple(_read_node(str(name), told) for name, told in raw["nodes"].items())
        return RunEnergy(float(raw["packets_per_s"]), nodes)
    except OSError as error:
        raise RunDirectoryError(f"{place}: cannot be read: {error.strerror}") from error
    except (ArithmeticError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunDirectoryError(f"{place}: not what meters measured ({error})") from error


def _read_node(name: str, told: dict[str, Any]) -> MeteredNode:
    states = {
        state: State(
            watts=None if one["watts"] is None else float(one["watts"]),
            type_b_w=float(one.get("type_b_w") or 0.0),
            duration_s=float(one["duration_s"]),
            problem=one.get("problem"),
        )
        for state, one in told["states"].items()
    }
    accuracy = told["accuracy_percent"]
    return MeteredNode(
        node=name,
        meter=str(told["meter"]),
        accuracy_percent=None if accuracy is None else float(accuracy),
        states=states,
    )
