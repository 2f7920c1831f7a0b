"""Nodes: hosts on which an experiment starts programs, wired to a testbed.

Experiments and devices see interfaces: :class:`.node.Node` and the topologies of :mod:`.testbed`.
:mod:`.namespace_testbed` is the testbed on one machine, whose nodes are network namespaces
(:mod:`.namespace`); :mod:`.ssh_testbed` is one of hosts by SSH (:mod:`.ssh`), which a file
describes (:mod:`.testbed_file`).
"""
