#!/bin/sh
# Runs a command with the programs and libraries of another Debian release (packaging/roots.sh): its /usr in
# place of this machine's, for that command alone. Files elsewhere, processes and networks are the caller's.
#
#   in-root.sh NAME COMMAND…
set -eu

. "$(dirname "$0")/fetching.sh"
root=$(realpath "$cache/roots/$1")
shift
exec unshare --mount sh -c 'mount --bind "$0/usr" /usr && exec "$@"' "$root" "$@"
