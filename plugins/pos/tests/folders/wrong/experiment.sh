#!/bin/bash
# Everything goes wrong once: each command says what, and the script goes on.
ONE=$1
OTHER=$2
pos allocations allocate "$ONE" "$OTHER"
pos nodes image "$ONE" "${IMAGE:-amiga-workbench}" && exit 1
pos commands launch --infile one/upload.sh "$ONE" && exit 1
pos commands launch --infile one/member.sh "$ONE" && exit 1
{ pos commands launch --infile one/waits.sh --name waits "$ONE"; } &
{ pos commands launch --infile other/dies.sh --name dies "$OTHER"; } &
wait
pos nodes reset "$OTHER"
{ pos commands launch --name timeout "$ONE" -- pos_sync --timeout 1 -t never; } &
wait
exit 0
