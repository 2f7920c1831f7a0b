#!/bin/sh
# Runs a command on a fresh machine: a minimal Debian with the prerequisites of README's first lines, and this checkout.
# Changes by the command are gone afterwards; packages that it installs come from Debian's mirror.
#
#   fresh-machine.sh FOLDER COMMAND…     such as: fresh-machine.sh /tmp make demo; FOLDER is /exchange there
#
# This machine lends its kernel and devices, its way to the network (names, certificates, pip's settings), Rust as
# rustup installed it, and earlier downloads of pip and cargo. All programs are the fresh machine's own. Exit code 77:
# it cannot be made here.
set -eu
cd "$(dirname "$0")/.."

release=bookworm
demanded="git make gcc clang python3"
. packaging/fetching.sh
root=$cache/roots/fresh

if [ "$(cat "$root.packages" 2>/dev/null)" != "$demanded" ]; then
    mkdir -p "$cache/roots"
    rm -rf "$root" "$root.packages"
    echo "unpacking: minimal $release with $demanded" >&2
    # A mirror may be a copy of some day: the settings of this machine's apt for the age of its lists hold there, too.
    apt-config dump | grep '^Acquire::Check-' >"$root.apt.conf" || :
    mmdebstrap --quiet --variant=minbase --aptopt="$root.apt.conf" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --include="$(echo "$demanded" | tr ' ' ,)" "$release" "$root" >&2 || {
        echo "SKIPPED: no minimal $release can be unpacked" >&2
        exit 77
    }
    echo "$demanded" >"$root.packages"
fi

work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/upper" "$work/work" "$work/machine" "$work/checkout"
mkdir --mode 1777 "$work/tmp"
sysroot=$(rustc --print sysroot)
exchange=$(realpath "$1")
shift

export work sysroot exchange checkout="$PWD" crates="${CARGO_HOME:-$HOME/.cargo}/registry"
unshare --mount --pid --fork --kill-child sh -euc '
mount -t overlay overlay -o "lowerdir=$0,upperdir=$work/upper,workdir=$work/work" "$work/machine"
git ls-files -z --cached --others --exclude-standard >"$work/files"
# Not on the overlay: tests and buildah lay other overlays over files that they unpack here.
mount --bind "$work/tmp" "$work/machine/tmp"
mkdir -p "$work/machine$PWD"
mount --bind "$work/checkout" "$work/machine$PWD"
tar --create --null --files-from="$work/files" | tar --extract --directory "$work/machine$PWD"
[ ! -d .git ] || cp -a .git "$work/machine$PWD/"
cd "$work/machine"
mkdir -p ".$sysroot" root/.cargo/registry root/.cache/pip exchange .old
cp -L /etc/resolv.conf etc/
# As installers write it: sudo looks up the name of its host.
echo "127.0.0.1 localhost $(hostname)" >etc/hosts
# In addition to those that a package may bring, which know no proxy of this machine.
cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" etc/certificates.pem
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount --rbind /dev dev
mount --bind "$sysroot" ".$sysroot"
mount --bind "$exchange" exchange
[ ! -d "$crates" ] || mount --bind "$crates" root/.cargo/registry
[ ! -d "$HOME/.cache/pip" ] || mount --bind "$HOME/.cache/pip" root/.cache/pip
settings=$(env | grep -E "^(PIP_(EXTRA_)?INDEX_URL|PIP_DEFAULT_TIMEOUT|[a-z]+_proxy|[A-Z]+_PROXY)=[^ ]*$" || :)
pivot_root . .old
cd "$checkout"
umount --lazy /.old
exec env -i $settings HOME=/root LANG=C.UTF-8 \
    PIP_CERT=/etc/certificates.pem SSL_CERT_FILE=/etc/certificates.pem \
    PATH="$sysroot/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
' "$root" "$@"
