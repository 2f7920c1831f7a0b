"""The JSON Schema of a plan, for editors that complete and check plans."""

from __future__ import annotations

import json
from typing import Any

from tailtrim.laboratory.devices import DEVICES
from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
from tailtrim.laboratory.plan.model import Plan

_VARIABLE = {"type": "string", "pattern": r"\$", "description": "With a loop variable."}
_OF_LOOP = "DeviceOfLoop"


def json_schema() -> str:
    """Return what ``schema/plan.json`` holds.

    Beyond the model it allows what a file may say instead of a value: a loop variable. Where the
    device itself is one, all options are allowed.
    """
    schema = Plan.model_json_schema()
    known = schema["$defs"]
    devices = [known[kind.__name__]["properties"] for kind in DEVICES.models().values()]
    parts = [known[name]["properties"] for name in ("Boot", "Traffic", "ContainerSettings")]
    for properties in (*devices, *parts):
        for name, allowed in properties.items():
            if name != DEVICES.key:
                properties[name] = _or_variable(allowed)
    known[_OF_LOOP] = _of_loop(devices, DEVICES.key)
    testbed = schema["properties"]["testbed"]
    testbed["anyOf"].insert(1, {"type": "string", "pattern": r"\.ya?ml$"})
    one = schema["properties"]["dut"]
    schema["properties"]["dut"] = {"anyOf": [one, {"$ref": f"#/$defs/{_OF_LOOP}"}]}
    return _document("A plan of tailtrim run", schema)


def testbed_schema() -> str:
    """Return what ``schema/testbed.json`` holds."""
    title = "A testbed of tailtrim run and tailtrim testbed"
    return _document(title, TestbedDescription.model_json_schema())


def _document(title: str, schema: dict[str, Any]) -> str:
    named = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **{key: value for key, value in schema.items() if key != "title"},
    }
    return json.dumps(named, indent=2, ensure_ascii=False) + "\n"


def _of_loop(devices: list[dict[str, Any]], tag: str) -> dict[str, Any]:
    """Return what is known of a device that a loop variable names: options of each are allowed."""
    options: dict[str, list[dict[str, Any]]] = {}
    for properties in devices:
        for name, allowed in properties.items():
            if allowed not in options.setdefault(name, []):
                options[name].append(allowed)
    properties = {
        name: ways[0] if len(ways) == 1 else {"anyOf": ways} for name, ways in options.items()
    }
    return {
        "additionalProperties": False,
        "description": "Several devices, each with those of the options that it has.",
        "properties": properties | {tag: _VARIABLE},
        "required": [tag],
        "title": _OF_LOOP,
        "type": "object",
    }


def _or_variable(allowed: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        key: allowed[key] for key in ("title", "description", "default") if key in allowed
    }
    rest = {key: value for key, value in allowed.items() if key not in told}
    ways = rest["anyOf"] if set(rest) == {"anyOf"} else [rest]
    return {**told, "anyOf": [*ways, _VARIABLE]}
