"""Nodes that are reached by SSH.

::

    address      where a node is, as a testbed file says it
    connection   one connection of OpenSSH, which all commands share
    agent_copy   the agent on the node
    session      a node that is reserved for an experiment
    process      a process there, whose standard input this process holds
    node         a node of a run: a network namespace there, with the node's ports in it
"""
