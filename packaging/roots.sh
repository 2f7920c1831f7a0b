#!/bin/sh
# Unpacks programs of other Debian releases that tests have as peers in the user's cache: nothing of them is
# installed, and packaging/in-root.sh runs them. A root is made anew when its list of packages changes.
#
#   roots.sh [NAME…]     sid-peers sid-prometheus trixie-suricata trixie-qemu bookworm-minimal bookworm-clean
#
# bookworm-clean is whole, as debootstrap's minbase is, and an archive: a package or an image is installed into it.
set -eu
cd "$(dirname "$0")/.."
. packaging/fetching.sh

folder=$cache/roots
skip() { # REASON
    missed "programs of other Debian releases: $1"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "only root can enter them"
command -v mmdebstrap >/dev/null 2>&1 || skip "mmdebstrap is not installed (Debian package mmdebstrap)"

packages() { # NAME
    case $1 in
    sid-peers)
        echo hipercontracer hipercontracer-results hipercontracer-importer hipercontracer-query
        echo suricata wireshark-common iproute2 nftables linuxptp chrony
        ;;
    sid-prometheus)
        echo prometheus
        ;;
    trixie-suricata)
        echo suricata
        ;;
    trixie-qemu)
        # With an emulated igb.
        echo qemu-system-x86
        ;;
    trixie-dpdk)
        # With a compiler and what make starts.
        echo '?essential' libdpdk-dev gcc libc6-dev make pkgconf
        ;;
    bookworm-minimal)
        # The packages of every Debian, an interpreter for the virtual environment, and the programs
        # of the demo.
        echo '?essential' apt python3 python3-venv
        target/test/bin/python -c 'from tailtrim import tool
from tailtrim.laboratory.nodes import namespace
print(*tool.packages(namespace.TOOLS))'
        ;;
    bookworm-clean)
        echo apt
        ;;
    *)
        echo "error: no root $1, expected sid-peers, sid-prometheus, trixie-suricata, trixie-qemu, bookworm-minimal or bookworm-clean" >&2
        exit 2
        ;;
    esac
}

# Without running scripts of packages, so that no service starts.
unpacked() { # NAME PACKAGE…
    root=$1 variant=extract form=directory
    shift
    [ "$root" != bookworm-clean ] || variant=minbase form=tar
    # One option each: a list that begins with a pattern is taken for one pattern.
    for package; do set -- "$@" --include="$package" && shift; done
    rm -rf "$folder/$root.part"
    # All programs and libraries go below /usr; packages of older releases have some outside of it.
    mmdebstrap --quiet --variant=$variant --format=$form --aptopt="$folder/apt.conf" \
        --setup-hook=/usr/share/mmdebstrap/hooks/merged-usr/setup00.sh \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' "$@" \
        "${root%%-*}" "$folder/$root.part" 2>"$folder/$root.log"
}

[ $# -gt 0 ] || set -- sid-peers sid-prometheus trixie-suricata trixie-qemu bookworm-minimal bookworm-clean
mkdir -p "$folder"
# A mirror may be a copy of some day: the settings of this machine's apt for the age of its lists hold here, too.
{ apt-config dump | grep '^Acquire::Check-'; echo 'APT::Install-Recommends "false";'; } >"$folder/apt.conf"
for name in "$@"; do
    # Not in a pipe, which would hide that it fails.
    wanted=$(packages "$name")
    wanted=$(printf '%s' "$wanted" | tr '\n' ' ')
    [ "$(cat "$folder/$name.packages" 2>/dev/null)" = "$wanted" ] && continue
    rm -rf "${folder:?}/$name" "$folder/$name.packages"
    echo "unpacking: $name: $wanted"
    # shellcheck disable=SC2086 # a list of words
    if tries 3 unpacked "$name" $wanted; then
        mv "$folder/$name.part" "$folder/$name"
        printf '%s\n' "$wanted" >"$folder/$name.packages"
    else
        rm -rf "$folder/$name.part"
        missed "$name cannot be unpacked: $(grep -m1 '^E:' "$folder/$name.log")"
    fi
done
