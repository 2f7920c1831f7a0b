"""Nodes that are reached by SSH.

::

    address      a host by SSH, as a testbed file says it
    connection   one connection of OpenSSH, which all commands share
    agent_copy   the agent on the host
    shell        commands of root there
    session      a host that is reserved for an experiment
    node         a node of a run: a network namespace there, with the node's ports in it
"""
