"""Claims of emulated cards, and what a cable between two of them shows of it."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fetched import ROOTS
from shell_guest import CONSOLE, Guest, booted, imaged, shell, with_libraries
from test_vfio import RECIPE
from tools import QEMU

from tailtrim.laboratory.nodes.vm import image

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parents[2]
#: The emulated counter is good enough, and a kernel that doubts it is slow.
LINE = f"{CONSOLE} net.ifnames=0 tsc=reliable clocksource=tsc iomem=relaxed"
#: Since QEMU 8.0 there is an igb; Debian 13 has 10.0.
NEWER = "trixie-qemu"
AGENT = "/tailtrim-agent"
#: Programs of a guest with an igb, beside their sources here.
HELPERS = ("phc", "unlatch")
#: Free the registers for stamps of received packets of both interfaces.
FREED = 'for n in {}; do unlatch "$(basename "$(readlink -f /sys/class/net/$n/device)")" & done'

#: Kill the agent when the first of two interfaces has its filter, and wait until that is gone. A
#: service manager sends SIGTERM to its helper process, too.
KILLED = f"""
if [ "$3" = capture ]; then
    {AGENT} capture --tap one="$1" --out /tmp/killed >/dev/null 2>&1 & agent=$!
else
    {AGENT} ports --prove "$1" "$2" >/dev/null 2>&1 & agent=$!
fi
filtered() {{ {AGENT} ports "$1" --json | grep -q '"receive": "all"'; }}
until filtered "$1"; do sleep 0.2; done
for process in /proc/[0-9]*; do
    [ "$(cat $process/comm 2>/dev/null)" != tt-keeper ] || kill -TERM "${{process#/proc/}}"
done
sleep 0.2
kill -9 $agent
for _ in $(seq 100); do
    filtered "$1" || {{ sleep 1; exit 0; }}
    sleep 0.2
done
exit 1
"""
#: Capture by the stamps that the first of two interfaces claims.
CAPTURED = f"""
ip link set "$1" up; ip link set "$2" up; sleep 5
{AGENT} capture --tap one="$1" --out /tmp/taken --duration 3s >/dev/null & sleep 1
{AGENT} generate --interface "$2" --rate 100pps --count 20 >/dev/null 2>&1
wait
ip link set "$1" down; ip link set "$2" down
"""


#: Run the contract of ports over cards, and put them back.
CONTRACT = """
for which in all default; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done 2>/dev/null
near=$1 far=$2 kind=$3 mode=$4 without=$5
for end in near far; do
    eval "ip link set \\$$end name $end" && ip link set $end arp off up || exit 2
done
for end in near far; do
    until [ "$(cat /sys/class/net/$end/carrier)" = 1 ]; do sleep 0.1; done
done
export TAILTRIM_TEST_CARDS="$mode"
/bin/it "ports::cards::$kind::" --skip "$without" --test-threads=1 --nocapture
code=$?
for end in near far; do
    ip link set $end down && eval "ip link set $end name \\$$end"
done
exit $code
"""


def cable(card: str, hub: int) -> list[str]:
    """Return QEMU's options for two cards with a cable between them."""
    words = []
    for end in (1, 2):
        port = f"rp{hub}{end}"
        words += ["-device", f"pcie-root-port,id={port},chassis={hub}{end},slot={hub}{end}"]
        words += ["-netdev", f"hubport,id=h{hub}{end},hubid={hub}"]
        place = f"netdev=h{hub}{end},bus={port},mac=02:00:00:00:0{hub}:0{end}"
        words += ["-device", f"{card},{place}"]
    return words


@contextmanager
def guest(
    folder: Path,
    recipe: image.Recipe,
    drivers: list[str],
    *hardware: str,
    program: tuple[str, ...] = (QEMU.program,),
    more: dict[str, Path] | None = None,
) -> Iterator[Guest]:
    """Boot one with these cards, and more files."""
    files = shell() | (more or {})
    files |= {f"bin/{name}": folder / name for name in HELPERS if (folder / name).is_file()}
    options = imaged(folder, recipe, files, LINE)
    words = ["-machine", "q35", "-nic", "none", *hardware, *options]
    with booted(folder, *words, program=program) as booted_guest:
        for driver in drivers:
            booted_guest.run("modprobe", driver)
        yield booted_guest


def proof(
    guest: Guest, *ends: str, meanwhile: str = "true"
) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    """Return the exit code and what was measured, by interface and claim."""
    script = f"{meanwhile} & {AGENT} ports --prove {' '.join(ends)} --json"
    told = guest.call("sh", "-c", script)
    assert told.stdout, told.stderr
    claims = json.loads(told.stdout)["claims"]
    return told.returncode, {(claim["interface"], claim["claim"]): claim for claim in claims}


def listed(guest: Guest) -> dict[str, dict[str, Any]]:
    ports = json.loads(guest.run(AGENT, "ports", "--json"))["ports"]
    return {port["interface"]: port for port in ports}


