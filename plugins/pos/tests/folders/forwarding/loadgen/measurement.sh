#!/bin/bash
set -eu
sink=$(pos_get_variable sink)
pos_run -l sniffer -- tailtrim-agent capture --tap "post=$sink" --out captures
# Nothing says when a sniffer captures, and on a busy host that may take a while.
sleep 2
pos_sync "$(pos_get_variable hostname)" "$(pos_get_variable --from-global dut 2>/dev/null || echo vilnius)"
mac=$(cat "/sys/class/net/$sink/address")
"$(pos_get_variable generator/path)" "$(pos_get_variable send)" "$(pos_get_variable -l pkt_rate)" \
    "$(pos_get_variable --from-loop pkt_sz)" "$mac" >generator.log
sleep 0.3
pos_kill -l sniffer
pos_upload -l -o latencies-post.pcap captures/post.pcap
pos_upload --loop generator.log
mkdir -p logs
pos_get_run_number >logs/number
pos_upload -l -r logs
pos_sync -t end
