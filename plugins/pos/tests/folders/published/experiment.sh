#!/bin/bash
# A folder in the form of the pos paper's: LOADGEN sends through the router DUT with a MoonGen that it clones and builds.
LOADGEN=$1
DUT=$2

pos allocations free "$LOADGEN"
pos allocations free "$DUT"
pos allocations allocate "$LOADGEN" "$DUT"
for node in "$LOADGEN" "$DUT"; do
    pos nodes image "$node" debian-buster
done
pos allocations variables "$LOADGEN" loadgen/variables.yml
pos allocations variables "$DUT" dut/variables.yml
pos allocations variables "$LOADGEN" global-variables.yml --as-global
pos allocations variables "$LOADGEN" loop-variables.yml --as-loop
{ pos nodes reset "$LOADGEN"; } &
{ pos nodes reset "$DUT"; } &
wait
for script in setup measurement; do
    loop=$([ "$script" = setup ] || echo --loop)
    { pos commands launch --quiet --infile loadgen/$script.sh --blocking $loop "$LOADGEN"; } &
    { pos commands launch --quiet --infile dut/$script.sh --blocking $loop "$DUT"; } &
    wait
done
pos allocations free "$LOADGEN"
