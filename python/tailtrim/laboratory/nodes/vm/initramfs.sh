#!/bin/busybox sh
# First program of a guest: mounts the image, which stays as it is, with memory on top, and goes there.
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /lower /upper /new
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in virtio_pci virtio_blk virtio_console squashfs overlay; do
    modprobe -q "$module"
done
tries=0
until [ -b /dev/vda ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || break
    sleep 0.1
done
mount -t squashfs -o ro /dev/vda /lower &&
    mount -t tmpfs upper /upper &&
    mkdir /upper/root /upper/work &&
    mount -t overlay -o lowerdir=/lower,upperdir=/upper/root,workdir=/upper/work root /new || {
    echo "tailtrim: the root file system cannot be mounted: this kernel lacks virtio_blk, squashfs or overlay"
    poweroff -f
}
mkdir -p /new/usr/lib/modules /new/usr/local/sbin
[ ! -d /lib/modules ] || cp -a /lib/modules/. /new/usr/lib/modules/
cp /tailtrim-agent /new/usr/local/sbin/
cp /guest.sh /new/usr/local/sbin/tailtrim-guest
for place in dev proc sys; do
    mount --move "/$place" "/new/$place"
done
exec switch_root /new /usr/local/sbin/tailtrim-guest
