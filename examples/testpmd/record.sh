#!/bin/bash
#
# Record ingress.pcap.zst and egress.pcap.zst: the same frames before and behind a device under test (DuT).
#
#   usage: record.sh [-d DUT] [-n FRAMES] [-g GAP] DIRECTORY
#
#   -d DUT     testpmd-io   DPDK testpmd on af_packet ports, frames unchanged (the default)
#              testpmd-mac  the same, rewriting both MAC addresses
#              router       Linux IPv4 forwarding: rewrites both MAC addresses, decrements TTL
#              wire         nothing but a redirect in the kernel: the floor of this testbed
#   -n FRAMES  how many frames to send, 1 to 500000 (default 40000)
#   -g GAP     pause between two frames in microseconds, 1 to 100000 (default 65: trafgen and the kernel's timer add 20
#              to 50 to each, which gives some 10,000 frames/s)
#
# Runs as root and needs two CPUs: the sender and the captures use CPU 0, testpmd polls on CPU 1. Three network
# namespaces, named after this process, are joined by veth pairs:
#
#     loadgen tx ──── in  timestamper  to-dut ──── in  dut  out ──── from-dut  timestamper  out ──── rx loadgen
#                     └ ingress capture                              └ egress capture
#
# The timestamper forwards in the kernel. A packet socket sees a received frame, and stamps it, before tc ingress
# redirects it: the ingress stamp is taken before the frame leaves for the DuT, the egress stamp when the frame has come
# back. Both stamps are of the same clock. When the script ends, everything that it made is gone, but the two files.

set -eu

usage() { sed -n '5,13s/^# \{0,3\}//p' "$0" >&2; exit 2; }
die() { echo "record.sh: $*" >&2; exit 1; }

dut=testpmd-io frames=40000 gap=65
while getopts d:n:g: option; do
    case $option in
        d) dut=$OPTARG ;;
        n) frames=$OPTARG ;;
        g) gap=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
directory=$1

case $dut in testpmd-io | testpmd-mac | router | wire) ;; *) usage ;; esac
case "$frames" in '' | *[!0-9]*) usage ;; esac
case "$gap" in '' | *[!0-9]*) usage ;; esac
[ "$frames" -ge 1 ] && [ "$frames" -le 500000 ] && [ "$gap" -ge 1 ] && [ "$gap" -le 100000 ] || usage

[ "$EUID" -eq 0 ] || die "must run as root"
[ "$(getconf _NPROCESSORS_ONLN)" -ge 2 ] || die "needs two CPUs"

programs="ip:iproute2 tc:iproute2 sysctl:procps ethtool:ethtool tcpdump:tcpdump trafgen:netsniff-ng zstd:zstd awk:mawk"
case $dut in testpmd-*) programs="$programs dpdk-testpmd:dpdk-dev" ;; esac
missing=
for entry in $programs; do
    command -v "${entry%%:*}" >/dev/null || missing="$missing
  ${entry%%:*}  (Debian package ${entry##*:})"
done
[ -z "$missing" ] || die "missing programs:$missing"

lg=tailtrim-loadgen-$$ ts=tailtrim-stamper-$$ dn=tailtrim-dut-$$
work=$(mktemp -d)

cleanup() {
    trap '' INT TERM HUP
    { # every process started here that may still run is in one of the namespaces
        for ns in $lg $ts $dn; do
            for pid in $(ip netns pids "$ns"); do kill -KILL "$pid"; done
        done
        wait
    } 2>/dev/null || true
    for ns in $lg $ts $dn; do
        [ ! -e "/run/netns/$ns" ] || ip netns del "$ns" || true
    done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

in_ns() { local ns=$1; shift; ip netns exec "$ns" "$@"; }

# Wait up to ten seconds until the file $1 holds the text $2, while the process $3 lives.
await() {
    for _ in $(seq 100); do
        ! grep -qs "$2" "$1" || return 0
        kill -0 "$3" 2>/dev/null || break
        sleep 0.1
    done
    cat "$1" >&2
    die "never saw '$2'"
}

# Wait up to $2 seconds until the process $1 has ended.
ended() {
    for _ in $(seq $(($2 * 10))); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    die "process $1 did not end within $2 s"
}

for ns in $lg $ts $dn; do
    ip netns add "$ns"
    in_ns "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done

# fibre NAMESPACE PORT MAC NAMESPACE PORT MAC: nothing travels on it but what is sent on purpose.
fibre() {
    ip link add name "$2" netns "$1" address "$3" type veth peer name "$5" netns "$4" address "$6"
    local ns port
    for end in "$1 $2" "$4 $5"; do
        read -r ns port <<<"$end"
        in_ns "$ns" ethtool -K "$port" rx off tx off sg off tso off gso off gro off >/dev/null
        ip -n "$ns" link set dev "$port" arp off multicast off
        ip -n "$ns" link set dev "$port" up
    done
}
fibre "$lg" tx 02:00:00:00:01:01 "$ts" in 02:00:00:00:02:01
fibre "$ts" to-dut 02:00:00:00:02:02 "$dn" in 02:00:00:00:03:01
fibre "$dn" out 02:00:00:00:03:02 "$ts" from-dut 02:00:00:00:02:03
fibre "$ts" out 02:00:00:00:02:04 "$lg" rx 02:00:00:00:01:02

# redirect NAMESPACE FROM TO: every frame received at FROM is sent at TO, unchanged.
redirect() {
    in_ns "$1" tc qdisc add dev "$2" ingress
    in_ns "$1" tc filter add dev "$2" parent ffff: protocol all prio 1 \
        u32 match u32 0 0 action mirred egress redirect dev "$3"
}
redirect "$ts" in to-dut
redirect "$ts" from-dut out

# testpmd ARGUMENT...: forwards from port 0 (in) to port 1 (out) on CPU 1 until it is told to end.
testpmd() {
    mkfifo "$work/stdin"
    exec 3<>"$work/stdin" # testpmd ends when its input does
    RUNTIME_DIRECTORY=$work ip netns exec "$dn" stdbuf -oL dpdk-testpmd -l 0,1 --no-pci --no-huge -m 256 --no-shconf \
        --no-telemetry --vdev=net_af_packet0,iface=in --vdev=net_af_packet1,iface=out \
        -- --total-num-mbufs=8192 --port-topology=paired --nb-cores=1 "$@" <&3 >"$work/dut.log" 2>&1 &
    dut_pid=$!
    await "$work/dut.log" "Press enter to exit" "$dut_pid"
}

dut_pid=
case $dut in
    testpmd-io) testpmd --forward-mode=io ;;
    testpmd-mac) testpmd --forward-mode=mac --eth-peer=1,02:00:00:00:01:02 ;;
    wire) redirect "$dn" in out ;;
    router)
        ip -n "$dn" address add 10.0.1.1/24 dev in
        ip -n "$dn" address add 10.0.2.1/24 dev out
        ip -n "$dn" neighbour add 10.0.2.2 lladdr 02:00:00:00:01:02 nud permanent dev out
        in_ns "$dn" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.in.rp_filter=0
        ;;
