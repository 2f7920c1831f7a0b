"""Service level objectives: what a run is to meet, and whether it does.

>>> from tailtrim.slo import objectives
>>> [str(one) for one in objectives("p99.9 < 50us, loss < 0.01%")]
['p99.9 < 50us', 'loss < 0.01%']

A quantile, the mean and the loss are known as an interval. An objective is *passed* where the whole
interval is below the limit, *failed* where all of it is at or above, and *not decided* otherwise.
"""

from tailtrim.slo.junit import junit
from tailtrim.slo.objective import Objective, objectives
from tailtrim.slo.verdict import Decision, Verdict, verdicts

__all__ = ["Decision", "Objective", "Verdict", "junit", "objectives", "verdicts"]
