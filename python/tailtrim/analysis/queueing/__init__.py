"""Prediction of latency under other loads: a run's device as a queue.

One run shows the CPU time of a packet, and the causes that take the CPU from packets. From these
follow the highest rate, R_max = (1 s - what is stolen of it) / CPU time of a packet (Gallenmüller
et al., "5G QoS: Impact of Security Functions on Latency", NOMS 2020), and, replayed as a queue with
stalls, latency at other rates and in bursts, and without a cause.
"""

from tailtrim.analysis.queueing.estimate import Estimate, highest_rate
from tailtrim.analysis.queueing.fifo import Stalled, departures
from tailtrim.analysis.queueing.prediction import (
    Compared,
    Point,
    Position,
    PredictedQuantile,
    Prediction,
    Stolen,
    predicted,
)
from tailtrim.analysis.queueing.promise import Most, Promise

__all__ = [
    "Compared",
    "Estimate",
    "Most",
    "Point",
    "Position",
    "PredictedQuantile",
    "Prediction",
    "Promise",
    "Stalled",
    "Stolen",
    "departures",
    "highest_rate",
    "predicted",
]
