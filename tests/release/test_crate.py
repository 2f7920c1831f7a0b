"""The metadata of a release by the public validator, and the entities of RISE in them."""

from __future__ import annotations

import json
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tailtrim.results.writing import sha256

pytestmark = pytest.mark.long

#: Each for itself: run crates of the validator build on RO-Crate 1.1, and this is 1.2.
PROFILES = (
    "ro-crate-1.2",
    "process-run-crate-0.5",
    "workflow-ro-crate-1.0",
    "workflow-run-crate-0.5",
)
#: The version of RO-Crate, and states of actions.
_ELSEWHERE = ("https://w3id.org/ro/crate/", "http://schema.org/")
_PROJECT = Path(__file__).parents[2]
_PYTHON = _PROJECT / "target" / "validator" / "bin" / "python"
_SCRIPT = Path(__file__).parent / "support" / "validate_crate.py"
_CONTEXT = resources.files("rocrate").joinpath("data/ro-crate.jsonld")


def issues(root: Path, profile: str) -> list[str]:
    """Return what the validator finds, or skip loudly."""
    if not _PYTHON.with_name("rocrate-validator").exists():
        pytest.skip("no roc-validator here (packaging/fetch.sh validator installs it)")
    ended = subprocess.run(
        [_PYTHON, _SCRIPT, root, profile, str(_CONTEXT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: list[str] = json.loads(ended.stdout)
    return found


@pytest.mark.packages
@pytest.mark.parametrize("profile", PROFILES)
def test_the_public_validator_finds_nothing(released: Path, profile: str) -> None:
    assert issues(released, profile) == []


@pytest.mark.packages
@pytest.mark.parametrize("profile", PROFILES)
def test_the_public_validator_looks_at_it(copied: Path, profile: str) -> None:
    place = copied / "ro-crate-metadata.json"
    text = place.read_text()
    for word in ("mainEntity", "instrument", "conformsTo", "license"):
        text = text.replace(f'"{word}"', f'"not-{word}"')
    place.write_text(text)
    assert issues(copied, profile) != []


def entities(root: Path) -> dict[str, dict[str, Any]]:
    graph = json.loads((root / "ro-crate-metadata.json").read_text())["@graph"]
    return {entity["@id"]: entity for entity in graph}


def test_every_file_has_its_checksum(released: Path) -> None:
    found = entities(released)
    for path in released.rglob("*"):
        name = str(path.relative_to(released))
        if path.is_file() and name not in ("ro-crate-metadata.json", "SHA256SUMS"):
            assert found[name]["sha256"] == sha256(path), name


def test_what_rise_has_is_there(released: Path) -> None:
    found = entities(released)
    run = found["#run-001"]
    assert run["@type"] == ["CreateAction", "LoopRun"]
    assert run["startTime"] == "2023-11-14T22:13:20.000000+00:00"
    assert run["duration"] == "PT0.050S"
    assert run["variableSet"] == {"@id": "experiment/run-001/loop.json"}
    assert run["executedOn"] == [{"@id": "#node-local"}]
    assert found["#node-local"]["@type"] == "ExperimentNode"
    assert found["#image-local"]["bootParameters"] == "quiet"
    root = found["./"]
    rise = {"@id": "https://tumi8.github.io/rise-ro-crate-profile/1.0.0/"}
    assert rise in root["conformsTo"]
    assert root["datePublished"] == "2026-11-20"
    assert [found[one["@id"]]["name"] for one in root["author"]] == ["Jane Doe", "Example Lab"]


def test_every_term_is_declared(released: Path) -> None:
    crate = json.loads((released / "ro-crate-metadata.json").read_text())
    context = json.loads(_CONTEXT.read_text("utf-8"))["@context"]
    known = {*context, *crate["@context"][1], "@id", "@type"}
    used = {key for entity in crate["@graph"] for key in entity}
    types = {
        one
        for entity in crate["@graph"]
        for one in ([entity["@type"]] if isinstance(entity["@type"], str) else entity["@type"])
    }
    assert (used | types) - known == set()


def test_every_reference_leads_to_an_entity(released: Path) -> None:
    found = entities(released)

    def references(value: Any) -> list[str]:
        if isinstance(value, list):
            return [one for inner in value for one in references(inner)]
        return [value["@id"]] if isinstance(value, dict) else []

    missing = {
        one
        for entity in found.values()
        for key, value in entity.items()
        if not key.startswith("@")
        for one in references(value)
        if one not in found and not one.startswith(_ELSEWHERE)
    }
    assert missing == set()


def test_what_a_node_booted_names_its_packages(released: Path) -> None:
    graph = json.loads((released / "ro-crate-metadata.json").read_text())["@graph"]
    (image,) = [one for one in graph if one["@type"] == "OSImage"]
    name = image["subjectOf"]["@id"]
    assert (released / name).read_text() == "adduser 3.134\nlocal 1.0\n"
    (file,) = [one for one in graph if one["@id"] == name]
    assert file["sha256"] == sha256(released / name)