def kernel_stamps_all(claims: dict[tuple[str, str], dict[str, Any]], *ends: str) -> None:
    for end in ends:
        row = claims[end, "receive-kernel"]
        assert (row["verdict"], row["backward"]) == ("proven", 0), row
        # An emulated card may drop packets at 100 kpps, and none of those at 1 kpps.
        assert row["by_rate"][0]["packets"] == 250, row


def is_crossed(row: dict[str, Any]) -> None:
    """Check the times from transmit to receive stamps of two clocks, of some packets."""
    if row["verdict"] == "untested":
        # A busy host has stopped the guest for seconds.
        assert "were not compared for" in row["why"], row
        return
    assert (row["verdict"], row["clocks"]) == ("partial", 2), row
    assert 0 < row["clock_error_ns"] < 1_000_000, row
    assert min(row["times_ns"]) >= -row["clock_error_ns"], row


def is_as_before(guest: Guest, before: dict[str, dict[str, Any]]) -> None:
    """Check that filters are as they were, and that interfaces are down.

    Regression: the agent ended before its helper had put the second interface back.
    """
    now = listed(guest)
    for end, port in before.items():
        assert now[end]["stamping"] == port["stamping"] != {"receive": "all", "transmit": True}
    assert guest.run("sh", "-c", "ip -o link | grep -c '[<,]UP[,>]' || true").strip() == "0"


def test_cards_that_claim_stamps_and_have_none_are_refuted(tmp_path: Path) -> None:
    cards = [*cable("e1000e", 1), *cable("virtio-net-pci", 2)]
    drivers = ["e1000e", "virtio_pci", "virtio_net"]
    with guest(tmp_path, RECIPE, drivers, *cards) as booted_guest:
        before = listed(booted_guest)
        by_driver: dict[str, list[str]] = {}
        for port in before.values():
            by_driver.setdefault(port["driver"], []).append(port["interface"])
        ends = by_driver["e1000e"]
        for end in ends:
            assert "all" in before[end]["receive_stamps"]["nic"]
            assert before[end]["phc"] is not None
        code, claims = proof(booted_guest, *ends)
        assert code == 1
        kernel_stamps_all(claims, *ends)
        for end in ends:
            row = claims[end, "receive-nic"]
            # The driver says that it has set the filter for all packets.
            assert (row["filter"], row["stamped"], row["verdict"]) == ("all", 0, "refuted"), row
            assert claims[end, "transmit-nic"]["verdict"] == "refuted"
            assert claims[end, "phc"]["verdict"] == "refuted", claims[end, "phc"]
            assert claims[end, "transmit-to-receive"]["verdict"] == "untested"

        # Settings are put back also if the agent is killed.
        for verb in ("prove", "capture"):
            killed = booted_guest.call("sh", "-c", KILLED, "sh", *ends, verb)
            assert killed.returncode == 0, killed
            is_as_before(booted_guest, before)
        captured = booted_guest.call("sh", "-c", CAPTURED, "sh", *ends)
        assert "warning: tap one: the NIC claims stamps and has stamped no frame" in captured.stderr

        # Two clocks that no time can be told by are not compared, and nothing is captured by them.
        taps = [
            word
            for n, end in zip(("in", "out"), ends, strict=True)
            for word in ("--tap", f"{n}={end}")
        ]
        words = (*taps, "--stamps", "hardware", "--out", "/two", "--duration", "1s")
        refused = booted_guest.call(AGENT, "capture", *words)
        assert refused.returncode == 3, refused
        assert "which cannot be compared" in refused.stderr, refused.stderr
        assert "times as fast as the system's clock" in refused.stderr, refused.stderr

        code, claims = proof(booted_guest, *by_driver["virtio_net"])
        assert code == 0
        kernel_stamps_all(claims, *by_driver["virtio_net"])
        for end in by_driver["virtio_net"]:
            for claim in ("receive-nic", "transmit-nic", "transmit-to-receive", "phc"):
                assert claims[end, claim]["verdict"] == "absent"
        is_as_before(booted_guest, before)


def newer_qemu() -> tuple[str, ...]:
    """Return the command of one with an igb."""
    if not (ROOTS / NEWER).is_dir():
        pytest.skip(f"no emulated igb here: no {ROOTS / NEWER} (packaging/roots.sh gets it)")
    return (str(PROJECT / "packaging" / "in-root.sh"), NEWER, "qemu-system-x86_64")