esac

# capture NAME PORT: received frames only, 64 bytes of each, stamped by the kernel in nanoseconds.
capture() {
    ip netns exec "$ts" taskset -c 0 tcpdump -n -p -i "$2" -Q in -s 64 -B 32768 --time-stamp-precision=nano -Z root \
        -w "$work/$1.pcap" 2>"$work/$1.log" &
    capture_pid=$!
    await "$work/$1.log" "listening on" "$capture_pid"
}
capture ingress in
ingress_pid=$capture_pid
capture egress from-dut
egress_pid=$capture_pid

# 100-byte frames, Ethernet + IPv4 + UDP: all the same but for a counter from 0 in the first four bytes of the payload.
# No UDP checksum (it would follow the counter).
awk -v n="$frames" 'BEGIN {
    for (i = 0; i < n; i++)
        print "{ 0x02,0,0,0,0x03,0x01, 0x02,0,0,0,0x01,0x01, c16(0x0800)," \
              "  0x45,0, c16(86), c16(0), 0x40,0, 64,17, csumip(14,33), 10,0,1,2, 10,0,2,2," \
              "  c16(4000), c16(4001), c16(66), c16(0), c32(" i "), fill(0,54) }"
}' >"$work/frames.cfg"
ip netns exec "$lg" timeout $((frames * (gap + 100) / 1000000 + 60)) trafgen --in "$work/frames.cfg" --out tx \
    --num "$frames" --gap "${gap}us" --prio-high --cpus 1 --no-sock-mem --notouch-irq --no-cpu-stats \
    >"$work/trafgen.log" 2>&1 &
sender_pid=$!
wait "$sender_pid" || { cat "$work/trafgen.log" >&2; die "trafgen failed"; }

ip netns exec "$ts" sleep 3 & # the captures hand over their last block after a second
wait $!
kill -TERM "$ingress_pid" "$egress_pid"
ended "$ingress_pid" 10
ended "$egress_pid" 10
if [ -n "$dut_pid" ]; then
    kill -TERM "$dut_pid"
    ended "$dut_pid" 10
fi

mkdir -p "$directory"
for name in ingress egress; do
    captured=$(sed -n 's/ packets\{0,1\} captured$//p' "$work/$name.log")
    dropped=$(sed -n 's/ packets\{0,1\} dropped by kernel$//p' "$work/$name.log")
    echo "$name: $captured of $frames frames, $dropped dropped by the capture"
    zstd -q -19 -f "$work/$name.pcap" -o "$directory/$name.pcap.zst"
done
[ -z "$dut_pid" ] || sed -n '/Accumulated forward statistics/,/+++++/p' "$work/dut.log"
