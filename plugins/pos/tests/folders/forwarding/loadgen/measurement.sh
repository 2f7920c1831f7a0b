#!/bin/bash
set -eu
sink=$(pos_get_variable sink)
rm -rf captures
pos_run -l sniffer -- tailtrim-agent capture --tap "post=$sink" --out captures
# It captures soon after it made its file, on a busy host too.
until [ -e captures/post.pcap ]; do sleep 0.1; done
sleep 0.5
pos_sync "$(pos_get_variable hostname)" "$(pos_get_variable --from-global dut 2>/dev/null || echo vilnius)"
mac=$(cat "/sys/class/net/$sink/address")
"$(pos_get_variable generator/path)" "$(pos_get_variable send)" "$(pos_get_variable -l pkt_rate)" \
    "$(pos_get_variable --from-loop pkt_sz)" "$mac" >generator.log
sleep 0.3
pos_sync -t sent "$(pos_get_variable hostname)" "$(pos_get_variable --from-global dut 2>/dev/null || echo vilnius)"
pos_kill -l sniffer
pos_upload -l -o latencies-post.pcap captures/post.pcap
pos_upload --loop generator.log
mkdir -p logs
pos_get_run_number >logs/number
pos_upload -l -r logs
pos_sync -t end
