"""DPDK's testpmd as the device under test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.testbed.local import DUT_IN, DUT_OUT
from tailtrim.testbed.node import check
from tailtrim.testbed.unprivileged import unprivileged

if TYPE_CHECKING:
    from tailtrim.plan import Dut


def command(dut: Dut, cpu: int) -> list[str]:
    """Return how to start it.

    Args:
        dut: options of the device.
        cpu: where it is to poll.

    Raises:
        HostError: it is not installed, or the user may not use the driver.

    """
    check({"dpdk-testpmd": "Debian package dpdk-dev"})
    if dut.driver == "af_xdp" and unprivileged():
        raise HostError("testpmd with driver af_xdp: only root may load its XDP program")
    # On a veth, the kernel hands frames to AF_XDP in a softirq. Where two CPUs are all there is,
    # that waits now and then for ksoftirqd on the generator's CPU: milliseconds, in the tail only,
    # and neither busy_budget=0 nor force_copy=1 nor deferred interrupts changed them.
    devices = [
        f"--vdev=net_{dut.driver}{number},iface={interface}"
        for number, interface in enumerate((DUT_IN, DUT_OUT))
    ]
    memory = ["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--no-shconf"]
    # On AF_XDP the fill rings of two ports alone take 8,192.
    forwarding = [f"--forward-mode={dut.forward_mode}", "--total-num-mbufs=32768", "--nb-cores=1"]
    return ["dpdk-testpmd", *_cores(cpu), *memory, *devices, "--", *forwarding]


def _cores(polling: int) -> list[str]:
    cores = sorted(os.sched_getaffinity(0))
    main = next((core for core in cores if core != polling), polling)
    if main == polling:
        return ["--lcores", f"0@{polling},1@{polling}", "--main-lcore", "0"]
    # A core of its own for the main thread, which only waits.
    return ["-l", f"{main},{polling}", "--main-lcore", str(main)]
