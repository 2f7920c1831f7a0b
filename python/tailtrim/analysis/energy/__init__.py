"""Energy cost of packets: watts and joules a packet with their uncertainty.

``measured`` is the record of a run, ``cost`` combines the runs of an experiment, ``uncertainty`` is
the uncertainty of their result.
"""

from tailtrim.analysis.energy.cost import Cost, costs
from tailtrim.analysis.energy.measured import IDLE, LOADED, READY, MeteredNode, RunEnergy, State
from tailtrim.analysis.energy.uncertainty import Estimate, estimate

__all__ = [
    "IDLE",
    "LOADED",
    "READY",
    "Cost",
    "Estimate",
    "MeteredNode",
    "RunEnergy",
    "State",
    "costs",
    "estimate",
]
