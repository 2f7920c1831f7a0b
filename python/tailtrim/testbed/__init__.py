"""The testbed on one machine: load generator, device under test and timestamper.

Each node is a network namespace, veth pairs are the fibres::

    loadgen ──veth── timestamper ──veth── dut ──veth── timestamper ──veth── loadgen
                      (tap in)                          (tap out)

A namespace lives as long as a process in it, and that process ends with this one: nothing has a
name that could collide, and nothing is left behind, also not after kill -9.
"""

from tailtrim.testbed.local import Testbed
from tailtrim.testbed.unprivileged import enter

__all__ = ["Testbed", "enter"]
