#!/bin/bash
# Seconds are fewer than in the published folder: 10 of packets, 14 until it is ended.
set -ex
of() { pos_get_variable --from-global "$1"; }
MOONGEN_DIR=$(of moongen_dir)
RATE=$(pos_get_variable pkt_rate --from-loop)
SIZE=$(pos_get_variable pkt_sz --from-loop)
WARM_UP=$(pos_get_variable warm_up)

pos_sync
pos_run --loop loadgen -- bash -c "$MOONGEN_DIR/build/MoonGen $MOONGEN_DIR/examples/soft-gen.lua --src-mac $(of loadgen_egress_mac) --dst-mac $(of dut_ingress_mac) --src-ip $(of loadgen_egress_ip) --dst-ip $(of loadgen_ingress_ip) --fix-packetrate $RATE --size $SIZE --packets $(($RATE * 10)) --chksum-offload $(of loadgen_enable_offload) --ip-chksum $(of loadgen_enable_ip_sw_chksum_calc) --warm-up $WARM_UP $(of loadgen_egress_dev) $(of loadgen_ingress_dev) > /root/throughput.log"
sleep 14
pos_kill --loop loadgen
pos_upload --loop /root/throughput.log
pos_sync
