# Makes the files of a container and keeps them as long as standard input is open. It runs in a mount namespace of its
# own, with which all of this goes. Its working directory is then the container's root.
#
#   ROOT [rw|ro PATH]…    a directory or a squashfs; what of this host the container has at the same place
set -e
here=$PWD
root=$(realpath -e "$1")
shift
# Nothing that is needed here is below /sys.
mount -t tmpfs tailtrim /sys
cd /sys
mkdir lower upper work root
if [ -d "$root" ]; then
    mount --bind "$root" lower
else
    mount -t squashfs -o loop,ro "$root" lower
fi
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay root
cd root
mkdir -p proc sys dev run tmp
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount --rbind /dev dev
for own in dev/shm run tmp; do mount -t tmpfs tmpfs "$own"; done

inside() { # PATH
    case $(realpath -m "/sys/root$1") in /sys/root/*) return ;; esac
    echo "$1: leads out of the container's root" >&2
    exit 1
}
inside "$here/."
mkdir -p "/sys/root$here"
while [ $# -gt 0 ]; do
    path=$(cd "$here" && realpath -e "$2")
    inside "$path"
    if [ -d "$path" ]; then
        mkdir -p "/sys/root$path"
    else
        mkdir -p "$(dirname "/sys/root$path")"
        [ -e "/sys/root$path" ] || : >"/sys/root$path"
    fi
    mount --bind "$path" "/sys/root$path"
    [ "$1" = rw ] || mount -o remount,bind,ro "/sys/root$path"
    shift 2
done
echo ready
cat >/dev/null
