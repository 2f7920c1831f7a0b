"""Plans: what to run, as data. A plan is a YAML file.

::

    name: forwarder-tail
    dut: {preset: testpmd}
    traffic: {frame_bytes: 64, rate_pps: $rate, schedule: cbr, flows: 256, duration_s: 5}
    loop: {rate: [10000, 60000, 120000]}
    repeat: 3
    skip_s: 1

``$rate`` stands for each value of the loop variable ``rate`` in turn, also within a text such as
``burst:$size``. Several loop variables
multiply: each combination is run ``repeat`` times. ``factors`` are loop variables that do not: one
at a time leaves its first value. ``schema/plan.json`` is the JSON Schema,
``schema/testbed.json`` that of testbed files.

Names are loaded when they are first used: the names of the examples need no parser of plans.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailtrim.laboratory.plan.boot import Boot
    from tailtrim.laboratory.plan.loading import load, loop_variables
    from tailtrim.laboratory.plan.model import COUNTED, TOGETHER, TRACED, Limits, Plan, Run
    from tailtrim.laboratory.plan.run_order import LEAST_BOOTS, booted, device_of, kept
    from tailtrim.laboratory.plan.schema import json_schema, testbed_schema
    from tailtrim.laboratory.plan.testbed import load_testbed
    from tailtrim.laboratory.plan.traffic import Traffic

__all__ = [
    "COUNTED",
    "LEAST_BOOTS",
    "TOGETHER",
    "TRACED",
    "Boot",
    "Limits",
    "Plan",
    "Run",
    "Traffic",
    "booted",
    "device_of",
    "json_schema",
    "kept",
    "load",
    "load_testbed",
    "loop_variables",
    "testbed_schema",
]

_PLACES = {
    "Boot": "boot",
    "LEAST_BOOTS": "run_order",
    "Traffic": "traffic",
    "booted": "run_order",
    "device_of": "run_order",
    "kept": "run_order",
    "json_schema": "schema",
    "load": "loading",
    "load_testbed": "testbed",
    "loop_variables": "loading",
    "testbed_schema": "schema",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_PLACES.get(name, 'model')}"), name)
    globals()[name] = value
    return value
