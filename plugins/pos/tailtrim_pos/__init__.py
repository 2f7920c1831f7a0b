"""Experiment folders of pos, run here as they are.

::

    experiment     the request of a user: script, nodes, layout, order and deadline
    conduct        runs the script, with a ``pos`` command that asks the controller
    controller     answers the script (verbs) and the nodes (tools) for a session
    session        allocations, nodes and commands (jobs)
    node_registry  all nodes by name; a provider makes them: local, guest or testbed_nodes
    node           a node, with its own network, files and processes
    programs       the programs that scripts find on their PATH
    layout         the result folder, as pos lays it
    run_analysis   run directories of the runs' captures

The script runs as a user's own; its commands on nodes change nothing on their hosts.
"""
