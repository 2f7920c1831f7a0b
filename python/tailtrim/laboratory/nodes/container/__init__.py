"""Containers: files of another system for programs of a node, and limits of a control group.

util-linux makes them, which every node has anyway: ``unshare`` and ``nsenter`` need no daemon and
no systemd, and what they start ends with this process as everything on a node does. podman and
systemd-nspawn keep processes, mounts and groups when the process that asked for them is killed;
bubblewrap knows no control groups, and crun leaves its state in /run.
"""
