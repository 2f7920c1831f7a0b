#!/bin/bash
set -eu
in=$(pos_get_variable in)
out=$(pos_get_variable out)
ip link add name sw0 type bridge
for port in "$in" "$out" sw0; do
    [ "$port" = sw0 ] || ip link set "$port" master sw0
    ip link set "$port" up
done
# Changes of a script to files of the system stay in this node.
echo broken >/etc/hostname
pos_sync -t setup -l pair --timeout 30
