"""Booting a machine into another kernel and boot line; its firmware, GRUB and kexec are played."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from played_machine import OLD, UUID, Machine, Plug
from tools import GRUB, need

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.boot import reboot as reboot_module
from tailtrim.laboratory.nodes.boot.line import BootLine, BootSeen
from tailtrim.laboratory.nodes.boot.methods import Grub, Kexec
from tailtrim.laboratory.nodes.boot.reboot import BootMethod, reboot

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ("root=/dev/sda1", "isolcpus=managed_irq,domain,2-3", "x=$y", "nohz_full=2-3")
LINE = BootLine("/boot/vmlinuz-6.12", "/boot/initrd-6.12", WORDS, "6.12")
CUSTOM = "boot/grub/custom.cfg"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    need(*GRUB)
    monkeypatch.setattr(reboot_module, "_POLL_S", 0.01)
    made = Machine(tmp_path)
    tried = made.call("cat", "/proc/cmdline")
    if tried.returncode != 0:
        pytest.skip(f"this host allows no mount namespaces: {tried.stderr.strip()}")
    assert tried.stdout == f"{OLD}\n"
    return made


@pytest.mark.parametrize("way", [Kexec(), Grub()])
def test_a_machine_boots_into_a_line(machine: Machine, way: BootMethod) -> None:
    before = BootSeen.of(machine)
    seen = reboot(machine.reach, way, LINE, within_s=1)
    assert (seen.release, seen.words) == ("6.12", WORDS)
    assert seen.boot_id != before.boot_id
    assert machine.resets == (1 if isinstance(way, Grub) else 0)


def test_kexec_loads_what_is_asked_for(machine: Machine) -> None:
    Kexec().prepare(machine, LINE)
    assert (machine.read("media/loaded") or "").splitlines() == [
        "--load",
        "--kexec-syscall-auto",
        f"--command-line={LINE.text}",
        "--initrd=/boot/initrd-6.12",
        "/boot/vmlinuz-6.12",
    ]
    Kexec().restore(machine)
    assert machine.read("sys/kernel/kexec_loaded") == "0\n"


def test_kexec_works_without_systemd(machine: Machine) -> None:
    machine.without_systemd()
    machine.plays("systemctl", "exit 1")
    assert reboot(machine.reach, Kexec(), LINE, within_s=1).release == "6.12"


def test_grub_works_without_systemd(machine: Machine) -> None:
    machine.without_systemd()
    machine.plays("systemctl", "exit 1")
    assert reboot(machine.reach, Grub(), LINE, within_s=1).release == "6.12"


def test_a_kernel_that_allows_no_kexec_is_told(machine: Machine) -> None:
    machine.plays("kexec", "echo 'kexec_load failed: Operation not permitted' >&2; exit 255")
    with pytest.raises(HostError, match=r"^dut: kexec --load .*Operation not permitted"):
        reboot(machine.reach, Kexec(), LINE, within_s=1)
    machine.plays("kexec", "")
    with pytest.raises(HostError, match=r"kexec_loaded is not 1,.* kexec --load"):
        reboot(machine.reach, Kexec(), LINE, within_s=1)


def test_a_refused_kexec_is_unloaded(machine: Machine) -> None:
    machine.plays("systemctl", "echo 'Access denied' >&2; exit 1")
    with pytest.raises(HostError, match=r"^dut: systemctl kexec: Access denied"):
        reboot(machine.reach, Kexec(), LINE, within_s=1)
    assert machine.read("sys/kernel/kexec_loaded") == "0\n"


@pytest.mark.parametrize("way", [Kexec(), Grub()])
@pytest.mark.parametrize("missing", ["kernel", "initrd"])
def test_a_missing_file_is_told(machine: Machine, way: BootMethod, missing: str) -> None:
    files = {"kernel": LINE.kernel, "initrd": LINE.initrd or "", missing: "/boot/none"}
    line = BootLine(files["kernel"], files["initrd"], WORDS, "6.12")
    with pytest.raises(HostError, match=r"^dut: /boot/none is missing"):
        reboot(machine.reach, way, line, within_s=1)


@pytest.mark.parametrize("own", [None, "", "set timeout=3\n", "set timeout=3"])
def test_grubs_files_are_as_before(machine: Machine, own: str | None) -> None:
    if own is not None:
        machine.write(CUSTOM, own)
    environment = machine.environment
    Grub().prepare(machine, LINE)
    # Twice, as after a controller that died.
    Grub().prepare(machine, LINE)
    written = machine.read(CUSTOM) or ""
    assert written.startswith(own or "")
    assert written.count("menuentry") == 1
    assert f"\tsearch --no-floppy --fs-uuid --set=root {UUID}\n" in written
    assert "\tlinux '/vmlinuz-6.12' 'root=/dev/sda1' 'isolcpus=" in written
    assert "\tinitrd '/initrd-6.12'\n" in written
    assert machine.environment == f"{environment}next_entry=tailtrim\n"
    Grub().restore(machine)
    assert (machine.read(CUSTOM) or "").rstrip("\n") == (own or "").rstrip("\n")
    assert machine.environment == environment


def test_an_entry_that_grub_refuses_is_taken_back(machine: Machine) -> None:
    machine.write(CUSTOM, "if true; then\n")
    with pytest.raises(HostError, match=r"^dut: grub-script-check /boot/grub/custom\.cfg: "):
        reboot(machine.reach, Grub(), LINE, within_s=1)
    assert machine.read(CUSTOM) == "if true; then\n"
    assert "next_entry" not in machine.environment


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("media/below", "lvm\n", "on lvm, where GRUB cannot"),
        ("media/below", "diskfilter mdraid1x\n", "on diskfilter mdraid1x,"),
        ("media/filesystem", "btrfs\n", "on btrfs, where GRUB cannot"),
        ("boot/grub/grub.cfg", "set next_entry=\n", "grub.cfg does not .*custom.cfg"),
        ("boot/grub/grub.cfg", "source custom.cfg\n", "grub.cfg does not .*next_entry"),
    ],
)
def test_a_grub_that_would_not_fall_back_is_refused(
    machine: Machine, file: str, text: str, told: str
) -> None:
    machine.write(file, text)
    with pytest.raises(HostError, match=told):
        reboot(machine.reach, Grub(), LINE, within_s=1)
    assert machine.read(CUSTOM) is None
    assert machine.resets == 0


def test_a_kernel_that_grub_does_not_read_is_refused(machine: Machine) -> None:
    line = BootLine("/run/systemd/system", None, WORDS, "6.12")
    with pytest.raises(HostError, match=r"/run/systemd/system.*expected it in /boot"):
        reboot(machine.reach, Grub(), line, within_s=1)


def test_a_host_that_does_not_come_up_falls_back_by_its_next_reset(machine: Machine) -> None:
    machine.hangs = True
    with pytest.raises(HostError, match=r"new boot within 0\.1 s, .*dut: no route"):
        reboot(machine.reach, Grub(), LINE, within_s=0.1)
    machine.reset()
    assert BootSeen.of(machine).release == "6.1"
    Grub().restore(machine)
    assert machine.read(CUSTOM) is None


@pytest.mark.parametrize("way", [Kexec(), Grub()])
def test_power_is_cycled_once_where_allowed(machine: Machine, way: BootMethod) -> None:
    machine.hangs = True
    plug = Plug(machine=machine)
    expected = r"uname -r is 6\.1, expected 6\.12, .*power was cycled"
    with pytest.raises(HostError, match=expected):
        reboot(machine.reach, way, LINE, within_s=0.1, power=plug)
    assert machine.resets == (2 if isinstance(way, Grub) else 1)
    assert machine.read(CUSTOM) is None


def test_a_machine_that_never_reboots_is_told(machine: Machine) -> None:
    machine.plays("systemctl", "")
    with pytest.raises(HostError, match=r"within 0\.1 s, .*in the old one"):
        reboot(machine.reach, Kexec(), LINE, within_s=0.1)


@pytest.mark.parametrize(
    ("release", "words", "told"),
    [
        ("6.1", WORDS, r"uname -r is 6\.1, expected 6\.12"),
        ("6.12", WORDS[1:], "/proc/cmdline lacks root=/dev/sda1"),
        ("6.12", (*WORDS, "quiet"), "/proc/cmdline also has quiet"),
        ("6.12", ("ro", *WORDS[1:]), "/proc/cmdline lacks root=/dev/sda1 .*has ro"),
        ("6.12", WORDS[::-1], "/proc/cmdline .*another order"),
        ("6.12", WORDS, ""),
    ],
)
def test_what_is_not_as_asked_is_told(release: str, words: tuple[str, ...], told: str) -> None:
    assert re.fullmatch(told, LINE.difference(BootSeen("1", release, words)) or "")


@pytest.mark.parametrize("word", ["a b", "a\n", "", 'dyndbg="file x +p"', "it's", "back\\slash"])
def test_a_word_that_would_not_arrive_is_refused(word: str) -> None:
    with pytest.raises(HostError, match="without white space, quotes"):
        BootLine("/boot/vmlinuz", None, ("ro", word), "6.12")
