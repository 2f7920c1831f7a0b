# Sourced by the scripts that fetch.

#: Where it is kept.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tailtrim

# Reports a thing that cannot be had, and adds it to the list that the end of a suite shows and judges.
missed() { # REASON
    echo "SKIPPED: $1" >&2
    [ -z "${TAILTRIM_SKIPPED:-}" ] || echo "$1" >>"$TAILTRIM_SKIPPED"
}

tries() { # NUMBER COMMAND…
    left=$1
    shift
    while ! "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 3
    done
}
