"""An entry of ``claims.yml``: its keys, and the JSON Schema of the file."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field, TypeAdapter, field_validator, model_validator

from tailtrim.claims.statement import Ordered, statement
from tailtrim.plan.base import Number, Scalar
from tailtrim.strict import Strict

Where = Annotated[
    dict[str, Scalar | list[Scalar]],
    Field(
        description="Runs by loop variables and factors, by run and repetition, or by what the plan"
        " says of a run (dut.node). A list is any of its values."
    ),
]


class Entry(Strict):
    """A claim about an experiment."""

    claim: str = Field(description="The claim in words.", min_length=1, max_length=500)
    expect: str = Field(
        max_length=200,
        description="Such as 'p99.99 < 50us', 'loss < 0.01%', 'p99.9 = 104.1 us ± 0.1 us',"
        " 'p99.9 prints 104.1 us', 'samples = 289992', 'lost = 0', 'p99 of A < p99 of B'.",
    )
    where: Where = Field(default={}, description="Which runs; by default all.")
    a: Where = Field(default={}, description="The runs A of a comparison.")
    b: Where = Field(default={}, description="The runs B of a comparison.")
    confidence: Number = Field(
        default=0.95, description="Of the intervals that decide.", ge=0.5, lt=1
    )

    @field_validator("expect")
    @classmethod
    def _read(cls, text: str) -> str:
        statement(text)
        return text

    @model_validator(mode="after")
    def _sides(self) -> Entry:
        compared = isinstance(statement(self.expect), Ordered)
        if compared and not (self.a and self.b):
            raise ValueError("expect: compares A with B, so a and b have to say which runs")
        if compared and self.where:
            raise ValueError("where: a comparison has its runs in a and b")
        for side in ("a", "b"):
            if getattr(self, side) and not compared:
                raise ValueError(f"{side}: only for comparisons, such as 'p99 of A < p99 of B'")
        return self


def json_schema() -> str:
    """Return what ``schema/claims.json`` holds."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Claims about an experiment of tailtrim",
        **TypeAdapter(list[Entry]).json_schema(),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
