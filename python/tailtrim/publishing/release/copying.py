"""An experiment copied into a release, without withheld data and files left out."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import ReleaseError
from tailtrim.laboratory.experiment import packages
from tailtrim.laboratory.nodes import drawing
from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
from tailtrim.publishing.release import safe_files
from tailtrim.publishing.release.derivation import captures_of
from tailtrim.publishing.release.layout import (
    CITATION,
    CLAIMS,
    DRAWING,
    LICENSE,
    PLAN,
    SEARCHES,
    TESTBED,
)
from tailtrim.publishing.release.redaction import name_of
from tailtrim.results.experiments import AUDIT, RECORD
from tailtrim.results.layout import AROUND, EVENTS, PROVENANCE, SUMMARY

if TYPE_CHECKING:
    from tailtrim.publishing.release.redaction import Redaction

#: Folders and files of an experiment; tailtrim did not write others that are in its folder.
_FOLDERS = re.compile(rf"run-[0-9]{{3,}}|boots|devices|failed|{packages.FOLDER}")
_FILES = (RECORD, PLAN, AUDIT, *SEARCHES)
#: Made anew: the drawing without addresses, the report by the version here, the authors' files.
_ANEW = (DRAWING, TESTBED, LICENSE, CITATION, CLAIMS)
_REPORT = "report"
_TEXTS = (".json", ".yml", ".log", ".csv", ".txt", ".svg", ".md", "")


class Copy:
    """The copy of an experiment.

    Args:
        source: the experiment.
        target: where to.
        redaction: the texts without what is withheld.
        captures: whether captures are copied.

    """

    def __init__(self, source: Path, target: Path, redaction: Redaction, *, captures: bool) -> None:
        """Take the places."""
        self._source, self._target, self._redaction = source, target, redaction
        self._captures = captures
        #: Files of the folder that are not in the release.
        self.left_out: list[str] = []

    def make(self) -> None:
        """Copy.

        Raises:
            ReleaseError: the experiment lacks its plan, or has a symbolic link.

        """
        without: set[str] = set()
        for name in safe_files.files(self._source):
            first = name.split("/")[0]
            if (_FOLDERS.fullmatch(first) and "/" in name) or name in _FILES:
                if not self._captures and self._is_capture(name):
                    without.add(name)
                else:
                    self._copy(name)
            elif name not in _ANEW and first != _REPORT:
                self.left_out.append(name)
        self.left_out += sorted(without)
        imported = "imported" in safe_files.record(self._target / RECORD)
        if not imported and not (self._target / PLAN).is_file():
            raise ReleaseError(f"{self._source / PLAN}: missing, and nobody can check the runs")
        if not self._redaction.local:
            self._write(TESTBED, self._redaction.testbed_file())
            described = TestbedDescription.model_validate(self._redaction.testbed)
            self._write(DRAWING, drawing.svg(described))

    def _is_capture(self, name: str) -> bool:
        place = self._source / name
        if place.parent.name == AROUND:
            return not place.name.endswith(EVENTS)
        if not re.fullmatch(r"run-[0-9]+/[^/]+", name):
            return False
        return place.name in (captures_of(place.parent) or ())

    def _copy(self, name: str) -> None:
        source, target = self._source / name, self._target / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # Packages are named by a sum, so they are the same bytes.
        if source.suffix not in _TEXTS or name.split("/", maxsplit=1)[0] == packages.FOLDER:
            shutil.copyfile(source, target)
            return
        try:
            text = safe_files.text(source)
        except ReleaseError:
            # The output of a console may contain any bytes.
            text = source.read_bytes().decode("utf-8", errors="replace")
        self._write(name, self._told(name, text))

    def _told(self, name: str, text: str) -> str:
        last = Path(name).name
        if name == PLAN:
            return self._redaction.plan(text)
        if name == RECORD or last == PROVENANCE:
            return _json(self._redaction.record(json.loads(text)))
        if last == SUMMARY:
            return self._redaction.text(named(text))
        if last == "capture.json":
            text = _json(self._capture(name, json.loads(text)))
        if last == "nodes.json":
            text = _json(self._nodes(name, json.loads(text)))
        return self._redaction.text(text)

    def _capture(self, name: str, record: dict[str, Any]) -> dict[str, Any]:
        kept = self._kept(name)
        for tap in record["taps"].values():
            tap["file"] = name_of(tap["file"]) if kept and tap.get("file") else None
        return record

    def _nodes(self, name: str, record: dict[str, Any]) -> dict[str, Any]:
        matching = record.get("matching")
        if matching and matching.get("kept"):
            names = [name_of(one) for one in matching["kept"]]
            matching["kept"] = names if self._kept(name) else None
        return record

    def _kept(self, name: str) -> bool:
        folder = (self._source / name).parent
        return self._captures and captures_of_local(folder)

    def _write(self, name: str, text: str) -> None:
        (self._target / name).write_text(text, encoding="utf-8")


def captures_of_local(run: Path) -> bool:
    """Return whether the captures of a run are in its folder, and not on the host of its taps."""
    try:
        return captures_of(run) is not None
    except ReleaseError:
        return False


def named(summary: str) -> str:
    """Return a summary whose captures have names, and not the places where they once were."""
    for tap in json.loads(summary)["taps"].values():
        place = json.dumps(tap["capture"], ensure_ascii=False)
        name = json.dumps(name_of(tap["capture"]), ensure_ascii=False)
        summary = summary.replace(f'"capture": {place}', f'"capture": {name}')
    return summary


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"
