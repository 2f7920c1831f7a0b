"""Ports of a guest: virtio-net on taps, or PCI devices of this host."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.errors import HostError
from tailtrim.laboratory.experiment import guests
from tailtrim.laboratory.nodes.vm import kernel
from tailtrim.laboratory.nodes.vm.guest import PORTS, ports_with
from tailtrim.laboratory.nodes.vm.machine import network
from tailtrim.laboratory.nodes.vm.pci import PassedPort
from tailtrim.laboratory.plan.boot import Boot, VirtualMachine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OUT = PassedPort(
    *("0000:03:00.1", "eth3", "02:00:00:00:0a:03", "ixgbe", "ixgbe", 13),
    *("eth5", "02:00:00:00:0a:05"),
)


def devices(words: Sequence[str]) -> list[str]:
    return [device for option, device in pairwise(words) if option == "-device"]


def test_without_pci_devices_all_ports_are_virtio() -> None:
    ports = ports_with({})
    assert ports == PORTS
    words = list(network(list(ports.values()), {"tap0": 5, "tap1": 6}))
    assert words[:2] == ["-netdev", words[1]]
    assert words[1].startswith("tap,id=port0,fd=5")
    assert [device.partition(",")[0] for device in devices(words)] == ["virtio-net-pci"] * 2


def test_a_device_is_passed_through_beside_a_tap() -> None:
    ports = ports_with({"out": OUT})
    words = list(network(list(ports.values()), {"tap0": 5}))
    assert [word.partition(",")[0] for word in words] == [
        *("-netdev", "tap", "-device", "virtio-net-pci"),
        *("-device", "vfio-pci"),
    ]
    assert devices(words)[1] == "vfio-pci,host=0000:03:00.1,id=port1,rombar=0"


def test_the_record_says_what_each_port_was() -> None:
    record = {name: port.record for name, port in ports_with({"out": OUT}).items()}
    assert record == {
        "d0": {"kind": "virtio-net", "mac": "02:00:00:00:00:02"},
        "d1": {
            "kind": "passed through",
            "mac": "02:00:00:00:0a:03",
            "pci": "0000:03:00.1",
            "iommu_group": 13,
            "interface_before": "eth3",
            "driver_before": "ixgbe",
            "cable": "eth5",
        },
    }


def test_a_setting_that_a_driver_refused_is_a_notice_of_the_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "eth0 vf 0 trust on: Operation not supported"

    def booted(_: Any, __: str, ___: Any, console: Path, **____: Any) -> SimpleNamespace:
        console.touch()
        return SimpleNamespace(refused=[refused])

    monkeypatch.setattr(guests, "Guest", booted)
    plan = SimpleNamespace(vm=VirtualMachine())
    experiment: Any = SimpleNamespace(plan=plan, notices=[])
    boot, place = Boot(kernel="trixie/amd64"), tmp_path / "boot-000"
    place.mkdir()
    image: Any = None
    guests.Guests(experiment, {boot: image}).boot(boot, place)
    assert experiment.notices == [f"boot-000: vm.ports: not set: {refused}"]


def modules(folder: Path) -> Path:
    tree = folder / "given"
    drivers = ("drivers/net/ethernet/intel/ixgbe/ixgbe", "drivers/net/mdio", "sound/pci/snd")
    for name in drivers:
        place = tree / "kernel" / f"{name}.ko"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"")
    (tree / "modules.builtin").write_text("kernel/drivers/net/ethernet/intel/e1000/e1000.ko\n")
    return tree


@pytest.fixture
def bzimage(tmp_path: Path) -> Path:
    """As much of a kernel as tells its release."""
    head = bytearray(1 << 10)
    head[0x202:0x206] = b"HdrS"
    head[0x20E:0x210] = (0x100).to_bytes(2, "little")
    head[0x300:0x30C] = b"6.1.0-own x\0"
    (tmp_path / "bzImage").write_bytes(head)
    return tmp_path / "bzImage"


def taken(bzimage: Path, drivers: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the modules that a guest gets, as if depmod had said what they depend on."""

    def depends(folder: Path, release: str) -> None:
        tree = folder / "lib" / "modules" / release
        intel = "kernel/drivers/net/ethernet/intel/ixgbe/ixgbe.ko"
        lines = f"{intel}: kernel/drivers/net/mdio.ko\nkernel/drivers/net/mdio.ko:\n"
        (tree / "modules.dep").write_text(f"{lines}kernel/sound/pci/snd.ko:\n")

    monkeypatch.setattr(kernel, "_depmod", depends)
    folder = bzimage.with_name("folder")
    folder.mkdir()
    one = kernel.take(str(bzimage), modules(bzimage.parent), folder, drivers)
    return [path.name for path in one.modules if path.suffix == ".ko"]


def test_the_guest_gets_the_driver_of_the_card(
    bzimage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taken(bzimage, ["ixgbe", "e1000"], monkeypatch) == ["ixgbe.ko", "mdio.ko"]


def test_without_a_card_the_guest_gets_no_driver(
    bzimage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taken(bzimage, [], monkeypatch) == []


def test_a_kernel_without_the_driver_is_told(
    bzimage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HostError, match=r"6\.1\.0-own: no module mlx5_core"):
        taken(bzimage, ["mlx5_core"], monkeypatch)
