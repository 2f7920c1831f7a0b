"""Devices under test: what to do in the device's node so that packets pass."""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tailtrim.agent import Agent
from tailtrim.errors import RunError
from tailtrim.testbed.local import DUT_IN, DUT_OUT, MACS, SINK, redirect
from tailtrim.testbed.node import check
from tailtrim.testbed.ready import DESTINATION_IP, DESTINATION_PORT, wait_until_ready

if TYPE_CHECKING:
    from tailtrim.plan import Dut
    from tailtrim.testbed.local import Testbed
    from tailtrim.testbed.node import Node

_READY_S = 30.0
_LAST_LINES = 5
# What a device starts ends with it, and the device with its standard input, that is with us: it
# runs in a namespace of processes, of which the shell is the first.
_TOGETHER = (
    *("unshare", "--pid", "--fork", "--kill-child=KILL", "--", "sh", "-c"),
    'exec 3<&0; "$@" <&3 & device=$!; (cat <&3 >/dev/null; kill -KILL $device) & wait $device',
    "device",
)


class Device:
    """A device under test that packets pass, for as long as the context lasts."""

    def __init__(self, testbed: Testbed, dut: Dut, folder: Path, cpu: int | None) -> None:
        """Start the device and wait until packets pass it.

        Args:
            testbed: where.
            dut: which.
            folder: for what it writes.
            cpu: where it is to poll.

        Raises:
            HostError: this host lacks what it takes.
            RunError: it died, or nothing passes it.

        """
        self.agent: Agent | None = None
        self._process: subprocess.Popen[str] | None = None
        self._log = folder / "dut.log"
        self._name = dut.preset
        with ExitStack() as stack:
            self._start(testbed.dut, dut, folder, cpu, stack)
            wait_until_ready(testbed, destination_mac(dut), self.check, _READY_S)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the device itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stack.close()

    def check(self) -> None:
        """Make sure that the device runs.

        Raises:
            RunError: it has died.

        """
        died = (self.agent is not None and not self.agent.poll()) or (
            self._process is not None and self._process.poll() is not None
        )
        if died:
            last = ""
            if self._log.exists():
                lines = self._log.read_text("utf-8", "replace").strip().splitlines()
                last = ": " + " | ".join(lines[-_LAST_LINES:]) if lines else ""
            raise RunError(f"the device under test ({self._name}) died{last}")

    def stop(self) -> dict[str, Any] | None:
        """Stop the reference forwarder and return what it counted; nothing of other devices."""
        return self.agent.stop() if self.agent is not None else None

    def _start(self, node: Node, dut: Dut, folder: Path, cpu: int | None, stack: ExitStack) -> None:
        match dut.preset:
            case "wire":
                redirect(node, DUT_IN, DUT_OUT)
            case "forward":
                arguments = _forward(dut, folder, cpu)
                self.agent = stack.enter_context(Agent("forward", *arguments, prefix=node.prefix))
                self.agent.ready()
            case "testpmd":
                check({"dpdk-testpmd": "dpdk-dev"})
                self._run(node, _testpmd(dut, cpu), stack, {"RUNTIME_DIRECTORY": str(folder)})
            case "bridge":
                _bridge(node)
            case "router":
                _router(node)
            case "nftables":
                check({"nft": "nftables"})
                _router(node)
                node.run("nft", "-f", "-", given=_rules(dut))
            case "command":
                text = (dut.command or "").replace("{in}", DUT_IN).replace("{out}", DUT_OUT)
                self._run(node, shlex.split(text), stack, {})

    def _run(
        self, node: Node, command: list[str], stack: ExitStack, environment: dict[str, str]
    ) -> None:
        log = stack.enter_context(self._log.open("w", encoding="utf-8"))
        # Standard input stays open: testpmd ends with it.
        self._process = subprocess.Popen(
            [*node.prefix, *_TOGETHER, *command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | environment,
            start_new_session=True,
        )
        # As the agent does for itself: what polls must not wait for what happens to run beside it.
        with suppress(OSError):
            Path(f"/proc/{self._process.pid}/autogroup").write_text("-20", encoding="ascii")
        with suppress(OSError):
            os.setpriority(os.PRIO_PGRP, self._process.pid, -20)
        stack.callback(_end, self._process)


def destination_mac(dut: Dut) -> str:
    """Return where frames have to be sent: to a router itself, through all others to the sink."""
    return MACS[DUT_IN if dut.preset in {"router", "nftables"} else SINK]


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()


def _forward(dut: Dut, folder: Path, cpu: int | None) -> list[str]:
    arguments = ["--from", DUT_IN, "--to", DUT_OUT, "--mode", dut.mode, "--batch", str(dut.batch)]
    arguments += ["--work", str(dut.work_ns)]
    if dut.delay is not None:
        arguments += ["--delay", dut.delay, "--delay-log", str(folder / "truth.bin")]
    if cpu is not None:
        arguments += ["--cpu", str(cpu)]
    return arguments


def _testpmd(dut: Dut, cpu: int | None) -> list[str]:
    cores = sorted(os.sched_getaffinity(0))
    polling = cores[-1] if cpu is None else cpu
    main = next((core for core in cores if core != polling), polling)
    # A core of its own for the main thread; without a second one they share.
    lcores = ["-l", f"{main},{polling}", "--main-lcore", str(main)]
    if main == polling:
        lcores = ["--lcores", f"0@{polling},1@{polling}", "--main-lcore", "0"]
    devices = [
        f"--vdev=net_af_packet{number},iface={interface}"
        for number, interface in enumerate((DUT_IN, DUT_OUT))
    ]
    memory = [
        "--no-huge",
        "-m",
        "256",
        "--no-pci",
        "--no-telemetry",
        "--file-prefix",
        f"tt{os.getpid()}",
    ]
    forwarding = [
        "--",
        f"--forward-mode={dut.forward_mode}",
        "--total-num-mbufs=8192",
        "--nb-cores=1",
    ]
    return ["dpdk-testpmd", *lcores, *memory, *devices, *forwarding]


def _bridge(node: Node) -> None:
    node.run("ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0")
    for port in (DUT_IN, DUT_OUT):
        node.run("ip", "link", "set", port, "master", "br0")
    # The bridge itself has nothing to say.
    node.run("ip", "link", "set", "br0", "up", "arp", "off", "multicast", "off")


def _router(node: Node) -> None:
    node.set("net/ipv4/ip_forward", "1")
    for port, address in ((DUT_IN, "198.18.0.254/24"), (DUT_OUT, "198.19.0.254/24")):
        node.set(f"net/ipv4/conf/{port}/rp_filter", "0")
        node.run("ip", "link", "set", port, "arp", "on")
        node.run("ip", "address", "add", address, "dev", port)
    neighbour = ["lladdr", MACS[SINK], "dev", DUT_OUT, "nud", "permanent"]
    node.run("ip", "neighbour", "replace", DESTINATION_IP, *neighbour)


def _rules(dut: Dut) -> str:
    """Write the firewall of the reflector paper: N accept rules, of which one fits the packets."""
    lines = [
        "table inet tailtrim { chain forward {",
        "type filter hook forward priority 0; policy drop;",
    ]
    for position in range(1, dut.rules + 1):
        fits = position == dut.position
        port = DESTINATION_PORT if fits else 1 + (position % 9_000)
        lines.append(f"udp dport {port} accept")
    return "\n".join([*lines, "} }"]) + "\n"
