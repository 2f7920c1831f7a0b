"""All checks, in the order of commands."""

from __future__ import annotations

from tailtrim.laboratory.doctor import installed, meters, rights, testbed
from tailtrim.laboratory.doctor.check import Check

#: As the help has them.
_ORDER = (
    *("run", "selftest", "generate", "capture", "forward", "analyze", "trace", "noise", "tune"),
    *("ping", "reflect", "import"),
)


def examine() -> list[Check]:
    """Try what commands need; takes some seconds.

    Commands that are not among the checks need nothing but tailtrim.

    Raises:
        HostError: nothing can be tried at all.

    """
    tried = testbed.tried()
    checks = [
        Check("run", testbed.NAMESPACES, tried[testbed.NAMESPACES], demo=True),
        Check("run", testbed.PACKETS, tried[testbed.PACKETS], demo=True),
        *installed.devices(tried[testbed.BPF]),
        Check("run", testbed.CONTAINER, tried[testbed.CONTAINER]),
        *installed.guests(),
        *(Check("reflect", f"mode {mode}", tried[mode]) for mode in testbed.MODES),
        *installed.power(),
        *meters.checks(),
        *installed.engines(),
        *rights.checks(),
        *installed.peers(),
    ]
    return sorted(checks, key=lambda check: _ORDER.index(check.command))
