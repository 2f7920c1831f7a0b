#!/bin/sh
# Gets Debian's kernels for tests in QEMU, each also as its real-time flavour: downloaded and unpacked in the user's
# cache, never installed.
#
#   kernels.sh [FLAVOUR | SUITE-FLAVOUR]…     amd64 rt-amd64: of this host's own release
#                                             bullseye-amd64 trixie-rt-amd64 sid-amd64: 5.10, 6.12, the newest
set -eu
. "$(dirname "$0")/fetching.sh"

folder=$cache/kernels
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || {
    missed "kernels for QEMU: not here, only on Debian"
    exit 0
}
[ $# -gt 0 ] || set -- amd64 rt-amd64 bullseye-amd64 bullseye-rt-amd64 trixie-amd64 trixie-rt-amd64 \
    sid-amd64 sid-rt-amd64
mkdir -p "$folder"

# Lists of another release, apart from the host's own, which stay as they are. Prints the configuration that uses them.
lists() { # SUITE
    place=$folder/lists/$1
    if [ ! -f "$place/done" ]; then
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
            grep '/debian/*$' | head -n1)
        mkdir -p "$place/parts" "$place/state/lists/partial" "$place/cache/archives/partial"
        : >"$place/status"
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
${mirror:-http://deb.debian.org/debian} $1 main" >"$place/sources"
        cat >"$place/apt.conf" <<END
Dir::Etc::SourceList "$place/sources";
Dir::Etc::SourceParts "$place/parts";
Dir::State "$place/state";
Dir::State::Status "$place/status";
Dir::Cache "$place/cache";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
APT::Sandbox::User "";
END
        APT_CONFIG=$place/apt.conf tries 3 apt-get update -qq >&2 || return 1
        : >"$place/done"
    fi
    echo "$place/apt.conf"
}

# The package with the kernel itself: since 7.0 the image's is a shell around it.
package_of() { # FLAVOUR
    image=$(apt-cache depends "linux-image-$1" 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n1)
    binary=$(apt-cache depends "$image" 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-binary-[0-9].*\)$/\1/p' | head -n1)
    echo "${binary:-$image}"
}

image_in() { # PACKAGE
    case $1 in
    linux-binary-*) echo './usr/lib/modules/*/vmlinuz' ;;
    *) echo './boot/vmlinuz-*' ;;
    esac
}

for name in "$@"; do
    [ -f "$folder/$name/vmlinuz" ] && continue
    case $name in
    amd64 | rt-amd64) flavour=$name ;;
    *)
        flavour=${name#*-}
        APT_CONFIG=$(lists "${name%%-*}") || {
            missed "kernels for QEMU: no lists of ${name%%-*}"
            unset APT_CONFIG
            continue
        }
        export APT_CONFIG
        ;;
    esac
    package=$(package_of "$flavour")
    if [ -z "$package" ]; then
        missed "kernels for QEMU: no package linux-image-$flavour for $name (apt-get update?)"
        unset APT_CONFIG
        continue
    fi
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    if (cd "$scratch" && tries 3 apt-get download -qq "$package" 2>/dev/null); then
        # The kernel is at the beginning: the rest is not unpacked.
        dpkg-deb --fsys-tarfile "$scratch"/*.deb 2>/dev/null |
            tar -x -C "$scratch" --occurrence=1 --wildcards "$(image_in "$package")"
        mkdir -p "$folder/$name"
        find "$scratch" -name 'vmlinuz*' -exec cp {} "$folder/$name/vmlinuz.part" \;
        mv "$folder/$name/vmlinuz.part" "$folder/$name/vmlinuz"
        echo "kernel: $package in $folder/$name"
    else
        missed "kernels for QEMU: $package cannot be downloaded"
    fi
    rm -rf "$scratch"
    unset APT_CONFIG
done
# They age.
rm -rf "$folder/lists"
