"""How far results can be trusted: on delays that are known, on disturbances at known times.

:mod:`~tailtrim.selftest.known_delays` measures the meter, and
:mod:`~tailtrim.selftest.attribution` whether explanations name the right causes. Both look at the
runs of an experiment; the experiments are in ``plans/``.
"""
