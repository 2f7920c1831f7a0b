"""Capacity of a device: the highest load at which goals are met.

::

    NDR    no packet is lost                                  (RFC 9971: loss ratio 0)
    PDR    at most 0.5 % are lost                             (RFC 9971: loss ratio 0.005)
    a promise such as p99.9 < 200us, loss < 1e-4              (proved with confidence)

One search has all goals, and they share trials. :mod:`.search` says which trial is next, as a
function of those so far; :mod:`.runner` measures them as runs of one experiment.
"""
