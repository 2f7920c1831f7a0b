"""The dashboard, by Grafana's own model of dashboards."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

SHIPPED = Path(__file__).resolve().parents[2] / "packaging" / "grafana" / "tailtrim-watch.json"


def test_grafanas_model_has_all_that_the_dashboard_says() -> None:
    register_default_plugins()
    written = json.loads(SHIPPED.read_text())
    # The model writes only what it knows.
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(written)))
    assert lost(written, known) == []


def lost(written: object, known: object, place: str = "") -> list[str]:
    """Return the places of values that are missing or others."""
    if isinstance(written, dict) and isinstance(known, dict):
        return [
            found
            for key, value in written.items()
            for found in lost(value, known.get(key), f"{place}/{key}")
        ]
    if isinstance(written, list) and isinstance(known, list) and len(written) == len(known):
        pairs = enumerate(zip(written, known, strict=True))
        return [
            found for key, (one, other) in pairs for found in lost(one, other, f"{place}/{key}")
        ]
    return [] if written == known else [place]
