"""Folders of pos, run by the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

NODES = ("tartu", "vilnius", "riga")
MARK = "TAILTRIM_POS_TEST"


class PosRun:
    """A copy of the folders, and the files that a run of one of them left."""

    def __init__(self, place: Path, folders: Path) -> None:
        self.folders, self.out = place / "folders", place / "out"
        shutil.copytree(folders, self.folders)
        self.program = str(Path(sys.executable).with_name("tailtrim"))
        self.mark = uuid.uuid4().hex
        self.environment = os.environ | {MARK: self.mark, "NO_COLOR": "1"}
        self.ended: subprocess.CompletedProcess[str] | None = None

    def command(self, folder: str, *words: str, script: str = "experiment.sh") -> list[str]:
        return [self.program, "pos", str(self.folders / folder / script), *words]

    def go(
        self,
        folder: str,
        *words: str,
        script: str = "experiment.sh",
        rootless: bool = False,
        within_s: float = 240,
    ) -> subprocess.CompletedProcess[str]:
        before = ["/usr/bin/env", "unshare", "--user", "--map-root-user"] if rootless else []
        self.ended = subprocess.run(
            [*before, *self.command(folder, *words, "--out", str(self.out), script=script)],
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
            env=self.environment,
        )
        return self.ended

    @property
    def results(self) -> Path:
        """The result folder of the one allocation."""
        (folder,) = self.out.glob("results/*/default/*")
        return folder

    def printed(self, name: str, node: str = "") -> str:
        """Output of the command with this name."""
        (path,) = self.results.rglob(f"{node}/*_{name}" if node else f"*_{name}")
        return path.read_text("utf-8")

    def json(self, name: str) -> Any:
        return json.loads(self.printed(name))

    def left(self) -> list[str]:
        """Return the processes of this run that are still there: those with the mark, and nodes."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                environment = (place / "environ").read_bytes()
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if self.mark.encode() in environment and int(place.name) != os.getpid():
                found.append(command)
        return found
