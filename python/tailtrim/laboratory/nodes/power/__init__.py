"""A node's power, as a testbed file says it: who can switch it, and how.

A new way is a file with a subclass of :class:`.power.Power` and a place in :data:`POWER`, or a
package with an entry point in the group ``tailtrim.power``.
"""

from typing import Annotated

from tailtrim.kinds import Kinds
from tailtrim.laboratory.nodes.power.power import BootSource, Power, State

#: Ways to switch power by their kind, in the order in which they are told.
POWER = Kinds(
    "tailtrim.power",
    "kind",
    {
        "redfish": "tailtrim.laboratory.nodes.power.redfish:Redfish",
        "ipmi": "tailtrim.laboratory.nodes.power.ipmi:Ipmi",
        "command": "tailtrim.laboratory.nodes.power.command:CommandPower",
    },
    elsewhere={"outlet": "tailtrim-power", "person": "tailtrim-power"},
)
AnyPower = Annotated[Power, POWER]

__all__ = ["POWER", "AnyPower", "BootSource", "Power", "State"]
