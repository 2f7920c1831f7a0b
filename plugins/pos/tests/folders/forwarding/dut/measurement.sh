#!/bin/bash
set -eu
pos_run --loop sniffer -- tailtrim-agent capture --tap "pre=$(pos_get_variable in)" --out captures --stop-after 6s
# Nothing says when a sniffer captures, and on a busy host that may take a while.
sleep 2
pos_sync tartu vilnius
pos_wait --loop --timeout 20 sniffer
pos_upload --loop --force -o latencies-pre.pcap captures/pre.pcap
pos_sync --tag end
