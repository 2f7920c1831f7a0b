#!/bin/bash
# A forwarding experiment in the form that pos expects: LOADGEN sends through DUT, CLOCK only takes part in barriers.
set -eu
LOADGEN=$1
DUT=$2
CLOCK=$3
IMAGE=debian-bookworm

pos allocations free -k "$LOADGEN"
pos allocations allocate -d 30 "$LOADGEN" "$DUT"
pos allocations add "$LOADGEN" "$CLOCK"
pos allocations variables "$LOADGEN" loadgen/variables.yml
pos allocations set_variables "$DUT" dut/variables.yml
pos allocations set_variables "$LOADGEN" global-variables.yml --as-global
pos allocations set_variables "$LOADGEN" loop-variables.yml --as-loop
pos roles add pair "$LOADGEN" "$DUT"
for node in "$LOADGEN" "$DUT" "$CLOCK"; do
    pos nodes image "$node" "$IMAGE"
    { pos nodes reset "$node"; } &
done
wait
pos nodes list
pos nodes show -j "$DUT" >/dev/null
pos nodes copy -d /root/tools/ "$LOADGEN" loadgen/generator.sh

# Variables set after a node was booted are seen with --remote only.
echo 'late: 7' | pos allocations set_variables "$LOADGEN" -

echo "== setup"
{ pos commands launch --infile dut/setup.sh --blocking "$DUT"; } &
{ pos commands launch -i loadgen/setup.sh "$LOADGEN"; } &
wait
echo "== measurement"
{ pos commands launch --quiet --infile dut/measurement.sh --blocking --loop "$DUT"; } &
{ pos commands launch --quiet --infile loadgen/measurement.sh --blocking --loop "$LOADGEN"; } &
{ pos commands launch -n --loop --name beat "$CLOCK" -- pos_sync -t end; } &
wait
echo "== evaluation"
id=$(pos commands launch --queued --name told "$LOADGEN" -- sh -c 'echo from $(hostname)')
pos commands await "$id"
pos commands launch -v "$LOADGEN" -- pos_get_variable --from-global note
results=$(pos allocations show "$LOADGEN" | python3 -c 'import json, sys; print(json.load(sys.stdin)["result_folder"])')
[ "$(pos results list "$LOADGEN" | grep -c 'latencies-post_run')" = "$(find "$results" -name 'latencies-post_run*' | wc -l)" ]
pos allocations get_variable -g "$LOADGEN" note
pos allocations free "$LOADGEN"
