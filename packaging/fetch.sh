#!/bin/sh
# Fetches parts of other projects that tests, or the documentation's site, need. Each is tried three times; if it cannot
# be had, that is reported here and at the end of the suite.
#
#   fetch.sh NAME…     docs spark validator s3s stamp-suite kernels roots
#
# Everything but Python packages stays in the user's cache, which serves until a request changes.
set -u
cd "$(dirname "$0")/.."
. packaging/fetching.sh

locked() { # LOCK [VENV]: into the environment of the tests, or one of its own
    venv=${2:-target/test}
    cmp -s "$1" "$venv/$1" && return
    [ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv" || return
    tries 3 "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement "$1" &&
        cp "$1" "$venv/$1"
}

crate() { # NAME VERSION [OPTION…]: a program that only crates.io has, compiled without optimization
    name=$1 version=$2
    shift 2
    [ "$(cat "$cache/crates/$name.version" 2>/dev/null)" = "$version" ] && return
    CARGO_TARGET_DIR=$PWD/target/crates CARGO_PROFILE_DEV_DEBUG=false \
        tries 3 cargo install --quiet --debug --locked --no-track --force --root "$cache/crates" "$@" "$name@$version" &&
        echo "$version" >"$cache/crates/$name.version"
}

for name in "$@"; do
    case $name in
    docs) locked requirements-docs.lock ;;
    spark) locked requirements-spark.lock ;;
    validator) locked requirements-validator.lock target/validator ;;
    s3s) crate s3s-fs 0.14.1 --features binary ;;
    stamp-suite) crate stamp-suite 1.0.0 ;;
    kernels) packaging/kernels.sh ;;
    roots) packaging/roots.sh ;;
    *)
        echo "error: found $name, expected docs, spark, validator, s3s, stamp-suite, kernels or roots" >&2
        exit 2
        ;;
    esac || missed "$name cannot be fetched"
done
