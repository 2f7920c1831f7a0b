"""The JSON Schema of a plan, for editors that complete and check while somebody writes."""

from __future__ import annotations

import json
from typing import Any

from tailtrim.plan.model import Plan

_VARIABLE = {"type": "string", "pattern": r"\$", "description": "With a loop variable."}


def json_schema() -> str:
    """Return what ``schema/plan.json`` holds.

    Beyond the model it allows what a file may say instead of a value: a loop variable.
    """
    schema = Plan.model_json_schema()
    for part in ("Dut", "Traffic"):
        properties = schema["$defs"][part]["properties"]
        for name, allowed in properties.items():
            properties[name] = _or_variable(allowed)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A plan of tailtrim run",
        **{key: value for key, value in schema.items() if key != "title"},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _or_variable(allowed: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        key: allowed[key] for key in ("title", "description", "default") if key in allowed
    }
    rest = {key: value for key, value in allowed.items() if key not in told}
    ways = rest["anyOf"] if set(rest) == {"anyOf"} else [rest]
    return {**told, "anyOf": [*ways, _VARIABLE]}
