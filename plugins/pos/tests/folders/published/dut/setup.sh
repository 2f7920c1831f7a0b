#!/bin/bash
set -e
for side in ingress egress; do
    port=$(pos_get_variable --from-global dut_${side}_if)
    ip link set dev "$port" up
    ip link set dev "$port" address "$(pos_get_variable --from-global dut_${side}_mac)"
    ip addr add "$(pos_get_variable --from-global dut_${side}_ip)/24" dev "$port"
done
# MoonGen answers no ARP requests.
ip neighbor add "$(pos_get_variable --from-global loadgen_ingress_ip)" dev "$port" nud permanent \
    lladdr "$(pos_get_variable --from-global loadgen_ingress_mac)"
sysctl -w net.ipv4.ip_forward=1
