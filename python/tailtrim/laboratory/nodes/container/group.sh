# Makes a control group in each of some hierarchies, and removes them when standard input ends: with the process that
# asked for them, whatever ends that.
#
#   group PARENT               make one below PARENT
#   enable PARENT CONTROLLER   let groups below PARENT have a controller (cgroup v2)
#   limit PARENT FILE VALUE    set a limit of the one below PARENT
trap '' HUP INT PIPE TERM
name=tailtrim-$$ made="" enabled=""

remove() {
    for group in $made; do
        tries=0
        while [ -d "$group" ] && ! rmdir "$group" 2>/dev/null && [ $tries -lt 1000 ]; do
            # shellcheck disable=SC2046 # a list of numbers
            kill -KILL $(cat "$group/cgroup.procs" 2>/dev/null) 2>/dev/null
            tries=$((tries + 1))
            sleep 0.01
        done
    done
    for one in $enabled; do
        # Others may have begun to depend on it.
        [ -n "$(find "${one%=*}" -mindepth 1 -maxdepth 1 -type d)" ] ||
            echo "-${one##*=}" >"${one%=*}/cgroup.subtree_control"
    done
}

set_to() { # FILE VALUE
    problem=$({ echo "$2" >"$1"; } 2>&1) && return
    echo "$1: cannot be set to $2: ${problem##*: }" >&2
    remove
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    group)
        # Remains of an earlier one whose own process was killed, too.
        for old in "$2"/tailtrim-*; do
            [ -d "/proc/${old##*-}" ] || rmdir "$old" 2>/dev/null
        done
        problem=$(mkdir "$2/$name" 2>&1) || {
            echo "$2: no control group can be made: ${problem##*: }" >&2
            remove
            exit 1
        }
        made="$made $2/$name"
        shift 2
        ;;
    enable)
        case " $(cat "$2/cgroup.subtree_control") " in
        *" $3 "*) ;;
        *)
            set_to "$2/cgroup.subtree_control" "+$3"
            enabled="$enabled $2=$3"
            ;;
        esac
        shift 3
        ;;
    limit)
        set_to "$2/$name/$3" "$4"
        shift 4
        ;;
    esac
done
echo "$name"
cat >/dev/null
remove
