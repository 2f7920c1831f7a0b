#!/bin/sh
# Gets Debian's stock kernel and its real-time flavour for tests in QEMU: downloaded and unpacked below
# target/kernels, never installed.
#
#   kernels.sh [FLAVOUR…]     amd64 rt-amd64
set -eu
cd "$(dirname "$0")/.."

folder=${CARGO_TARGET_DIR:-target}/kernels
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || {
    echo "kernels for QEMU: not here, this is no Debian" >&2
    exit 0
}
[ $# -gt 0 ] || set -- amd64 rt-amd64
for flavour in "$@"; do
    [ -f "$folder/$flavour/vmlinuz" ] && continue
    package=$(apt-cache depends "linux-image-$flavour" 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n1)
    if [ -z "$package" ]; then
        echo "kernels for QEMU: no package linux-image-$flavour (apt-get update?)" >&2
        continue
    fi
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    (cd "$scratch" && apt-get download -qq "$package" 2>/dev/null) || {
        echo "kernels for QEMU: $package cannot be downloaded" >&2
        continue
    }
    dpkg-deb --fsys-tarfile "$scratch"/*.deb | tar -x -C "$scratch" ./boot
    mkdir -p "$folder/$flavour"
    cp "$scratch/boot/vmlinuz-${package#linux-image-}" "$folder/$flavour/vmlinuz.part"
    mv "$folder/$flavour/vmlinuz.part" "$folder/$flavour/vmlinuz"
    rm -rf "$scratch"
    echo "kernel: $package in $folder/$flavour"
done
