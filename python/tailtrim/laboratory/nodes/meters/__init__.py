"""Meters of power and energy, as a testbed file says them: what a node takes.

A new meter is a file with a subclass of :class:`.meter.Meter` and a place in :data:`METERS`, or a
package with an entry point in the group ``tailtrim.meters``.
"""

from typing import Annotated

from tailtrim.kinds import Kinds
from tailtrim.laboratory.nodes.meters.meter import EVERY_S, Channel, Meter, Reader, Start, Value

#: Meters by their kind, in the order in which they are told.
METERS = Kinds(
    "tailtrim.meters",
    "kind",
    {
        "powercap": "tailtrim.laboratory.nodes.meters.powercap:Powercap",
        "hwmon": "tailtrim.laboratory.nodes.meters.hwmon:Hwmon",
        "ipmi": "tailtrim.laboratory.nodes.power.ipmi:IpmiMeter",
        "redfish": "tailtrim.laboratory.nodes.power.redfish:RedfishMeter",
        "command": "tailtrim.laboratory.nodes.power.command:CommandMeter",
    },
    elsewhere={"outlet": "tailtrim-power", "snmp": "tailtrim-power"},
)
AnyMeter = Annotated[Meter, METERS]

__all__ = ["EVERY_S", "METERS", "AnyMeter", "Channel", "Meter", "Reader", "Start", "Value"]
