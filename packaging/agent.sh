#!/bin/sh
# Builds the static agent and puts it where the wheel and the virtual environment take it from.
#
# Against musl where rustup has or gets the target; against glibc, linked statically, where Rust comes
# without rustup.
set -eu
cd "$(dirname "$0")/.."

machine=$(uname -m)
target="$machine-unknown-linux-musl"
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    command -v rustup >/dev/null 2>&1 && rustup target add "$target" || {
        target="$machine-unknown-linux-gnu"
        RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
        export RUSTFLAGS
    }
fi
cargo build --release --locked --package tailtrim-agent --target "$target"
mkdir -p packaging/tailtrim.data/scripts
# Debug information is five sixths of it, and stays in the target folder.
strip --strip-debug -o packaging/tailtrim.data/scripts/tailtrim-agent \
    "${CARGO_TARGET_DIR:-target}/$target/release/tailtrim-agent"
# Which C library is in it: the Debian package says so.
echo "$target" >"${CARGO_TARGET_DIR:-target}/agent.target"
echo "agent: static, $target"
