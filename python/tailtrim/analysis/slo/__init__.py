"""Service level objectives: limits that a run has to meet, and whether it does.

>>> from tailtrim.analysis.slo import objectives
>>> [str(one) for one in objectives("p99.9 < 50us, loss < 0.01%")]
['p99.9 < 50us', 'loss < 0.01%']

A quantile, the mean and the loss are known as an interval. An objective is *passed* where the whole
interval is below the limit, *failed* where all of it is at or above, and *not decided* otherwise.

A promise of a standard or a paper is an objective by name. It is held against all runs together:

>>> (one,) = objectives("urllc-1ms")
>>> one.promise.deadline_ns, float(one.promise.share)
(1000000, 1e-05)
"""

from tailtrim.analysis.slo.objective import Objective, objectives
from tailtrim.analysis.slo.promised import promised
from tailtrim.analysis.slo.promises import PROMISES, Promise
from tailtrim.analysis.slo.verdict import Decision, JudgedRun, Verdict, junit, of_run, verdicts

__all__ = [
    "PROMISES",
    "Decision",
    "JudgedRun",
    "Objective",
    "Promise",
    "Verdict",
    "junit",
    "objectives",
    "of_run",
    "promised",
    "verdicts",
]
