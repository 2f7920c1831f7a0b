#!/bin/sh
# Puts the files for installation into dist/: the wheel with the agent inside, the static agent alone, its Debian
# package, and that of tailtrim-dpdk.
#
# The agent is linked against musl where rustup has or gets it, which knows names of hosts without libraries of the host; against
# glibc where Rust comes without rustup.
set -eu
cd "$(dirname "$0")/.."
. packaging/fetching.sh

machine=$(uname -m)
target="$machine-unknown-linux-musl"
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    command -v rustup >/dev/null 2>&1 && tries 3 rustup target add "$target" || target="$machine-unknown-linux-gnu"
fi
cargo build --profile dist --locked --package tailtrim-agent --target "$target"
agent=packaging/tailtrim.data/scripts/tailtrim-agent
mkdir -p "$(dirname "$agent")"
# Debug information is five sixths of it, and stays in the target folder.
strip --strip-debug -o "$agent" "${CARGO_TARGET_DIR:-target}/$target/dist/tailtrim-agent"
echo "agent: static, $target"
version=$("$agent" --version | cut -d' ' -f2)
rm -rf dist
maturin build --profile dist --locked --out dist
for plugin in plugins/*/; do
    pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --wheel-dir dist "$plugin"
done
cp "$agent" "dist/tailtrim-agent-$version-$(uname -m)"

for program in dpkg-buildpackage dh help2man; do
    command -v "$program" >/dev/null 2>&1 || {
        missed "no Debian package: $program is not installed (Debian packages dpkg-dev, debhelper, help2man)"
        exit 0
    }
done
# dpkg-buildpackage writes into the parent of the folder that it works in.
place=${CARGO_TARGET_DIR:-target}/debian
rm -rf "$place"
mkdir -p "$place/tailtrim"
cp -R packaging/debian "$place/tailtrim"
cp "$agent" "$place/tailtrim"
cp -R packaging/prometheus packaging/grafana "$place/tailtrim"
cp packaging/tailtrim-reflect.service "$place/tailtrim/debian/tailtrim-agent.tailtrim-reflect.service"
cp packaging/tailtrim-watch@.service "$place/tailtrim/debian/tailtrim-agent.tailtrim-watch@.service"
python packaging/copyright.py "$target" >"$place/tailtrim/debian/copyright"
help2man --no-info --name "tail latency of packet processing, on each host" \
    --output "$place/tailtrim/debian/tailtrim-agent.1" "$agent"
packed() { # SOURCE
    cat >"$place/$1/debian/changelog" <<END
$1 ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- The tailtrim authors <>  $(git log -1 --format=%cD 2>/dev/null || date -R)
END
    if ! (cd "$place/$1" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >"$place/log" 2>&1; then
        cat "$place/log" >&2
        exit 1
    fi
}
packed tailtrim

# Linked to the libdpdk of this machine: a package for its release of Debian.
if pkg-config --atleast-version=22.11 libdpdk 2>/dev/null; then
    built=${CARGO_TARGET_DIR:-target}/dpdk
    make --silent -C dpdk OUT="$(realpath -m "$built")"
    mkdir -p "$place/tailtrim-dpdk"
    cp -R packaging/debian-dpdk "$place/tailtrim-dpdk/debian"
    cp "$built/tailtrim-dpdk" "$place/tailtrim-dpdk"
    help2man --no-info --name "packets through DPDK, at their times" \
        --output "$place/tailtrim-dpdk/debian/tailtrim-dpdk.1" "$built/tailtrim-dpdk"
    {
        echo "MIT or Apache-2.0 (/usr/share/common-licenses/Apache-2.0). DPDK, which it is linked to, is BSD-3-Clause."
        echo
        cat LICENSE-MIT
    } >"$place/tailtrim-dpdk/debian/copyright"
    packed tailtrim-dpdk
else
    missed "no Debian package tailtrim-dpdk: no libdpdk of 22.11 or later (Debian package libdpdk-dev)"
fi
cp "$place"/*.deb dist/
ls dist
