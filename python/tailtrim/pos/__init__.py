"""Experiment folders of pos, run here as they are.

::

    conduct     its script, with a ``pos`` command that asks the controller
    controller  answers the script (verbs) and the nodes (tools) for a session
    session     allocations, nodes and commands
    provider    where nodes come from: local_nodes or testbed_nodes
    node        a node, with its own network, files and processes: local_node or ssh_node
    layout      the result folder, as pos lays it
    analysed    run directories of what the runs captured

The script runs as a user's own; what it has run on nodes changes nothing on their hosts.
"""
