#!/bin/bash
set -eu
ip link set "$(pos_get_variable send)" up
ip link set "$(pos_get_variable sink)" up
echo "hostname=$(pos_get_variable hostname)"
echo "generator=$(pos_get_variable generator)"
echo "option=$(pos_get_variable generator/options/1)"
echo "late=$(pos_get_variable late 2>&1 || echo "exit $?")"
echo "late --remote=$(pos_get_variable --remote late)"
pos_set_variable ready yes
pos_set_variable --as-global note after
echo "note=$(pos_get_variable -g note) $(pos_get_variable -g note -r)"
pos_kill nothing
pos_energy_start 2>&1 && exit 1
pos_timesync
pos_sync -t setup -l pair
