#!/bin/sh
# Process 1 of a guest: what a node has to have, and SSH on the serial port to the host. There is no service beside it.
# When the host closes the port, or sshd ends, so does the guest.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs tmp /tmp
mount -t tracefs tracefs /sys/kernel/tracing
hostname guest
ip link set lo up
modprobe -q virtio_net
modprobe -q virtio_rng
# Network cards that are passed through.
for card in /sys/bus/pci/devices/*; do
    read -r class <"$card/class"
    case $class in
    0x02*) [ -e "$card/driver" ] || modprobe -q "$(cat "$card/modalias")" ;;
    esac
done
mkdir -p /run/sshd /run/tailtrim /run/netns
ssh-keygen -q -t ed25519 -N '' -f /run/host-key
cat >/run/sshd_config <<'END'
HostKey /run/host-key
PermitRootLogin yes
PermitEmptyPasswords yes
UsePAM no
UseDNS no
MaxSessions 100
PrintMotd no
Subsystem sftp internal-sftp
END
port=
for known in /sys/class/virtio-ports/*; do
    [ "$(cat "$known/name")" != tailtrim ] || port=/dev/${known##*/}
done
if [ -c "$port" ]; then
    echo "tailtrim: the guest is ready"
    # It can be opened once.
    exec 3<>"$port"
    "$(command -v sshd)" -i -e -f /run/sshd_config <&3 >&3 3>&-
else
    echo "tailtrim: no serial port to the host: this kernel lacks virtio_console"
fi
echo o >/proc/sysrq-trigger
while sleep 1; do :; done
