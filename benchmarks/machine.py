"""Facts on machine and versions for a record; nothing that names the host or its user."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import cluster

FAMILIES = re.compile(
    r"epyc|ryzen|threadripper|xeon|atom|celeron|core|neoverse|cortex|ampere|apple"
)


def cores() -> list[int]:
    """Cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def name(core_count: int) -> str:
    """Name the machine by its processor, such as ``epyc-2core``."""
    family = FAMILIES.search(_cpu("model name").lower())
    return f"{family.group() if family else platform.machine()}-{core_count}core"


def processor() -> str:
    """Name the processor with its model: clouds call several generations the same."""
    model = ", ".join(f"{key} {_cpu(key)}" for key in ("cpu family", "model", "stepping"))
    return f"{_cpu('model name')}, {model}"


def facts(root: Path, agent: Path, core_count: int) -> dict[str, str]:
    """Describe machine and versions, for people."""
    virtual = ", virtual machine" if "hypervisor" in _cpu("flags").split() else ""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    one, five, fifteen = os.getloadavg()
    return {
        "processor": f"{_cpu('model name')}, {core_count} cores{virtual}",
        "memory": f"{memory_bytes / 1e9:.1f} GB",
        "kernel": f"{platform.system()} {_number(platform.release())} {platform.machine()}",
        "load average at the start": f"{one:.2f} {five:.2f} {fifteen:.2f}",
        "tailtrim": _first_line(
            ["git", "--no-optional-locks", "-C", root, "describe", "--always", "--dirty", "--tags"]
        ),
        "tailtrim-agent": f"{_first_line([agent, '--version'])}, SHA-256 {_sha256(agent)}",
        "python": platform.python_version(),
        **{package: _installed(package) for package in ("duckdb", "pyarrow", "psycopg")},
        "postgresql": _first_line([cluster.program("postgres") or "postgres", "--version"]),
        "zstd": _number(_first_line(["zstd", "-V"]).partition(" v")[2]),
    }


def neutral(text: str, folders: dict[Path, str]) -> str:
    """Replace this machine's folders in commands and messages; the longest path wins."""
    text = text.replace(sys.executable, "python")
    for folder in sorted(folders, key=lambda path: -len(str(path))):
        replacement = folders[folder]
        text = text.replace(f"{folder}/", f"{replacement}/" if replacement else "")
        text = text.replace(str(folder), replacement or ".")
    return text


def _number(version: str) -> str:
    """Keep the numbers of a version; the text after them often names a place.

    >>> _number("6.18.4-3-of-somebody")
    '6.18.4'
    """
    leading = re.match(r"\d+(\.\d+)*", version)
    return leading.group() if leading else "unknown"


def _cpu(key: str) -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.partition(":")[0].strip() == key:
            return line.partition(":")[2].strip()
    return "unknown"


def _first_line(command: list[str | Path]) -> str:
    if shutil.which(command[0]) is None:
        return "not installed"
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = ended.stdout.strip().splitlines()
    return lines[0] if ended.returncode == 0 and lines else "unknown"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
