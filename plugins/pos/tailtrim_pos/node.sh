# Process 1 of a node: makes its files and keeps them as long as standard input is open. It runs in its own mount, PID, UTS,
# IPC and network namespaces, with which all of this goes.
#
#   NAME SHARED [PATH]…    its name; the folder with the tools; what it has of this host at the same place
#
# The node has the files of this host, and writes beside them. What would reach this host otherwise cannot be written: its
# devices, /sys, and /proc but for the network's settings.
set -e
name=$1 shared=$2
shift 2
mount -t tmpfs -o mode=755 tailtrim /sys
mkdir /sys/layers /sys/proc /sys/root
mount -t tmpfs -o mode=755 tailtrim /sys/root
mount -t proc proc /sys/proc
mounted=$(awk '{ print $5 }' /proc/self/mountinfo)
root=/sys/root count=0

beneath() { # PATH: whether other files are mounted in it
    echo "$mounted" | grep -q -F -e "$1/"
}

lay() { # PATH: this host's, with changes beside it
    if [ -L "$1" ]; then
        cp -P "$1" "$root$1"
    elif [ -f "$1" ]; then
        # Beside a mount: small ones are copied, so that they can be written.
        if [ "$(stat -c %s "$1")" -le 65536 ] &&
            cp --preserve=mode,timestamps "$1" "$root$1" 2>/dev/null; then
            chown --reference="$1" "$root$1" 2>/dev/null || :
            return
        fi
        : >"$root$1"
        mount --bind "$1" "$root$1"
        mount -o remount,bind,ro "$root$1" 2>/dev/null || :
    elif [ -d "$1" ]; then
        mkdir -p "$root$1"
        if beneath "$1"; then
            for entry in "$1"/* "$1"/.[!.]*; do lay "$entry"; done
            return
        fi
        count=$((count + 1))
        mkdir "/sys/layers/$count" "/sys/layers/$count.work"
        chmod --reference="$1" "/sys/layers/$count"
        chown --reference="$1" "/sys/layers/$count" 2>/dev/null || :
        mount -t overlay -o "userxattr,lowerdir=$1,upperdir=/sys/layers/$count,workdir=/sys/layers/$count.work" \
            overlay "$root$1" 2>/dev/null || mount --rbind -o ro "$1" "$root$1" 2>/dev/null || :
    fi
}
for entry in /*; do
    case $entry in /proc | /sys | /dev | /run | /lost+found) ;; *) lay "$entry" ;; esac
done

cd "$root"
mkdir -p proc sys dev run tmp root
chmod 1777 tmp
[ -w root ] && [ -x root ] || mount -t tmpfs -o mode=700 tailtrim root
mount -t tmpfs -o mode=755 tailtrim dev
mkdir dev/pts dev/shm dev/net
for device in null zero full random urandom tty net/tun; do
    [ ! -e "/dev/$device" ] || { : >"dev/$device" && mount --bind "/dev/$device" "dev/$device"; }
done
mount -t tmpfs tailtrim dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for stream in 0/stdin 1/stdout 2/stderr; do ln -s "/proc/self/fd/${stream%/*}" "dev/${stream#*/}"; done

for path; do
    [ ! -e "$root$path" ] || continue
    mkdir -p "$(dirname "$root$path")"
    [ -d "$path" ] && mkdir "$root$path" || : >"$root$path"
    mount --rbind "$path" "$root$path"
done
mkdir -p run/tailtrim
mount --bind "$shared" run/tailtrim
# Files are written there from outside: a node must not redirect them by a link.
mount -o remount,bind,ro run/tailtrim
set --
for tool in run/tailtrim/bin/*; do set -- "$@" "/$tool"; done
ln -sf "$@" usr/local/bin/ 2>/dev/null || :

echo "$name" >/sys/proc/sys/kernel/hostname
mount -t proc proc proc
for fixed in proc/sys proc/irq proc/sysrq-trigger; do
    [ -e "$fixed" ] || continue
    mount --bind "$fixed" "$fixed"
    mount -o remount,bind,ro "$fixed"
done
mount --bind /sys/proc/sys/net proc/sys/net
ip link set lo up
mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || mount --rbind -o ro /sys "$root/sys"
pivot_root . .
umount -l .
cd /root
echo ready
exec 3<&0
cat <&3 >/dev/null &
wait "$!"
