"""An experiment: the runs of a plan, one after the other, and their files.

::

    experiment.json      name, plan, order, seeds, host, versions, and the outcome of each run
    plan.yml             the plan as it was given
    testbed.svg          the hosts that it ran on, and their cables, if a testbed file has them
    audit.json           how the host was set up when the experiment began (tailtrim audit)
    boots/boot-000/      with guests: console, boot line, audit and record of each boot
    devices/device-000/  with dut.lifetime: record of each device's warm-up, and its output
    failed/run-000/      the logs of a run that failed, and the minutes of a run of hours
    run-000/             a run directory (see :mod:`tailtrim.results`) with further files
        loop.json        the values of the loop variables, device and traffic, repetition
        generator.json   what was intended, sent and refused, departure lateness
        departures.csv   when its CPU stood still while sending, and when probes were late
        capture.json     what the taps saw and dropped
        nodes.json       which node, kernel, boot line and clock each of them is of
        device.json      what the reference forwarder counted; or which device was kept up
        dut.log          what any other device printed
        logs/            what programs of the nodes wrote to standard error, the guest's console
        disturbed.csv    when the reference forwarder disturbed itself
        stalls.csv       when its work stood still
        events.jsonl.zst, events.interrupts.csv, trace.json    with ``trace: true``, who had the CPU
        explanation.json    and the causes of the late packets
        outcome.json     why the run is not to be trusted, if it is not
        ingress.pcap.zst, egress.pcap.zst   where the plan keeps captures

With a reflector (preset ``reflector``) a run directory is that of ``tailtrim ping``; generator.json
is what the client counted, device.json what the reflector did.

A run appears when it is complete. One that is not to be trusted is marked as invalid, with reasons.

Names are loaded when they are first used. Experiments are read by
:mod:`tailtrim.results.experiments`, which needs no nodes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailtrim.laboratory.experiment.boots import Boots
    from tailtrim.laboratory.experiment.context import Listener
    from tailtrim.laboratory.experiment.estimate import Estimate
    from tailtrim.laboratory.experiment.guests import images_for
    from tailtrim.laboratory.experiment.record import Experiment, keep_plan
    from tailtrim.laboratory.experiment.running import conduct, nodes_of

__all__ = [
    "Boots",
    "Estimate",
    "Experiment",
    "Listener",
    "conduct",
    "images_for",
    "keep_plan",
    "nodes_of",
]

_PLACES = {
    "Boots": "boots",
    "Estimate": "estimate",
    "Experiment": "record",
    "Listener": "context",
    "conduct": "running",
    "images_for": "guests",
    "keep_plan": "record",
    "nodes_of": "running",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
