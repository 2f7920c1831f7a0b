"""Experiments on an empty testbed: decisions that need no real one."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tailtrim.errors import RunError
from tailtrim.laboratory.experiment import Experiment, Listener, conduct
from tailtrim.laboratory.nodes.host import Facts, Host

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.plan import Run
    from tailtrim.results.experiments import Outcome
    from tailtrim.tool import Tool

GENERATED: dict[str, Any] = {
    "lateness_ns": {"quantiles": [{"p": "0.99", "value": 1_000}], "max": 30_000},
    "stalls": {
        "departed_late": 4,
        "waiting": {"count": 1, "total_ns": 40_000, "longest_ns": 40_000},
        "sending": {"count": 1, "total_ns": 90_000, "longest_ns": 90_000},
        "not_kept": 0,
    },
    "due": 100,
    "sent": 100,
    "refused": 0,
    "achieved_pps": 1e4,
    "intended_pps": 1e4,
}


class Bare(Host):
    """A host without any program of a device."""

    facts = Facts("6.1", "x86_64", 2, root=True)

    def exists(self, path: str) -> bool:
        del path
        return False

    def find(self, tool: Tool) -> None:
        del tool


class Nothing:
    """A testbed that says what its host lacks, and counts how often something was to be run."""

    wired = 0
    notices = ()
    gone: str | None = None
    lacks: ClassVar[dict[str, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def facts(self) -> Facts:
        return Bare.facts

    def host(self) -> Host:
        return Bare()

    def audit(self) -> dict[str, Any]:
        return {}

    def revive(self, told: Callable[[str], None]) -> str | None:
        del told
        return None

    def forwarding(self, folder: Path, largest_frame: int) -> Any:
        type(self).wired += 1
        message = f"{folder.name}: no fibres for {largest_frame} bytes"
        raise RunError(message)


def conducted(experiment: Experiment) -> list[tuple[str, Outcome, int]]:
    """Return the runs in the order in which they ended, and how much had been wired by then."""
    listener = _Endings()
    conduct(experiment, listener)
    return listener.ended


class _Endings(Listener):
    def __init__(self) -> None:
        self.ended: list[tuple[str, Outcome, int]] = []

    def run_ended(self, run: Run, outcome: Outcome) -> None:
        self.ended.append((run.label, outcome, Nothing.wired))


def write_pcap(path: Path, frames: list[tuple[int, int]]) -> Path:
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for stamp_ns, number in frames:
            frame = bytes(12) + b"\x88\xb5" + number.to_bytes(50, "big")
            file.write(struct.pack("<IIII", *divmod(stamp_ns, 10**9), len(frame), len(frame)))
            file.write(frame)
    return path


class Played(SimpleNamespace):
    """A node that is itself and no other, with files of a folder."""

    def __init__(self, files: Callable[[str], Path | None], **more: Any) -> None:
        super().__init__(host_name="lab", role="node", get=files, path=str, lost=False, **more)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    @property
    def outside(self) -> Played:
        return self

    def run(self, program: str, *words: str) -> str:
        """Say how long a file is, or remove it."""
        path = self.get(words[-1])
        if program == "rm":
            if path is not None:
                path.unlink()
            return ""
        assert path is not None
        return str(path.stat().st_size)


class Far(Played):
    """A node on another host: its files are gone with it, unless they were fetched."""

    def __init__(self, here: Path, there: Path) -> None:
        def get(name: str) -> Path | None:
            if not (there / name).exists():
                return None
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            return Path(shutil.copy(there / name, here / name))

        def call(*words: str) -> Any:
            told = ["kernel\t6.1"]
            if words[0] == "ls":
                told = [path.name for path in (there / words[1]).iterdir()]
            return SimpleNamespace(stdout="\n".join(told), stderr="")

        super().__init__(get, call=call, agent="agent")
        self._there = there

    def run(self, program: str, *words: str) -> str:
        """Remove what is there, or tell the version of the agent."""
        if program == "rm":
            place = self._there / words[-1]
            shutil.rmtree(place) if place.is_dir() else place.unlink()
            return ""
        return f"{program} 1.2.3\n"


def played_testbed(loadgen: Any, timestamper: Played, dut: Any, **more: Any) -> Any:
    """Return a testbed of such nodes."""
    nodes = {"loadgen": loadgen, "timestamper": timestamper, "dut": dut}
    taps = {
        name: SimpleNamespace(node=timestamper, name=name, mac="") for name in ("tap_in", "tap_out")
    }
    fetched = {"captures": "fetch", "correction": None}
    return SimpleNamespace(**nodes, **taps, **fetched, nodes=nodes, ports=taps, **more)
