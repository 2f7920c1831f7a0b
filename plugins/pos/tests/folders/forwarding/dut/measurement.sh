#!/bin/bash
set -eu
rm -rf captures
pos_run --loop sniffer -- tailtrim-agent capture --tap "pre=$(pos_get_variable in)" --out captures
# It captures soon after it made its file, on a busy host too.
until [ -e captures/pre.pcap ]; do sleep 0.1; done
sleep 0.5
pos_sync tartu vilnius
pos_sync --tag sent tartu vilnius
pos_kill --loop sniffer
pos_wait --loop --timeout 20 sniffer
pos_upload --loop --force -o latencies-pre.pcap captures/pre.pcap
pos_sync --tag end
