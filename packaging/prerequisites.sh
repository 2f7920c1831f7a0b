#!/bin/sh
# Names what this machine lacks, with the Debian package that has it; as root, installs it.
#
#   prerequisites.sh build    what `make setup` needs
#   prerequisites.sh live     what experiments on this machine need, after `make setup`
#   prerequisites.sh docs     what `make docs` needs
#   prerequisites.sh dist     what `make dist` needs beside that of `make setup`
#   prerequisites.sh test     what only tests need: a test that lacks one is skipped loudly
set -eu

missing=""
need() { # PACKAGE PROGRAM…
    package=$1
    shift
    for program in "$@"; do
        command -v "$program" >/dev/null 2>&1 && return 0
    done
    case "$missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
}

python=${PYTHON:-python3}
rust=1.89.0

recent() { # VERSION of cargo
    case $1 in [0-9]*) printf '%s\n%s\n' "$rust" "$1" | sort -V -C ;; *) false ;; esac
}

case ${1:-build} in
build)
    need gcc cc gcc clang
    need git git
    need python3 "$python"
    # A package that is too old, as apt's often is, is not installed.
    if ! command -v cargo >/dev/null 2>&1; then
        candidate=$(apt-cache policy cargo 2>/dev/null | sed -n 's/^ *Candidate: //p')
        ! recent "$candidate" || missing="$missing cargo"
    fi
    # BPF programs are written in C. The build works without: then reflect --mode xdp and af-xdp, and AF_XDP ports, are
    # missing.
    need clang clang
    if command -v "$python" >/dev/null 2>&1; then
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
            echo "error: $("$python" --version) is too old, expected Python 3.11 or later (set PYTHON=…)" >&2
            exit 2
        }
        "$python" -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
    fi
    ;;
# Missing packages are named by `tailtrim doctor`: nothing is repeated here.
live)
    missing=$(tailtrim doctor --missing-packages demo)
    ;;
docs)
    need help2man help2man
    ;;
dist)
    # The agent contains zstd, which is written in C.
    need musl-tools musl-gcc
    need dpkg-dev dpkg-buildpackage
    need debhelper dh
    need help2man help2man
    ;;
test)
    missing=$(python tests/needed/tools.py)
    ;;
*)
    echo "usage: prerequisites.sh build|live|docs|dist|test" >&2
    exit 2
    ;;
esac

# One line, each with a space before it.
# shellcheck disable=SC2086 # a list of packages
missing=$(printf ' %s' $missing)
[ "$missing" != " " ] || missing=""

if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a list of packages
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; then
        missing=""
    fi
fi
if [ -n "$missing" ]; then
    echo "missing on this machine:$missing" >&2
    echo "install with: sudo apt-get install$missing" >&2
    # Each test that lacks one is skipped, and its suite fails by that.
    [ "$1" = test ] && exit 0
    exit 2
fi
if [ "${1:-build}" = build ]; then
    version=$(cargo --version 2>/dev/null | cut -d' ' -f2)
    recent "$version" || {
        found=${version:-missing}
        echo "error: cargo is $found, expected $rust or later (rustup.rs, or the backports of Debian 13)" >&2
        exit 2
    }
fi
