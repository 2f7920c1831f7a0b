"""Guests of an experiment: images before anything runs, and a virtual machine for each boot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.laboratory.experiment.boots import BootLines
from tailtrim.laboratory.nodes.testbed import LOCAL
from tailtrim.laboratory.nodes.vm import image, kernel, pci
from tailtrim.laboratory.nodes.vm.forwarding import GuestForwarding
from tailtrim.laboratory.nodes.vm.guest import Guest, GuestSettings, ports_with
from tailtrim.laboratory.nodes.vm.machine import COMMON
from tailtrim.results.layout import LOGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailtrim.laboratory.experiment.context import Listener
    from tailtrim.laboratory.experiment.record import Experiment
    from tailtrim.laboratory.nodes.vm.image import Image
    from tailtrim.laboratory.nodes.vm.pci import PassedPort
    from tailtrim.laboratory.plan import Boot, Plan, Run

#: In the folder of a boot, and among the logs of a run.
_CONSOLE, _RUNS_CONSOLE = "console.log", "dut-console.log"


def passed_ports(plan: Plan) -> dict[str, PassedPort]:
    """Return the ports of guests that are PCI devices of this host, by their names in the plan.

    Raises:
        HostError: one cannot be passed through.

    """
    asked: dict[str, pci.RequestedPort] = {
        name: pci.RequestedPort(port.pci, port.cable)
        for name, port in sorted(plan.vm.ports.items())
    }
    return pci.passed_ports(asked, plan.vm.memory_mib, pci.ROOT)


def images_for(
    experiment: Experiment, listener: Listener, boots: Iterable[Boot] | None = None
) -> dict[Boot, Image]:
    """Make the images that runs boot, and look at their boot lines.

    Args:
        experiment: whose runs.
        listener: hears what is prepared, where it takes time, and what may be wrong with a boot
            line.
        boots: their boots; by default those of the missing runs.

    Raises:
        HostError: this host cannot make one, or not pass a device through to it.
        OutputError: the cache cannot be written.
        PlanError: a boot line does not do what it says.

    """
    if experiment.plan.testbed != LOCAL:
        return {}
    if boots is None:
        boots = [run.boot for run in experiment.missing() if run.boot is not None]
    boots = dict.fromkeys(boots)
    vm = experiment.plan.vm
    passed = passed_ports(experiment.plan) if boots else {}
    drivers = tuple(sorted({port.module for port in passed.values()}))
    images: dict[Boot, Image] = {}
    lines = BootLines(listener.warning)
    for boot in boots:
        given = Path(boot.kernel)
        if given.is_dir() and not kernel.NAME.fullmatch(boot.kernel):
            images[boot] = image.opened(given)
        else:
            recipe = image.Recipe(boot.kernel, vm.release, tuple(vm.packages), drivers=drivers)
            images[boot] = image.built(recipe, listener.preparation)
        line = f"{COMMON} {boot.cmdline}".strip()
        lines.look(line, images[boot].kernel, vm.cpus, boot.kernel)
    lines.refuse()
    return images


class Guests:
    """A virtual machine for each boot: a boot method of :mod:`.boots`.

    Args:
        experiment: whose runs.
        images: the image of each boot.

    """

    node: str | None = None
    #: It takes long where its CPU is emulated.
    asked_once = True

    def __init__(self, experiment: Experiment, images: dict[Boot, Image]) -> None:
        """Take what is known."""
        self._experiment, self._images = experiment, images
        self._passed: dict[str, PassedPort] = {}
        #: Console output of the last guest, and its size in bytes before the run.
        self._console: Path | None = None
        self._printed = 0

    def prepare(self) -> None:
        """Look at the devices that are passed through: images are there, lines were looked at."""
        if self._images:
            self._passed = passed_ports(self._experiment.plan)

    def boot(self, boot: Boot, place: Path) -> Guest:
        """Boot one; its console goes to a file."""
        vm = self._experiment.plan.vm
        settings = GuestSettings(vm.cpus, vm.memory_mib, vm.pinned, vm.accelerator, vm.boot_s)
        self._console, self._printed = place / _CONSOLE, 0
        booted = self._images[boot]
        ports = ports_with(self._passed)
        guest = Guest(booted, boot.cmdline, settings, self._console, ports=ports)
        self._printed = self._console.stat().st_size
        told = (f"{place.name}: vm.ports: not set: {one}" for one in guest.refused)
        self._experiment.notices.extend(told)
        return guest

    def forwarding(self, node: Guest, run: Run, folder: Path) -> GuestForwarding:
        """Wire it."""
        facts = self._experiment.testbed.facts()
        return GuestForwarding(node, folder, run.traffic.largest_frame, facts)

    def hand_over(self, folder: Path) -> None:
        """Give a run what the console of its guest printed in it, if it printed."""
        if self._console is None or not self._console.exists():
            return
        with self._console.open("rb") as console:
            console.seek(self._printed)
            text = console.read()
            self._printed = console.tell()
        if text:
            (folder / LOGS).mkdir(exist_ok=True)
            (folder / LOGS / _RUNS_CONSOLE).write_bytes(text)
