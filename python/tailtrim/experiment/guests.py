"""Guests of an experiment: images before anything runs, and a boot for each block of runs."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError, PlanError, RunError
from tailtrim.experiment.record import write_json
from tailtrim.experiment.where import Where
from tailtrim.nodes import agent
from tailtrim.nodes.vm import image, kernel
from tailtrim.nodes.vm.forwarding import GuestForwarding
from tailtrim.nodes.vm.guest import Guest, GuestDiedError, Settings
from tailtrim.nodes.vm.machine import COMMON
from tailtrim.plan.blocks import block_of
from tailtrim.rundir.layout import LOGS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tailtrim.experiment.record import Experiment
    from tailtrim.nodes.testbed import Forwarding
    from tailtrim.nodes.vm.image import Image
    from tailtrim.plan import Boot, Run

#: Below the experiment: a folder for each boot.
_BOOTS = "boots"
#: What a boot is and how long it took, or why there is no guest.
BOOT_RECORD = "boot.json"
#: In the folder of a boot, and among the logs of a run.
_CONSOLE, _RUNS_CONSOLE = "console.log", "dut-console.log"
_WRONG = "error"


def images_for(
    experiment: Experiment, told: Callable[[str], None], warned: Callable[[str], None]
) -> dict[Boot, Image]:
    """Make the images that missing runs boot, and look at their boot lines.

    Args:
        experiment: whose runs.
        told: is called with what is being done, where it takes time.
        warned: is called with what may be wrong with a boot line.

    Raises:
        HostError: this host cannot make one.
        OutputError: the cache cannot be written.
        PlanError: a boot line does not do what it says.

    """
    boots = dict.fromkeys(run.boot for run in experiment.missing() if run.boot is not None)
    vm = experiment.plan.vm
    images: dict[Boot, Image] = {}
    wrong = []
    for boot in boots:
        given = Path(boot.kernel)
        if given.is_dir() and not kernel.NAME.fullmatch(boot.kernel):
            images[boot] = image.opened(given)
        else:
            recipe = image.Recipe(boot.kernel, vm.release, tuple(vm.packages))
            images[boot] = image.built(recipe, told)
        line = f"{COMMON} {boot.cmdline}".strip()
        for found in agent.boot_line_findings(line, images[boot].kernel, vm.cpus):
            text = f"boot.cmdline: {found['title']} ({boot.kernel})"
            if found["severity"] == _WRONG:
                meant = f", expected {found['right']}" if found["right"] else ""
                wrong.append(f"{text}{meant}")
            else:
                warned(text)
    if wrong:
        raise PlanError(*dict.fromkeys(wrong))
    return images


class Guests:
    """The guest that the runs of a boot share, for as long as the context lasts.

    Args:
        experiment: whose runs; each boot has a folder in it, with console, audit and record.
        images: what each boot boots.

    """

    def __init__(self, experiment: Experiment, images: dict[Boot, Image]) -> None:
        """Boot nothing yet."""
        self._experiment, self._images = experiment, images
        self._stack = ExitStack()
        self._block: Hashable = None
        self._guest: Guest | None = None
        self._failed: str | None = None
        self._doubts: tuple[str, ...] = ()
        self._where: Where | None = None
        #: What its console has printed so far, and how much of that before the run.
        self._console: Path | None = None
        self._printed = 0

    def __enter__(self) -> Self:
        """Return the guests themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what runs."""
        self._end()

    def forwarding(self, run: Run, folder: Path, told: Callable[[str], None]) -> GuestForwarding:
        """Wire the guest of a run for packets that pass its device.

        Raises:
            HostError: this host cannot.
            RunError: the guest of this block did not boot.

        """
        if run.boot is None:
            raise ValueError("a run without a boot")
        block = block_of(run)
        if block != self._block or not (self._failed or (self._guest and self._guest.alive)):
            self._end()
            self._block = block
            try:
                self._boot(run.boot, told)
            except RunError as error:
                # Its other runs would wait as long, for the same.
                self._failed = str(error)
        if self._failed or self._guest is None:
            raise RunError(self._failed or "no guest")
        largest, facts = run.traffic.largest_frame, self._experiment.testbed.facts()
        return GuestForwarding(self._guest, folder, largest, facts)

    def where(self, at: Forwarding) -> Where:
        """Return the nodes of a run whose device is in the guest."""
        record = self._guest.record if self._guest is not None else {}
        self._where = Where(at, record, self._where)
        return self._where

    @property
    def doubts(self) -> tuple[str, ...]:
        """What of its boot line had no effect."""
        return self._doubts

    def hand_over(self, folder: Path) -> None:
        """Give a run what the console of its guest printed in it, if it printed."""
        if self._console is None:
            return
        with self._console.open("rb") as console:
            console.seek(self._printed)
            text = console.read()
            self._printed = console.tell()
        if text:
            (folder / LOGS).mkdir(exist_ok=True)
            (folder / LOGS / _RUNS_CONSOLE).write_bytes(text)

    def _end(self) -> None:
        self._stack.close()
        self._console = None
        self._guest, self._failed, self._doubts, self._where = None, None, (), None

    def _boot(self, boot: Boot, told: Callable[[str], None]) -> None:
        """Boot a guest; one that dies while it boots is booted once more."""
        told(f"booting {boot.kernel}")
        place = self._new_folder()
        try:
            self._booted(boot, place, {})
        except GuestDiedError as error:
            self._stack.close()
            again = self._new_folder()
            self._experiment.notices.append(f"{place.name} was booted again: {error}")
            told(f"booting {boot.kernel} again")
            self._booted(boot, again, {"again_after": place.name})

    def _booted(self, boot: Boot, place: Path, record: dict[str, str]) -> None:
        vm = self._experiment.plan.vm
        settings = Settings(vm.cpus, vm.memory_mib, vm.pinned, vm.accelerator, vm.boot_s)
        try:
            guest = self._stack.enter_context(
                Guest(self._images[boot], boot.cmdline, settings, place / _CONSOLE)
            )
        except RunError as error:
            write_json(place / BOOT_RECORD, record | {"failed": str(error)})
            raise
        guest.record |= record
        guest.named(place.name)
        write_json(place / BOOT_RECORD, guest.record)
        with suppress(HostError):
            write_json(place / "audit.json", guest.audit())
        line = guest.boot_line()
        write_json(place / "boot-line.json", line)
        self._doubts = tuple(
            f"boot line: {found['title']}"
            for found in line["findings"]
            if found["severity"] == _WRONG
        )
        self._guest = guest
        self._console = place / _CONSOLE
        self._printed = self._console.stat().st_size

    def _new_folder(self) -> Path:
        boots = self._experiment.path / _BOOTS
        boots.mkdir(exist_ok=True)
        place = boots / f"boot-{len(list(boots.iterdir())):03d}"
        place.mkdir()
        return place
