"""Accuracy of results, tested on known delays and on disturbances at known times.

:mod:`~tailtrim.selftest.known_delays` tests the measured latencies, and
:mod:`~tailtrim.selftest.attribution` whether explanations name the right causes. Both look at the
runs of an experiment; the experiments are in ``plans/``.
"""
