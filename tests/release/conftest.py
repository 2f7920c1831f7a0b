"""A release of a small experiment, and copies of it to be changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from small_experiment import small_experiment

from tailtrim.publishing.release import ReleaseOptions, checksums, release
from tailtrim.results.writing import sha256

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the experiment; not to be altered."""
    return small_experiment(tmp_path_factory.mktemp("experiment"))


@pytest.fixture(scope="session")
def released(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return its release; not to be altered."""
    place = tmp_path_factory.mktemp("release") / "released"
    assert release(experiment, place, ReleaseOptions()) == []
    return place


@pytest.fixture
def copied(released: Path, tmp_path: Path) -> Path:
    """Return the release elsewhere, to be altered."""
    return Path(shutil.copytree(released, tmp_path / "elsewhere"))


@pytest.fixture(scope="session")
def sealed() -> Callable[[Path], None]:
    """Return what makes all checksums anew, as somebody would who hides a change."""

    def seal(root: Path) -> None:
        place = root / "ro-crate-metadata.json"
        crate = json.loads(place.read_text())
        there = {
            str(path.relative_to(root)): path
            for path in root.rglob("*")
            if path.is_file() and path.name not in ("SHA256SUMS", "SHA256SUMS.sig", place.name)
        }
        kept = []
        for entity in crate["@graph"]:
            if "sha256" in entity:
                if entity["@id"] not in there:
                    continue
                entity["sha256"] = sha256(there[entity["@id"]])
            kept.append(entity)
        place.write_text(json.dumps(crate | {"@graph": kept}))
        checksums.write(root)

    return seal
