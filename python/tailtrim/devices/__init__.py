"""Devices under test: what a plan may say of each, beside what starts it.

A new one is a file with a subclass of :class:`.device.InlineDevice`, and a place in
:data:`AnyDevice`.
"""

from typing import Annotated

from pydantic import Field

from tailtrim.devices.bridge import Bridge
from tailtrim.devices.command import Command
from tailtrim.devices.device import InlineDevice
from tailtrim.devices.forward import Forward
from tailtrim.devices.nftables import Nftables
from tailtrim.devices.openvswitch import OpenVSwitch
from tailtrim.devices.reflector import Reflector
from tailtrim.devices.router import Router
from tailtrim.devices.snort import Snort
from tailtrim.devices.suricata import Suricata
from tailtrim.devices.testpmd import Testpmd
from tailtrim.devices.wire import Wire
from tailtrim.devices.xdp import Xdp

#: Devices that are ready to use, in the order in which they are told; the tag is their preset.
AnyDevice = Annotated[
    Wire
    | Forward
    | Testpmd
    | Bridge
    | Router
    | Nftables
    | OpenVSwitch
    | Xdp
    | Suricata
    | Snort
    | Command
    | Reflector,
    Field(discriminator="preset"),
]

__all__ = [
    "AnyDevice",
    "Bridge",
    "Command",
    "Forward",
    "InlineDevice",
    "Nftables",
    "OpenVSwitch",
    "Reflector",
    "Router",
    "Snort",
    "Suricata",
    "Testpmd",
    "Wire",
    "Xdp",
]
