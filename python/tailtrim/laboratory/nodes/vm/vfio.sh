# Gives PCI devices to vfio-pci, and back to their drivers when standard input ends: with the process that asked for
# it, whatever ends that. Interfaces at the other ends of their cables go into a network namespace meanwhile.
#
#   SYSFS PROCESS "ADDRESS=DRIVER…" "SETTING=BEFORE…" [INTERFACE]…
#
# where sysfs is; a process in that namespace; the devices with the drivers that they go back to; settings of virtual
# functions as words of `ip link set`, which begin with the interface of the physical one and have slashes between them,
# with their values before; the interfaces. It says that it holds all, and of each setting that was refused why.
trap '' HUP INT PIPE TERM
sys=$1 parking=$2 devices=$3 settings=$4 given="" changed="" refused="" cables=""
shift 4

set_to() { # FILE VALUE
    problem=$(echo "$2" | tee "$1" 2>&1 >/dev/null) && return
    echo "$1: cannot be set to $2: ${problem##*: }" >&2
    return 1
}

set_function() { # INTERFACE/vf/NUMBER/NAME/VALUE
    # shellcheck disable=SC2046 # words
    problem=$(ip link set dev $(echo "$1" | tr / ' ') 2>&1)
}

hand() { # ADDRESS OVERRIDE DRIVER: from the driver that it has, which takes until nothing uses it any more
    set_to "$sys/bus/pci/devices/$1/driver_override" "$2" || return
    now=$(readlink "$sys/bus/pci/devices/$1/driver")
    [ "${now##*/}" != "$3" ] || return 0
    if [ "$now" ]; then
        set_to "$sys/bus/pci/devices/$1/driver/unbind" "$1" || return
    fi
    set_to "$sys/bus/pci/drivers/$3/bind" "$1"
}

give_back() {
    code=0
    for one in $given; do
        device=${one%%=*} driver=${one#*=}
        hand "$device" "${driver#*=}" "${driver%%=*}" || code=1
    done
    # With a driver, a function keeps the address that it has.
    for one in $changed; do
        command=${one%%=*} before=${one#*=}
        [ "${command##*/}" = "$before" ] || set_function "${command%/*}/$before" ||
            { echo "$command: cannot be undone: ${problem##*: }" >&2 && code=1; }
    done
    return $code
}

fetch() { # INTERFACE: from the namespace; where that has ended, the kernel brings it, a moment later
    nsenter --net="/proc/$parking/ns/net" -- ip link set dev "$1" netns $$ 2>/dev/null
    tries=0
    until ip link show dev "$1" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || { echo "$1: has not come back" >&2 && return 1; }
        sleep 0.01
    done
}

leave() { # CODE
    back=$1
    for interface in $cables; do fetch "$interface" || back=1; done
    eval "$restore"
    give_back || back=1
    exit "$back"
}

remember "$@"
[ -e "$sys/bus/pci/drivers/vfio-pci" ] || modprobe vfio-pci || exit 1
for one in $settings; do
    if set_function "${one%%=*}"; then
        changed="$changed $one"
    else
        refused="$refused; $(echo "${one%%=*}" | tr / ' '): ${problem##*: }"
    fi
done
for one in $devices; do
    device=${one%%=*}
    override=$(cat "$sys/bus/pci/devices/$device/driver_override")
    [ "$override" != "(null)" ] || override=""
    given="$given $one=$override"
    hand "$device" vfio-pci vfio-pci || leave 1
done
for interface; do
    ip link set dev "$interface" netns "$parking" || leave 1
    cables="$cables $interface"
done
echo "bound$refused"
cat >/dev/null
leave 0
