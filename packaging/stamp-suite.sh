#!/bin/sh
# Builds stamp-suite, a peer of tests that only crates.io has, below target/peers.
set -eu
cd "$(dirname "$0")/.."

version=1.0.0
command -v stamp-suite >/dev/null 2>&1 && exit 0
target=${CARGO_TARGET_DIR:-$PWD/target}
"$target/peers/bin/stamp-suite" --version 2>/dev/null | grep -q " $version$" && exit 0
# Unoptimized: it sends a hundred packets a second, and so is built in half the time. Only the program is kept.
CARGO_TARGET_DIR="$target/peers/build" CARGO_PROFILE_DEV_DEBUG=false \
    cargo install --quiet --debug --locked --no-track --root "$target/peers" "stamp-suite@$version" ||
    echo "SKIPPED: stamp-suite $version cannot be built" >&2
rm -rf "$target/peers/build"
