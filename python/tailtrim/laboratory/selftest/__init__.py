"""Accuracy of results, tested on known delays and on disturbances at known times.

:mod:`.known_delays` tests the measured latencies, and :mod:`.attribution` whether explanations name
the right causes. Both look at the runs of an experiment; the experiments are in ``plans/``.
"""
