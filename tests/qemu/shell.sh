#!/bin/busybox sh
# PID 1 of a guest that runs what its second serial port says: NUMBER SCRIPT in base64, one a line. It answers with
# NUMBER, exit code, output and errors, these in base64.
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
stty -F /dev/ttyS1 raw -echo
{
    echo "up"
    while read -r number script; do
        echo "$script" | base64 -d >/tmp/script 2>/dev/null
        sh /tmp/script >/tmp/output 2>/tmp/errors </dev/null
        echo "$number $? -$(base64 -w 0 </tmp/output) -$(base64 -w 0 </tmp/errors)"
    done
} </dev/ttyS1 >/dev/ttyS1
