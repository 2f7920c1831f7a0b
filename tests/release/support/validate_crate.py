"""Validates a crate by one profile of roc-validator, and prints what it finds as JSON.

    python validate_crate.py CRATE PROFILE CONTEXT

It runs in the validator's own environment. CONTEXT is a file with the JSON-LD context of RO-Crate,
which the validator would fetch otherwise.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rocrate_validator import models, services
from rocrate_validator.utils.http import HttpRequester

#: What the context of 1.2 calls otherwise than that of 1.3, which is the one at hand.
OF_1_2 = {
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "FormalParameter": "https://bioschemas.org/FormalParameter",
}
CRATE, PROFILE, CONTEXT = sys.argv[1:]


class Answer:
    """The context, as if it had been fetched."""

    status_code = 200
    headers = {"Content-Type": "application/ld+json"}  # noqa: RUF012 - only read
    text = Path(CONTEXT).read_text(encoding="utf-8")

    def json(self) -> dict[str, Any]:
        """Return it."""
        context: dict[str, Any] = json.loads(self.text)
        context["@context"] |= OF_1_2
        return context


def get(_: object, url: str, **__: object) -> Answer:
    """Answer instead of the network."""
    if not url.startswith("https://w3id.org/ro/crate/1.2/context"):
        raise RuntimeError(url)
    return Answer()


HttpRequester.get = get
settings = services.ValidationSettings(
    rocrate_uri=CRATE,
    profile_identifier=PROFILE,
    # Run crates inherit from RO-Crate 1.1 there; 1.2 is looked at as a profile for itself.
    disable_inherited_profiles_issue_reporting=True,
    requirement_severity=models.Severity.REQUIRED,
)
found = services.validate(settings).get_issues()
sys.stdout.write(json.dumps([f"{one.check.identifier}: {one.message}" for one in found]))
