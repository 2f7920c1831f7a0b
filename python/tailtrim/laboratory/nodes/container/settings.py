"""Settings of a container in a plan."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from tailtrim.model_base import Strict

#: Names of Debian releases, which are no paths.
RELEASE = re.compile("[a-z]+")
_PACKAGE = r"^[a-z0-9][a-z0-9+.-]*$"
#: Bounds of kernels, in µs: kernel/sched/core.c, min_cfs_quota_period and max_cfs_quota_period.
_LEAST_US, _LONGEST_US = 1_000, 1_000_000


def _cpu_max(value: str | int | None) -> str | int | None:
    words = str(value).split()
    quota, period = (*words, "100000")[:2]
    known = len(words) in {1, 2} and re.fullmatch(r"max|\d+", quota) and period.isdecimal()
    if value is not None and not (
        known
        and _LEAST_US <= int(period) <= _LONGEST_US
        and (quota == "max" or int(quota) >= _LEAST_US)
    ):
        raise ValueError(
            f"expected max, or a time in µs of at least {_LEAST_US:,}, and a period of at most"
            f" {_LONGEST_US:,}, such as 50000 100000"
        )
    return value


def _form(pattern: str, expected: str) -> AfterValidator:
    """Return a check that a value has a form, if it is given."""

    def check(value: str | int | None) -> str | int | None:
        if value is not None and not re.fullmatch(pattern, str(value)):
            raise ValueError(f"expected {expected}")
        return value

    return AfterValidator(check)


_MEMORY = _form(r"max|\d+[KMGT]?", "max or a number of bytes, such as 512M")
_IO = _form(
    r"\d+:\d+( (rbps|wbps|riops|wiops)=(max|\d+))+",
    "a device and limits, such as 8:0 rbps=1048576 wiops=max",
)


class ContainerSettings(Strict):
    """The container that a device with node container is in."""

    model_config = ConfigDict(serialize_by_alias=True)

    root: str | None = Field(
        default=None,
        min_length=1,
        description="Its files: a directory that has them, a directory that tailtrim image build"
        " has made, or a Debian release such as trixie. Default: those of this machine. They are"
        " never written to: what is changed goes with the container.",
    )
    packages: list[Annotated[str, Field(pattern=_PACKAGE)]] = Field(
        default_factory=list, description="Debian packages, where root is a release."
    )
    mounts: list[Annotated[str, _form("/.*", "a path that begins with /")]] = Field(
        default_factory=list,
        description="Files and directories of the node that it has, too: at the same place,"
        " read-only.",
    )
    cpu_max: Annotated[str | int | None, AfterValidator(_cpu_max)] = Field(
        default=None,
        alias="cpu.max",
        description="CPU time that its processes get in each period, in µs, such as"
        " 50000 100000; max: all.",
    )
    cpu_weight: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=10_000,
        alias="cpu.weight",
        description="Its share of a CPU that others want, too: 100 is the kernel's default, 10,000"
        " nearly what a device that is not in a container has.",
    )
    memory_max: Annotated[str | int | None, _MEMORY] = Field(
        default=None,
        alias="memory.max",
        description="Memory of its processes, in bytes or as 512M; max: all.",
    )
    io_max: Annotated[str | None, _IO] = Field(
        default=None,
        alias="io.max",
        description="Rates of a block device, such as 8:0 rbps=1048576 wiops=100.",
    )

    @property
    def of_release(self) -> bool:
        """Whether its files are those of a Debian release."""
        return self.root is not None and bool(RELEASE.fullmatch(self.root))

    @property
    def limits(self) -> dict[str, str]:
        """The limits of its control group, by the names of cgroup v2."""
        named = {
            "cpu.max": self.cpu_max,
            "cpu.weight": self.cpu_weight,
            "memory.max": self.memory_max,
            "io.max": self.io_max,
        }
        return {name: str(value) for name, value in named.items() if value is not None}
