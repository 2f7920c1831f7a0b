"""Where an experiment runs: nodes that programs are started on, wired to a testbed.

What experiments and devices see are interfaces: :class:`.node.Node` and the topologies of
:mod:`.testbed`. :mod:`.local` is the testbed on one machine, whose nodes are network namespaces
(:mod:`.namespace`); :mod:`.hosts` is that of hosts by SSH (:mod:`.ssh`), which a file describes
(:mod:`.description`).
"""
