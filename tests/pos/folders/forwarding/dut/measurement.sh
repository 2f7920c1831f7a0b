#!/bin/bash
set -eu
pos_run --loop sniffer -- tailtrim-agent capture --tap "pre=$(pos_get_variable in)" --out captures --stop-after 4s
sleep 0.5
pos_sync tartu vilnius
pos_wait --loop --timeout 20 sniffer
pos_upload --loop --force -o latencies-pre.pcap captures/pre.pcap
pos_sync --tag end
