#!/bin/bash
#
# Record ingress.pcap.zst and egress.pcap.zst: the same datagrams before and behind a firewall that rewrites them.
#
#   usage: record.sh DIRECTORY
#
# Runs as root for a minute. Three network namespaces, named after this process, are joined by veth pairs:
#
#     client eth0 ──── in  firewall  out ──── eth0 server
#                      └ ingress capture      └ egress capture
#
# The firewall is the kernel's: it routes, translates the source address and port (masquerade), and
# drops one datagram of 500 at random. Both captures have received frames only, stamped by the kernel on one clock. When the
# script ends, everything that it made is gone, but the two files.

set -eu

die() { echo "record.sh: $*" >&2; exit 1; }
[ $# -eq 1 ] || { sed -n '3,5s/^# \{0,3\}//p' "$0" >&2; exit 2; }
directory=$1
[ "$EUID" -eq 0 ] || die "must run as root"
for entry in ip:iproute2 nft:nftables tcpdump:tcpdump zstd:zstd python3:python3; do
    command -v "${entry%%:*}" >/dev/null || die "missing program ${entry%%:*} (Debian package ${entry##*:})"
done

client=tailtrim-client-$$ firewall=tailtrim-firewall-$$ server=tailtrim-server-$$
work=$(mktemp -d)
cleanup() {
    for ns in $client $firewall $server; do
        [ ! -e "/run/netns/$ns" ] || { ip netns pids "$ns" | xargs -r kill -KILL; ip netns del "$ns"; }
    done 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

for ns in $client $firewall $server; do ip netns add "$ns"; done
ip link add eth0 netns "$client" type veth peer name in netns "$firewall"
ip link add out netns "$firewall" type veth peer name eth0 netns "$server"
ip -n "$client" address add 10.0.10.2/24 dev eth0
ip -n "$firewall" address add 10.0.10.1/24 dev in
ip -n "$firewall" address add 192.0.2.1/24 dev out
ip -n "$server" address add 192.0.2.9/24 dev eth0
for end in "$client eth0" "$firewall in" "$firewall out" "$server eth0"; do
    read -r ns port <<<"$end"
    ip -n "$ns" link set "$port" up
done
ip -n "$client" route add default via 10.0.10.1
ip netns exec "$firewall" sysctl -qw net.ipv4.ip_forward=1
ip netns exec "$firewall" nft -f - <<RULES
table ip filter {
    chain forward { type filter hook forward priority 0; numgen random mod 500 0 counter drop; }
    chain postrouting { type nat hook postrouting priority 100; oifname "out" masquerade random; }
}
RULES

captures=
capture() { # NAME NAMESPACE PORT
    ip netns exec "$2" tcpdump -n -p -i "$3" -Q in -s 96 -B 16384 --time-stamp-precision=nano -Z root -w "$work/$1.pcap" \
        'udp port 5001' 2>"$work/$1.log" &
    captures="$captures $!"
    for _ in $(seq 100); do
        grep -q "listening on" "$work/$1.log" && return
        sleep 0.1
    done
    die "tcpdump did not begin: $(cat "$work/$1.log")"
}
capture ingress "$firewall" in
capture egress "$server" eth0

# 30,000 datagrams of 16 sockets at random times (Poisson), with a number in each.
ip netns exec "$client" python3 - <<'SEND'
import random, socket, struct, time
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(16)]
gaps, due_ns = random.Random(7), time.monotonic_ns()
for number in range(30_000):
    due_ns += round(gaps.expovariate(1) * 1_500_000)
    while time.monotonic_ns() < due_ns:
        pass
    sockets[number % 16].sendto(struct.pack(">I", number) + bytes(60), ("192.0.2.9", 5001))
SEND
sleep 2 # the captures hand over their last block after a second
kill -TERM $captures
wait
mkdir -p "$directory"
for name in ingress egress; do
    sed -n "s/ packets\{0,1\} captured$/ frames in $name/p" "$work/$name.log"
    zstd -q -19 -f "$work/$name.pcap" -o "$directory/$name.pcap.zst"
done
