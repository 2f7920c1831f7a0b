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
    # What the model does not know is not in what it writes.
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(written)))
    assert lost(written, known) == []


def lost(written: object, known: object, place: str = "") -> list[str]:
    """Return the places of values that are missing or others."""
    if isinstance(written, dict) and isinstance(known, dict):
        items = [(key, written[key], known.get(key)) for key in written]
    elif isinstance(written, list) and isinstance(known, list) and len(written) == len(known):
        items = [(str(key), *pair) for key, pair in enumerate(zip(written, known, strict=True))]
    else:
        return [] if written == known else [place]
    return [found for key, *pair in items for found in lost(*pair, f"{place}/{key}")]
