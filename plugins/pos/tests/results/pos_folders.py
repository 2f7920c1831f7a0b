"""Folders of pos results, made up: in the layouts of 2020 and of 2026."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from synthetic import write_pcap

from tailtrim_pos.naming import of_run, run_suffix
from tailtrim_pos.variables import grid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

TIME = "2020-10-07_23-27-11_424401"
NODES = ("tartu", "tallinn")


class PosFolder:
    """A folder of results with a run for each combination, and uploads as tests want them."""

    def __init__(
        self, path: Path, loop: Mapping[str, Sequence[Any]], *, layout: int = 2020
    ) -> None:
        """Lay out what pos itself writes."""
        self.path = path
        self.layout = layout
        self.loops = grid(loop)
        (path / "config").mkdir(parents=True)
        if layout == 2020:
            kept = {"loop": loop, "global": {}, NODES[0]: {}, NODES[1]: {}}
            (path / "config" / "allocation.json").write_text(json.dumps(kept))
        else:
            (path / "config" / "allocation.json").write_text(json.dumps({"nodes": NODES}))
            place = path / "config" / f"{TIME}_variables.json"
            place.write_text(json.dumps({"loop": loop, "global": {}}, indent=4))
        for node in NODES:
            self.own(node).mkdir(parents=True)
            for number, one in enumerate(self.loops):
                self.command(node, number, ".loop", json.dumps(one))
                self.command(node, number, ".status", "finished")
                output = "b'sent\\n'" if layout == 2020 else "sent\n"
                self.command(node, number, ".stdout", output)

    def named(self, name: str, number: int) -> str:
        """Return the name of a file of a run."""
        return of_run(name, run_suffix(number, len(self.loops)))

    def own(self, node: str) -> Path:
        """Return where pos keeps what its commands said."""
        return self.path / node if self.layout == 2020 else self.path / "scripts" / node

    def uploads(self, node: str) -> Path:
        """Return where files that scripts upload are."""
        place = self.path / node if self.layout == 2020 else self.path / "files" / node
        place.mkdir(parents=True, exist_ok=True)
        return place

    def command(self, node: str, number: int, suffix: str, text: str) -> Path:
        """Write one of pos's own files."""
        name = self.named(f"{TIME}_measurement", number)
        place = self.own(node) / f"{name}{suffix}"
        place.write_text(text)
        return place

    def upload(self, number: int, name: str, content: bytes, node: str = NODES[0]) -> Path:
        """Write what a script uploads with ``pos_upload --loop``."""
        place = self.uploads(node) / self.named(name, number)
        place.write_bytes(content)
        return place

    def capture(self, number: int, latencies_ns: Sequence[int | None]) -> None:
        """Upload the captures of packets with these latencies, 100 µs apart."""
        sent = [(10**9 + 100_000 * n, n) for n in range(len(latencies_ns))]
        received = [
            (stamp + latency, n)
            for (stamp, n), latency in zip(sent, latencies_ns, strict=True)
            if latency is not None
        ]
        for name, frames in (("latencies-pre.pcap", sent), ("latencies-post.pcap", received)):
            draft = write_pcap(self.path / "draft", sorted(frames))
            self.upload(number, name, draft.read_bytes())
            draft.unlink()


def each(folder: PosFolder, latencies: Callable[[dict[str, Any]], Sequence[int | None]]) -> None:
    """Upload captures of each run."""
    for number, loop in enumerate(folder.loops):
        folder.capture(number, latencies(loop))
