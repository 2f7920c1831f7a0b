#!/bin/bash
set -eu
in=$(pos_get_variable in)
out=$(pos_get_variable out)
ip link add name sw0 type bridge
for port in "$in" "$out" sw0; do
    [ "$port" = sw0 ] || ip link set "$port" master sw0
    ip link set "$port" up
done
# What a script breaks here is this node's.
echo broken >/etc/hostname
pos_sync -t setup -l pair --timeout 30
