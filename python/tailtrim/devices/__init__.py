"""Devices under test: the options of each in a plan, and its start.

A new one is a file with a subclass of :class:`.device.InlineDevice` and a place in :data:`DEVICES`,
or a package with an entry point in the group ``tailtrim.devices`` (docs/extending.md).
"""

from typing import Annotated

from tailtrim.devices.device import Device, InlineDevice
from tailtrim.kinds import Kinds

#: Devices that are ready to use by their preset, in the order in which they are told.
DEVICES = Kinds(
    "tailtrim.devices",
    "preset",
    {
        "wire": "tailtrim.devices.wire:Wire",
        "forward": "tailtrim.devices.forward:Forward",
        "testpmd": "tailtrim.devices.testpmd:Testpmd",
        "bridge": "tailtrim.devices.bridge:Bridge",
        "router": "tailtrim.devices.router:Router",
        "nftables": "tailtrim.devices.nftables:Nftables",
        "ovs": "tailtrim.devices.openvswitch:OpenVSwitch",
        "xdp": "tailtrim.devices.xdp:Xdp",
        "suricata": "tailtrim.devices.suricata:Suricata",
        "snort": "tailtrim.devices.snort:Snort",
        "command": "tailtrim.devices.command:Command",
        "reflector": "tailtrim.devices.reflector:Reflector",
    },
)
AnyDevice = Annotated[Device, DEVICES]

__all__ = ["DEVICES", "AnyDevice", "Device", "InlineDevice"]
