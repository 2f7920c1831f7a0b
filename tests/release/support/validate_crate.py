"""Validates a crate by one profile of roc-validator, and prints what it finds as JSON.

    python validate_crate.py CRATE PROFILE CONTEXT

It runs in the validator's own environment. CONTEXT is a file with the JSON-LD context of RO-Crate,
which the validator would fetch otherwise.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Terms with other names in the context of 1.2 than in that of 1.3, which is the one used here.
OF_1_2 = {
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "FormalParameter": "https://bioschemas.org/FormalParameter",
}


@dataclass
class Answer:
    """The context, as if it had been fetched."""

    text: str
    status_code: int = 200

    @property
    def headers(self) -> dict[str, str]:
        """Its type."""
        return {"Content-Type": "application/ld+json"}

    def json(self) -> dict[str, Any]:
        """Return it."""
        context: dict[str, Any] = json.loads(self.text)
        context["@context"] |= OF_1_2
        return context


def main(crate: str, profile: str, context: str) -> None:
    """Validate."""
    # Only there: nothing else of the tests can have these.
    from rocrate_validator import models, services  # noqa: PLC0415
    from rocrate_validator.utils.http import HttpRequester  # noqa: PLC0415

    answer = Answer(Path(context).read_text(encoding="utf-8"))

    def get(_: object, url: str, **__: object) -> Answer:
        if not url.startswith("https://w3id.org/ro/crate/1.2/context"):
            raise RuntimeError(url)
        return answer

    HttpRequester.get = get
    settings = services.ValidationSettings(
        rocrate_uri=crate,
        profile_identifier=profile,
        # Run crates inherit from RO-Crate 1.1 there; 1.2 is looked at as a profile for itself.
        disable_inherited_profiles_issue_reporting=True,
        requirement_severity=models.Severity.REQUIRED,
    )
    found = services.validate(settings).get_issues()
    sys.stdout.write(json.dumps([f"{one.check.identifier}: {one.message}" for one in found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
