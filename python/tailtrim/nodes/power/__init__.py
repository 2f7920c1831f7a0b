"""A node's power, as a testbed file says it: who can switch it, and how.

A new way is a file with a subclass of :class:`.power.Power`, and a place in :data:`AnyPower`. A new
outlet is a :class:`.dialects.Dialect`.
"""

from typing import Annotated

from pydantic import Field

from tailtrim.nodes.power.ipmi import IPMITOOL, Ipmi
from tailtrim.nodes.power.outlet import Outlet
from tailtrim.nodes.power.person import Person
from tailtrim.nodes.power.power import BootSource, Power, State
from tailtrim.nodes.power.redfish import Redfish
from tailtrim.nodes.power.secret import Secret

#: Ways to switch power; the tag is their kind.
AnyPower = Annotated[Redfish | Ipmi | Outlet | Person, Field(discriminator="kind")]

__all__ = [
    "IPMITOOL",
    "AnyPower",
    "BootSource",
    "Ipmi",
    "Outlet",
    "Person",
    "Power",
    "Redfish",
    "Secret",
    "State",
]
