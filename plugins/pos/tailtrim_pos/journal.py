"""The journal of an experiment: the commands run, so that it can be resumed after interruptions."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import OutputError, Remedy
from tailtrim.results.drafts import locked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = "tailtrim_pos/1"
JOURNAL = "pos.jsonl"


class Journal:
    """The lines of a file, each an event; a line that was not finished does not count.

    Its folder is locked against other processes until the context ends.

    A command that is repeated for each run has a key: its node, its name, and how many of that name
    the node had before.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any], *, resume: bool) -> None:
        """Begin a journal, or go on with one.

        Args:
            folder: the directory of the experiment.
            about: identity of the experiment; the same when it is resumed.
            resume: whether to go on with what is there.

        Raises:
            OutputError: the directory belongs to something else, or to another process.

        """
        self.folder = folder
        self._place = folder / JOURNAL
        if folder.exists() and not self._place.exists() and any(folder.iterdir()):
            told = "exists and is not an experiment of pos, so nothing is written to it"
            raise OutputError(f"{folder}: {told}")
        with ExitStack() as stack:
            stack.enter_context(locked(self.folder))
            self._begin(about, resume=resume)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Unlock its folder."""
        self._stack.close()

    def _begin(self, about: Mapping[str, Any], *, resume: bool) -> None:
        events = self._known()
        if events and not resume:
            error = OutputError(f"{self.folder}: holds an experiment already")
            error.add_note(Remedy("go on with it by {resume}, or choose another {out}"))
            raise error
        self.folders = [str(e["folder"]) for e in events if e["event"] == "allocation"]
        self._stamps = {e["key"]: str(e["stamp"]) for e in events if e["event"] == "looped"}
        self._peers: dict[str, set[str]] = {}
        self._finished: set[tuple[str, int]] = set()
        self._files: dict[tuple[str, int], list[Path]] = {}
        #: Runs by allocation and number: their loop variables, their outcomes, and why they
        #: were repeated.
        self.runs: dict[tuple[int, int], dict[str, Any]] = {}
        for event in events:
            self._take(event)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        first = {"event": "begun", "schema": SCHEMA, **about, "at": at}
        #: Time of its first begin, UTC.
        self.began = str(events[0].get("at")) if events else at
        if events:
            self._compare(events[0], first)
        else:
            self.add(first)

    def _known(self) -> list[dict[str, Any]]:
        try:
            text = self._place.read_text("utf-8") if self._place.exists() else ""
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                self._place.write_text(whole, "utf-8")
            return [json.loads(line) for line in whole.splitlines()]
        except (OSError, ValueError) as error:
            raise OutputError(f"{self._place}: cannot be read: {error}") from error

    def _compare(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        keys = {**before, **now}.keys() - {"at"}
        other = sorted(key for key in keys if before.get(key) != now.get(key))
        if other:
            told = f"holds another experiment: {', '.join(other)} differs"
            raise OutputError(f"{self.folder}: {told}")

    def add(self, event: dict[str, Any]) -> None:
        """Write an event.

        Raises:
            OutputError: it cannot be written.

        """
        try:
            with self._place.open("a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")
        except OSError as error:
            raise OutputError(f"{self._place}: cannot be written: {error.strerror}") from error
        self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "file":
            of_run = (str(event["key"]), int(event["run"]))
            self._files.setdefault(of_run, []).append(self.folder / event["path"])
        if event["event"] == "repeated":
            self._run_of(event)["repeated"] += (str(event["why"]),)
        if event["event"] != "run":
            return
        key, number = str(event["key"]), int(event["run"])
        self._peers.setdefault(key, set()).update(event["peers"])
        finished = event["status"] == "finished"
        (self._finished.add if finished else self._finished.discard)((key, number))
        run = self._run_of(event)
        run["loop"] = event["loop"]
        run["status"][key] = event["status"]

    def _run_of(self, event: Mapping[str, Any]) -> dict[str, Any]:
        place = (int(event["allocation"]), int(event["run"]))
        return self.runs.setdefault(place, {"loop": {}, "status": {}, "repeated": ()})

    def stamp(self, key: str, now: str) -> str:
        """Return the time of a repeated command's first begin, as names of its files have it."""
        if key not in self._stamps:
            self.add({"event": "looped", "key": key, "stamp": now})
            self._stamps[key] = now
        return self._stamps[key]

    def left(self, key: str, number: int, path: Path) -> None:
        """Remember a file that a run left."""
        told = os.path.relpath(path, self.folder)
        self.add({"event": "file", "key": key, "run": number, "path": told})

    def set_aside(self, key: str, number: int, folder: Path) -> None:
        """Move what an attempt at a run left, if any, so that evaluations do not find it."""
        for path in self._files.pop((key, number), []):
            if path.exists():
                folder.mkdir(parents=True, exist_ok=True)
                path.rename(folder / path.name)

    def complete(self, key: str, number: int) -> bool:
        """Whether a run was finished, also by the commands that ran at the same time."""
        together = {key} | self._peers.get(key, set())
        return all((one, number) in self._finished for one in together)
