#!/bin/busybox sh
# PID 1 of the guest: what the kernel made of its boot line, on the second serial port.
/bin/busybox mkdir -p /proc /sys /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev

# Tells that it is ready, then is ended: an emulated CPU on a busy host may take a minute to load a program.
until_ready() { # COMMAND…
    /bin/busybox timeout -s INT 90 "$@" >/told 2>&1 &
    until /bin/busybox grep -q ready /told || ! /bin/busybox kill -0 $!; do /bin/busybox sleep 0.2; done
    /bin/busybox kill -INT $!
    wait
    /bin/busybox cat /told
}

part() { # NAME COMMAND…
    echo "--8<-- $1"
    shift
    "$@" 2>&1
}

{
    for file in /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full \
        /proc/irq/default_smp_affinity /proc/sys/kernel/soft_watchdog /proc/sys/kernel/numa_balancing \
        /proc/sys/vm/nr_hugepages /sys/kernel/mm/hugepages/*/nr_hugepages \
        /sys/kernel/mm/transparent_hugepage/enabled \
        /sys/devices/system/machinecheck/machinecheck0/ignore_ce; do
        part "$file" /bin/busybox cat "$file"
    done
    part arguments /bin/busybox tr '\0' '\n' </proc/1/cmdline
    part environment /bin/busybox tr '\0' '\n' </proc/1/environ
    part log /bin/busybox dmesg
    echo "--8<-- audit"
    /tailtrim-agent audit --boot-line --json
    part exit echo "$?"
    # A word of the boot line that no kernel knows is init's.
    if [ "${programs:-}" = bpf ]; then
        /bin/busybox ip link set lo mtu 1500 up
        for mode in xdp af-xdp; do
            part "$mode" until_ready /tailtrim-agent reflect --mode "$mode" --echo 7007 --interface lo
        done
        part capture until_ready /tailtrim-agent capture --tap t=xdp:lo --out /taken
    fi
    echo "--8<-- end"
} >/dev/ttyS1
/bin/busybox reboot -f
