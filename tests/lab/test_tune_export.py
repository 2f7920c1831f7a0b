"""Files exported for other tools, read by those tools."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tools
from changed_host import tree, write

from tailtrim.laboratory.devices.host_change import TUNED

if TYPE_CHECKING:
    from changed_host import Tune

pytestmark = pytest.mark.packages
PACKAGES = Path("/usr/lib/python3/dist-packages")


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """Return a host with four CPUs, a NIC with a virtual function, and huge pages."""
    root = tree(tmp_path)
    write(root, "sys/devices/system/cpu/online", "0-3\n")
    write(root, "sys/devices/system/node/node0/cpulist", "0-3\n")
    write(root, "sys/devices/0000:03:00.0/numa_node", "0\n")
    write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    write(root, "sys/kernel/mm/ksm/run", "1\n")
    write(root, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n")
    nic = root / "sys/class/net/eth1"
    nic.mkdir(parents=True)
    (nic / "device").symlink_to("../../../devices/0000:03:00.0")
    (root / "sys/devices/0000:03:00.0/virtfn0").symlink_to("../0000:03:10.0")
    return root


def export(tune: Tune, server: Path, form: str, out: Path, *more: str) -> list[Path]:
    words = ("--format", form, "--root", str(server), "--out", str(out), *more)
    ended = tune.run("export", *words)
    assert ended.returncode == 0, ended.stderr
    return [Path(line) for line in ended.stdout.splitlines()]


VM = ("--profile", "nfv-host", "--interface", "eth1", "--hugepages", "1G:4")


LOAD = """
import sys
from tuned.profiles.loader import Loader
from tuned.profiles.locator import Locator
from tuned.profiles.factory import Factory
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.utils.global_config import GlobalConfig
loader = Loader(Locator([sys.argv[1]]), Factory(), Merger(), GlobalConfig(), Variables())
profile = loader.load("tailtrim")
import importlib
for unit in profile.units.values():
    module = importlib.import_module("tuned.plugins.plugin_" + unit.type)
    classes = [c for n, c in vars(module).items() if n.lower() == unit.type + "plugin"]
    known = None
    for c in classes:
        found = c.__dict__.get("_get_config_options")
        if found is not None:
            known = set(found.__get__(None, c)() if not isinstance(found, type(lambda: 0))
                        else found(c))
    free = unit.type in ("sysctl", "sysfs", "bootloader")
    unknown = [] if free or known is None else [o for o in unit.options if o not in known]
    print(unit.name, unit.type, len(unit.options), *unknown)
"""


def test_tuned_loads_the_profile(tune: Tune, server: Path, tmp_path: Path) -> None:
    (profile,) = export(tune, server, "tuned", tmp_path / "out", "--interface", "eth1")
    if not (PACKAGES / "tuned").is_dir():
        pytest.skip(str(TUNED.missing()))
    command = ["/usr/bin/python3", "-c", LOAD, str(tmp_path / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    units = [line.split() for line in ended.stdout.splitlines()]
    assert {unit[1] for unit in units} >= {"sysctl", "vm", "cpu", "scheduler", "bootloader"}
    assert all(len(unit) == 3 for unit in units), f"options that tuned does not know: {units}"
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read(profile)
    assert parsed["sysctl"]["vm.stat_interval"] == "3600"
    assert parsed["scheduler"]["isolated_cores"] == "1-3"


def test_a_shell_reads_the_drop_in_as_grub_does(tune: Tune, server: Path, tmp_path: Path) -> None:
    (path,) = export(tune, server, "grub", tmp_path / "out")
    script = f'GRUB_CMDLINE_LINUX_DEFAULT=quiet; . {path}; echo "$GRUB_CMDLINE_LINUX_DEFAULT"'
    ended = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    words = ended.stdout.split()
    assert words[0] == "quiet"
    assert "isolcpus=managed_irq,domain,1-3" in words
    assert "rcu_nocbs_poll" not in words


def test_systemd_reads_the_unit(tune: Tune, server: Path, tmp_path: Path) -> None:
    paths = export(tune, server, "systemd", tmp_path / "out")
    unit = next(path for path in paths if path.suffix == ".service")
    tools.need(tools.SYSTEMD_ANALYZE)
    program = tools.SYSTEMD_ANALYZE.program
    agent = unit.read_text().replace("/usr/bin/tailtrim-agent", tune.program)
    unit.write_text(agent)
    ended = subprocess.run(
        [program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    if "Failed to connect" in ended.stderr or "Failed to initialize" in ended.stderr:
        pytest.skip(f"systemd-analyze does not work here: {ended.stderr.strip()}")
    ours = [line for line in ended.stderr.splitlines() if "tailtrim-tune" in line]
    assert ours == []
