"""What packets cost: meters read beside runs, watts and joules a packet with their uncertainty.

``series`` is what a meter said, ``recorder`` reads meters beside a run, ``measured`` is the record
of a run, ``cost`` what the runs of an experiment say together, ``uncertainty`` how sure that is,
``pos_csv`` the form that pos_energy gives it. Meters are in :mod:`tailtrim.nodes.meters`.
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
