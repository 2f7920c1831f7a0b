"""Energy cost of packets: meters read during runs, watts and joules a packet with uncertainty.

``series`` holds the readings of a meter, ``recorder`` reads meters during a run, ``measured`` is
the record of a run, ``cost`` combines the runs of an experiment, ``uncertainty`` is the uncertainty
of their result, ``pos_csv`` writes the CSV form of pos_energy. Meters are in
:mod:`tailtrim.nodes.meters`.
"""

from tailtrim.energy.cost import Cost, costs
from tailtrim.energy.measured import IDLE, LOADED, READY, Measured, RunEnergy, State
from tailtrim.energy.recorder import Recorder
from tailtrim.energy.uncertainty import Estimate, estimate

__all__ = [
    "IDLE",
    "LOADED",
    "READY",
    "Cost",
    "Estimate",
    "Measured",
    "Recorder",
    "RunEnergy",
    "State",
    "costs",
    "estimate",
]
