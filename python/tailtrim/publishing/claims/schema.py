"""Keys of an entry of ``claims.yml``, and the JSON Schema of the file."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, field_validator, model_validator

from tailtrim.laboratory.plan.fields import Number, Scalar
from tailtrim.model_base import Strict
from tailtrim.publishing.claims.statement import Ordered, Statement, statement

Where = Annotated[
    dict[str, Scalar | list[Scalar]],
    Field(
        description="Runs by loop variables and factors, by run and repetition, or by what the plan"
        " says of a run (dut.node). A list is any of its values."
    ),
]


#: Characters of a statement.
_LONGEST = 200


class Entry(Strict):
    """A claim about an experiment."""

    claim: str = Field(description="The claim in words.", min_length=1, max_length=500)
    expect: str | list[str] = Field(
        description="Such as 'p99.99 < 50us', 'loss < 0.01%', 'p99.9 = 104.1 us ± 0.1 us',"
        " 'p99.9 prints 104.1 us', 'samples = 289992', 'lost = 0', 'p99 of A < p99 of B'."
        " Of a list, all.",
    )
    where: Where = Field(default={}, description="Which runs; by default all.")
    a: Where = Field(default={}, description="The runs A of a comparison.")
    b: Where = Field(default={}, description="The runs B of a comparison.")
    confidence: Number = Field(
        default=0.95, description="Of the intervals that decide.", ge=0.5, lt=1
    )

    @field_validator("expect", mode="before")
    @classmethod
    def _read(cls, told: Any) -> Any:
        texts = told if isinstance(told, list) else [told]
        if not all(isinstance(text, str) and len(text) <= _LONGEST for text in texts):
            raise ValueError("expected a statement, or a list of them")
        for text in texts:
            statement(text)
        return told

    @property
    def statements(self) -> list[Statement]:
        """Expected statements; all of them have to hold."""
        told = [self.expect] if isinstance(self.expect, str) else self.expect
        return [statement(text) for text in told]

    @model_validator(mode="after")
    def _sides(self) -> Entry:
        compared = {isinstance(one, Ordered) for one in self.statements}
        if len(compared) != 1:
            raise ValueError("expect: expected at least one statement, and none beside comparisons")
        return self._fitting(compared=compared.pop())

    def _fitting(self, *, compared: bool) -> Entry:
        if compared and not (self.a and self.b):
            raise ValueError("expect: compares A with B, so a and b have to say which runs")
        if compared and self.where:
            raise ValueError("where: a comparison has its runs in a and b")
        for side in ("a", "b"):
            if getattr(self, side) and not compared:
                raise ValueError(f"{side}: only for comparisons, such as 'p99 of A < p99 of B'")
        return self


def json_schema() -> str:
    """Return the JSON Schema, as in ``schema/claims.json``."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Claims about an experiment of tailtrim",
        **TypeAdapter(list[Entry]).json_schema(),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
