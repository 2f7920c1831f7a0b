"""Devices under test: the options of each in a plan, and its start.

A new one is a file with a subclass of :class:`.device.InlineDevice` and a place in :data:`DEVICES`,
or a package with an entry point in the group ``tailtrim.devices`` (docs/extending.md).
"""

from typing import Annotated

from tailtrim.kinds import Kinds
from tailtrim.laboratory.devices.device import Device, InlineDevice

#: Devices that are ready to use by their preset, in the order in which they are told.
DEVICES = Kinds(
    "tailtrim.devices",
    "preset",
    {
        "wire": "tailtrim.laboratory.devices.wire:Wire",
        "forward": "tailtrim.laboratory.devices.forward:Forward",
        "testpmd": "tailtrim.laboratory.devices.testpmd:Testpmd",
        "dpdk": "tailtrim.laboratory.devices.dpdk:Dpdk",
        "bridge": "tailtrim.laboratory.devices.bridge:Bridge",
        "router": "tailtrim.laboratory.devices.router:Router",
        "nftables": "tailtrim.laboratory.devices.nftables:Nftables",
        "ovs": "tailtrim.laboratory.devices.openvswitch:OpenVSwitch",
        "xdp": "tailtrim.laboratory.devices.xdp:Xdp",
        "suricata": "tailtrim.laboratory.devices.suricata:Suricata",
        "snort": "tailtrim.laboratory.devices.snort:Snort",
        "command": "tailtrim.laboratory.devices.command:Command",
        "reflector": "tailtrim.laboratory.devices.reflector:Reflector",
    },
)
AnyDevice = Annotated[Device, DEVICES]

__all__ = ["DEVICES", "AnyDevice", "Device", "InlineDevice"]
