"""``ro-crate-metadata.json``: the parts and the origin of a release.

RO-Crate 1.2. The plan is the workflow, and the experiment its execution (Workflow Run Crate 0.5);
imported results have no plan, and are described as a Process Run Crate 0.5 by their record.
In addition it has the entities of the RISE profile 1.0.0: experiment, nodes, their boots, and a
``LoopRun`` for each run. Its terms are declared in the context, which the profile leaves open.
"""

from __future__ import annotations

import json
import mimetypes
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.laboratory.experiment import packages
from tailtrim.publishing.release import safe_files
from tailtrim.publishing.release.layout import (
    CITATION,
    CRATE,
    EXPERIMENT,
    LICENSE,
    PLAN,
    README,
    SUMS,
)
from tailtrim.results.experiments import recorded
from tailtrim.results.writing import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocrate.rocrate import ROCrate

    from tailtrim.results.experiments import RecordedExperiment, RecordedRun

Entity = dict[str, Any]

_VERSION = "1.2"
_RISE = "https://tumi8.github.io/rise-ro-crate-profile/1.0.0/"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
    _RISE: ("RISE RO-Crate", "1.0.0"),
}
_TERMS = (
    *("Experiment", "ExperimentNode", "LoopRun", "OSImage"),
    *("experimentNodes", "includedOSImages", "resultData", "variableSet", "runOfLoopedCommand"),
    *("executedOn", "bootedImage", "bootParameters", "status"),
)
_PLAN, _RECORD = f"{EXPERIMENT}/{PLAN}", f"{EXPERIMENT}/experiment.json"
_TAILTRIM, _YAML, _ALL = "#tailtrim", "#yaml", "#execution"
_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".zst": "application/zstd",
    ".yml": "application/yaml",
    ".cff": "application/yaml",
    ".md": "text/markdown",
    ".log": "text/plain",
    ".jsonl": "application/jsonl",
    ".whl": "application/zip",
}
_DONE = "http://schema.org/CompletedActionStatus"
_FAILED = "http://schema.org/FailedActionStatus"
_REALTIME = "CLOCK_REALTIME"
_PROFILE = ["CreativeWork", "Profile"]


def _whole(root: Path) -> str:
    """Return the file that describes all runs."""
    return _PLAN if (root / _PLAN).is_file() else _RECORD


def _profiles(root: Path) -> dict[str, tuple[str, str]]:
    if _whole(root) == _PLAN:
        return _PROFILES
    return {key: told for key, told in _PROFILES.items() if "/workflow" not in key}


def text(root: Path, cited: Entity) -> str:
    """Return the metadata of a release.

    Args:
        root: the release, complete but for checksums.
        cited: content of its citation file.

    """
    from rocrate.model.contextentity import ContextEntity  # noqa: PLC0415 - of the extra `release`
    from rocrate.rocrate import ROCrate  # noqa: PLC0415 - as above

    crate = ROCrate(version=_VERSION)
    crate.metadata.extra_terms = {term: f"{_RISE}#{term}" for term in _TERMS}
    experiment = recorded(root / EXPERIMENT)

    def add(entity: Entity) -> None:
        rest = {key: value for key, value in entity.items() if key != "@id"}
        crate.add(ContextEntity(crate, entity["@id"], properties=rest))

    profiles = (
        {"@id": profile, "@type": _PROFILE, "name": name, "version": version}
        for profile, (name, version) in _profiles(root).items()
    )
    of_experiment = _of_experiment(root, experiment)
    for entity in (*_context(cited), *profiles, *_software(experiment), *of_experiment):
        add(entity)
    for name in safe_files.files(root):
        if name not in (CRATE, SUMS):
            crate.add_file(dest_path=name, properties=_file(root, name, experiment))
    _root(crate, root, experiment, cited)
    return json.dumps(crate.metadata.generate(), indent=2, ensure_ascii=False) + "\n"


def _root(crate: ROCrate, root: Path, experiment: RecordedExperiment, cited: Entity) -> None:
    described = f"Tail latency measured by tailtrim: the experiment {experiment.name}."
    released = cited.get("date-released") or datetime.now(UTC).date()
    values: Entity = {
        "name": str(cited["title"]),
        "description": str(cited.get("abstract") or described),
        "datePublished": str(released),
        "license": {"@id": LICENSE},
        "author": [{"@id": one["@id"]} for one in _authors(cited)],
        "subjectOf": {"@id": CITATION},
        "conformsTo": [{"@id": profile} for profile in _profiles(root)],
        "mainEntity": {"@id": _whole(root)},
        "mentions": [{"@id": _ALL}, *({"@id": _action(run)} for run in experiment.runs)],
    }
    if cited.get("doi"):
        values["identifier"] = f"https://doi.org/{cited['doi']}"
    for key, value in values.items():
        crate.root_dataset[key] = value


def _authors(cited: Entity) -> Iterator[Entity]:
    for number, author in enumerate(cited["authors"], 1):
        given, family = author.get("given-names"), author.get("family-names")
        person = bool(family)
        name = " ".join(filter(None, (given, family))) if person else author["name"]
        entity: Entity = {"@id": str(author.get("orcid") or f"#author-{number}"), "name": name}
        entity["@type"] = "Person" if person else "Organization"
        entity |= {"givenName": given, "familyName": family} if given and family else {}
        if person and author.get("affiliation"):
            entity["affiliation"] = {"@id": f"#affiliation-{number}"}
        yield entity


def _context(cited: Entity) -> Iterator[Entity]:
    yield from _authors(cited)
    for number, author in enumerate(cited["authors"], 1):
        if author.get("family-names") and author.get("affiliation"):
            name = str(author["affiliation"])
            yield {"@id": f"#affiliation-{number}", "@type": "Organization", "name": name}


