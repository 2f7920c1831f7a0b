"""Meters of power and energy, as a testbed file says them: what a node takes.

A new meter is a file with a subclass of :class:`.meter.Meter`, and a place in :data:`AnyMeter`. A
new outlet is a dialect of :mod:`tailtrim.nodes.power`.
"""

from typing import Annotated

from pydantic import Field

from tailtrim.nodes.meters.hwmon import Hwmon
from tailtrim.nodes.meters.ipmi import IpmiMeter
from tailtrim.nodes.meters.meter import EVERY_S, Channel, Meter, Reader, Start, Value
from tailtrim.nodes.meters.outlet import OutletMeter
from tailtrim.nodes.meters.powercap import MOST_W, Powercap
from tailtrim.nodes.meters.redfish import RedfishMeter
from tailtrim.nodes.meters.snmp import SnmpMeter

#: Meters; the tag is their kind.
AnyMeter = Annotated[
    Powercap | Hwmon | IpmiMeter | RedfishMeter | OutletMeter | SnmpMeter,
    Field(discriminator="kind"),
]

__all__ = [
    "EVERY_S",
    "MOST_W",
    "AnyMeter",
    "Channel",
    "Hwmon",
    "IpmiMeter",
    "Meter",
    "OutletMeter",
    "Powercap",
    "Reader",
    "RedfishMeter",
    "SnmpMeter",
    "Start",
    "Value",
]
