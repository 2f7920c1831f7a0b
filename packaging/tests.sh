#!/usr/bin/env bash
# Runs tests, and once more those that failed, with nothing beside them. A shared machine takes the processor away for tenths
# of a second: then a test of something live fails although all is right. What fails twice is wrong.
#
#   tests.sh cargo ARG…     cargo test ARG…
#   tests.sh pytest ARG…    pytest ARG…
set -euo pipefail

again() {
    echo "REPEATED: $*: failed, and runs once more" >&2
    "$@" || exit
    echo "REPEATED: $*: passed the second time" >&2
}

kind=$1
shift
case $kind in
cargo)
    told=$(mktemp)
    trap 'rm -f "$told"' EXIT
    if { cargo test --locked --no-fail-fast "$@" 2>&1 >&3 | tee "$told" >&2; } 3>&1; then
        exit
    fi
    # What is behind -- is for the test programs.
    crates=("$@") programs=()
    for ((place = 1; place <= $#; place++)); do
        if [[ ${!place} == -- ]]; then crates=("${@:1:place-1}") programs=("${@:place}"); fi
    done
    # Of each target that failed, cargo says what selects it. Without any, the code does not compile. Its crate is left out:
    # for a selection of crates cargo would compile anew.
    mapfile -t targets < <(sed -n 's/^error: .*test failed, to rerun pass `\(.*\)`$/\1/p' "$told")
    ((${#targets[@]} > 0)) || exit 101
    for target in "${targets[@]}"; do
        read -ra words <<<"$target"
        if [[ ${words[0]} == -p ]]; then words=("${words[@]:2}"); fi
        again cargo test --locked "${crates[@]}" "${words[@]}" "${programs[@]}"
    done
    ;;
pytest)
    status=0
    pytest "$@" || status=$?
    # 1: tests failed. All others: they could not be collected, or somebody ended them.
    ((status == 1)) || exit "$status"
    again pytest "$@" --numprocesses 0 --last-failed --last-failed-no-failures none
    ;;
*)
    echo "tests.sh: found $kind, expected cargo or pytest" >&2
    exit 2
    ;;
esac