def _software(experiment: RecordedExperiment) -> Iterator[Entity]:
    version = experiment.versions.get("tailtrim", VERSION)
    yield {
        "@id": _TAILTRIM,
        "@type": "SoftwareApplication",
        "name": "tailtrim",
        "url": {"@id": README},
        "version": version,
        "softwareVersion": version,
    }
    yield {
        "@id": _YAML,
        "@type": "ComputerLanguage",
        "name": "YAML, with the keys of a plan of tailtrim",
        "url": "https://yaml.org/spec/1.1/",
        "version": "1.1",
    }


def _of_experiment(root: Path, experiment: RecordedExperiment) -> Iterator[Entity]:
    record, whole = safe_files.record(root / _RECORD), _whole(root)
    nodes = record.get("environment") or {}
    yield {
        "@id": _ALL,
        "@type": ["CreateAction", "Experiment"],
        "name": f"Execution of the experiment {experiment.name}",
        "instrument": {"@id": whole if whole == _PLAN else _TAILTRIM},
        "object": [{"@id": whole}],
        "result": [{"@id": _RECORD}],
        "actionStatus": {"@id": _DONE},
        "experimentNodes": [{"@id": _node(name)} for name in nodes],
        "includedOSImages": [{"@id": _image(name)} for name in nodes],
        **({"startTime": experiment.began} if experiment.began else {}),
    }
    for name, told in nodes.items():
        yield {
            "@id": _node(name),
            "@type": "ExperimentNode",
            "name": name,
            "description": "; ".join(f"{key}: {value}" for key, value in told.items()),
            "bootedImage": {"@id": _image(name)},
        }
        yield {
            "@id": _image(name),
            "@type": "OSImage",
            "name": f"Linux {told.get('kernel', 'unknown')}",
            "description": f"What {name} ran: {told.get('build', 'build unknown')}",
            "bootParameters": told.get("boot_line", ""),
            **_packages(told),
        }
    for run in experiment.runs:
        yield _run(root, run)


def _packages(told: Entity) -> Entity:
    """Return where the packages of a node are."""
    name = packages.file_of(told)
    return {} if name is None else {"subjectOf": {"@id": f"{EXPERIMENT}/{name}"}}


def _run(root: Path, run: RecordedRun) -> Entity:
    folder = f"{EXPERIMENT}/{run.outcome.run}"
    entity: Entity = {
        "@id": _action(run),
        "@type": ["CreateAction", "LoopRun"],
        "name": f"{run.outcome.run}: {run.name}",
        "instrument": {"@id": _TAILTRIM},
        "object": [{"@id": _whole(root)}],
        "runOfLoopedCommand": {"@id": _whole(root)},
        "status": run.problem or "valid",
        "actionStatus": {"@id": _DONE if run.directory is not None else _FAILED},
    }
    if run.directory is None:
        return entity | {"error": run.problem or "no result"}
    results = [
        name for name in safe_files.files(root / folder) if name.endswith((".json", ".parquet"))
    ]
    entity["result"] = [{"@id": f"{folder}/{name}"} for name in results]
    entity["resultData"] = entity["result"]
    if (root / folder / "loop.json").is_file():
        entity["variableSet"] = {"@id": f"{folder}/loop.json"}
    roles = _nodes(root / folder)
    if roles:
        entity["executedOn"] = [{"@id": _node(name)} for name in roles]
    return entity | _times(run, root / folder)


def _nodes(run: Path) -> list[str]:
    place = run / "nodes.json"
    known = safe_files.record(place).get("nodes") if place.is_file() else None
    return list(known) if isinstance(known, dict) else []


def _times(run: RecordedRun, folder: Path) -> Entity:
    """Return when a run began and ended by its stamps, where these are times of day."""
    assert run.directory is not None  # noqa: S101 - called for complete runs
    place = folder / "nodes.json"
    numbers = safe_files.record(place).get("numbers", {}) if place.is_file() else {}
    clocks = set(numbers.get("summary", {}).get("clocks", {}).values())
    summary = run.directory.summary
    first_ns, last_ns = summary.ingress_tap.first_ns, summary.egress_tap.last_ns
    if clocks != {_REALTIME} or first_ns is None or last_ns is None:
        return {}
    began, ended = (datetime.fromtimestamp(ns / 1e9, UTC) for ns in (first_ns, last_ns))
    return {
        "startTime": began.isoformat(timespec="microseconds"),
        "endTime": ended.isoformat(timespec="microseconds"),
        "duration": f"PT{(last_ns - first_ns) / 1e9:.3f}S",
    }


def _file(root: Path, name: str, experiment: RecordedExperiment) -> Entity:
    place = root / name
    kind = _TYPES.get(place.suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    entity: Entity = {
        "name": place.name,
        "contentSize": str(place.stat().st_size),
        "encodingFormat": kind,
        "sha256": sha256(place),
    }
    if name == _PLAN:
        entity["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
        entity |= {"name": f"Plan of {experiment.name}", "programmingLanguage": {"@id": _YAML}}
    elif name.startswith(f"{EXPERIMENT}/{packages.FOLDER}/"):
        entity["description"] = "Packages of a node: a line with name and version of each."
    elif name == LICENSE:
        entity |= {"@type": ["File", "CreativeWork"], "description": "The licence of this data."}
    elif name == CITATION:
        entity |= {"@type": ["File", "CreativeWork"], "description": "How to cite this data."}
    return entity


def _action(run: RecordedRun) -> str:
    return f"#{run.outcome.run}"


def _node(name: str) -> str:
    return f"#node-{name}"


def _image(name: str) -> str:
    return f"#image-{name}"