@pytest.mark.parametrize("release", ["trixie", "sid"])
def test_an_igb_stamps_what_its_one_register_can_and_its_clock_jumps(
    release: str, tmp_path: Path
) -> None:
    program = newer_qemu()
    for name in HELPERS:
        source = Path(__file__).with_name(f"{name}.c")
        compiler = ["cc", "-static", "-O2", "-o", str(tmp_path / name), str(source)]
        subprocess.run(["/usr/bin/env", *compiler], check=True)
    cards = cable("igb", 3)
    recipe = image.Recipe(f"{release}/amd64", drivers=("igb",))
    with guest(tmp_path, recipe, ["igb"], *cards, program=program) as booted_guest:
        before = listed(booted_guest)
        ends = sorted(before)
        code, claims = proof(booted_guest, *ends)
        kernel_stamps_all(claims, *ends)
        for end in ends:
            # No 82576 stamps all packets; the emulated one stamps one and no other.
            row = claims[end, "receive-nic"]
            assert row["filter"].startswith("ptpv2"), row
            assert (row["verdict"], row["stamped"]) in {("partial", 1), ("refuted", 0)}, row
            row = claims[end, "transmit-nic"]
            # A slow machine sends so slowly that the register is always free.
            assert row["verdict"] in {"partial", "proven"}, row
            row = claims[end, "phc"]
            assert (row["verdict"], row["steps"]) == ("proven", []), row
            assert row["frequency_ppb"] == 0, row
            # Since Linux 6.14, its driver has zero copy.
            row = claims[end, "zero-copy"]
            assert row["claimed"] == (release == "sid")
            assert row["verdict"] == ("proven" if row["claimed"] else "absent"), row
        is_as_before(booted_guest, before)

        # The clocks of both are compared all along: so their stamps of a packet can be subtracted.
        code, claims = proof(booted_guest, *ends, meanwhile=FREED.format(" ".join(ends)))
        for end in ends:
            assert claims[end, "receive-nic"]["stamped"] > 10, claims[end, "receive-nic"]
            is_crossed(claims[end, "transmit-to-receive"])
        booted_guest.run("sh", "-c", "busybox killall unlatch")

        # Another program lowers the frequency of the first one: QEMU counts all the time since it
        # began by the new one, and the driver takes a step back for one of nearly 2^41 ns ahead.
        clock = before[ends[0]]["phc"]
        carrier = f"/sys/class/net/{ends[0]}/carrier"
        linked = f'until [ "$(cat {carrier} 2>/dev/null)" = 1 ]; do sleep 0.1; done'
        slower = f"{linked}; sleep 2; /bin/phc /dev/{clock} -100000"
        code, claims = proof(booted_guest, *ends, meanwhile=f"({slower})")
        row = claims[ends[0], "phc"]
        assert (code, row["verdict"]) == (1, "refuted"), row
        assert row["frequency_ppb"] == -100_000_000, row
        assert any(abs(step["by_ns"]) > 2_000 * 10**9 for step in row["steps"]), str(row)
        assert claims[ends[0], "transmit-nic"]["verdict"] != "proven"
        row = claims[ends[1], "transmit-to-receive"]
        assert row["verdict"] == "untested", row
        assert "jumped" in row["why"], row


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of card: options of QEMU, and the mode of AF_XDP on it with Linux 7.2.

    The mode: where the program is attached, whether with zero copy, and the number of queues.
    """

    driver: str
    options: str
    mode: str
    without: str = "none"


#: The virtual processors are two, and so are igb's and vmxnet3's queues.
KINDS = (
    # Of frames there and back, those back stay in the emulated card now and then.
    Kind("igb", "igb", "Native true 2", without="in_order_and_unchanged"),
    Kind("virtio_net", "virtio-net-pci,iommu_platform=on,disable-legacy=on", "Native true 1"),
    Kind("vmxnet3", "vmxnet3", "Native false 2"),
    Kind("e1000e", "e1000e", "Generic false 1"),
)


def test_ports_keep_their_contract_on_every_emulated_card(tmp_path: Path) -> None:
    program = newer_qemu()
    recipe = image.Recipe("sid/amd64", drivers=tuple(kind.driver for kind in KINDS))
    cards = [word for hub, kind in enumerate(KINDS, 1) for word in cable(kind.options, hub)]
    more = with_libraries(contract_program())
    more["bin/it"] = Path(contract_program())
    drivers = ["virtio_pci", *(kind.driver for kind in KINDS)]
    with guest(tmp_path, recipe, drivers, *cards, program=program, more=more) as booted_guest:
        by_driver: dict[str, list[str]] = {}
        for one in listed(booted_guest).values():
            by_driver.setdefault(one["driver"], []).append(one["interface"])
        for kind in KINDS:
            ends = sorted(by_driver[kind.driver])
            for port in ("packet", "xdp"):
                without = kind.without if port == "xdp" else "none"
                words = (*ends, port, kind.mode, without)
                told = booted_guest.call("sh", "-c", CONTRACT, "sh", *words)
                assert told.returncode == 0, f"{kind.driver} {port}: {told.stdout}{told.stderr}"
                passed = 4 if without == "none" else 3
                assert f"{passed} passed" in told.stdout, told.stdout


def contract_program() -> str:
    """Return the compiled tests of the ports."""
    words = ["test", "--package", "tailtrim-ports", "--test", "it", "--no-run", "--locked"]
    told = subprocess.run(
        ["/usr/bin/env", "cargo", *words, "--message-format", "json"],
        cwd=PROJECT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    built = [json.loads(line).get("executable") for line in told.stdout.splitlines()]
    return str(next(path for path in built if path))
