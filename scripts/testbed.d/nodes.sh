# SPDX-License-Identifier: GPL-2.0-or-later
# Single nodes: starting them, losing them, and the form in which each has a network of its own.
# shellcheck shell=bash

# With --netns, namespace elastic-PORT is the switch, elastic-PORT-nI is node I, and one pair of
# interfaces connects the switch to this machine, where slurmctld and clients are. The addresses are
# of 198.18.0.0/15, which nobody routes: it is set aside for measurements (RFC 2544).
MAX_NETNS_NODES=250

hub_namespace() { printf 'elastic-%d' "$PORT"; }
node_namespace() { printf 'elastic-%d-%s' "$PORT" "$1"; }
uplink() { printf 'elastic%d' "$PORT"; }

controller_address() {
    if [[ $NETWORK ]]; then
        printf '%s.254' "$NETWORK"
    else
        printf '127.0.0.1'
    fi
}

# node_address NUMBER
node_address() {
    if [[ $NETWORK ]]; then
        printf '%s.%d' "$NETWORK" "$1"
    else
        printf '127.0.0.1'
    fi
}

# node_host NUMBER: with a namespace, a node has a name of its own as well.
node_host() {
    if [[ $NETWORK ]]; then
        printf 'n%d' "$1"
    else
        host_name
    fi
}

# Sets NETWORK to the first three parts of addresses that no interface of this machine has.
choose_network() {
    local try used
    used=$(ip -4 -oneline address show; ip -4 route show table all)
    for ((try = 0; try < 200; try++)); do
        NETWORK=198.$((18 + RANDOM % 2)).$((RANDOM % 256))
        [[ $used == *" $NETWORK."* ]] || return 0
    done
    die "--netns: no network of 198.18.0.0/15 is free"
}

# network COMMAND...: an ip(8) that must succeed.
network() {
    ip "$@" >>"$DIR/log/network.out" 2>&1 || fail "ip $* failed" network.out
}

make_network() {
    local hub i node space
    hub=$(hub_namespace)
    choose_network
    # For down, whatever becomes of us.
    printf '%s\n' "$PORT" >"$DIR/run/network"
    network netns add "$hub"
    network -n "$hub" link add switch type bridge
    network -n "$hub" link set switch up
    network link add "$(uplink)" type veth peer name uplink netns "$hub"
    network -n "$hub" link set uplink master switch up
    network address add "$(controller_address)/24" dev "$(uplink)"
    network link set "$(uplink)" up
    {
        printf '127.0.0.1 localhost\n%s %s\n' "$(controller_address)" "$(host_name)"
        for ((i = 1; i <= opt_nodes; i++)); do
            printf '%s n%d\n' "$(node_address "$i")" "$i"
        done
    } >"$DIR/etc/hosts"
    for ((i = 1; i <= opt_nodes; i++)); do
        node=n$i
        space=$(node_namespace "$node")
        network netns add "$space"
        network -n "$hub" link add "$node" type veth peer name eth0 netns "$space"
        network -n "$hub" link set "$node" master switch up
        network -n "$space" link set lo up
        network -n "$space" address add "$(node_address "$i")/24" dev eth0
        network -n "$space" link set eth0 up
    done
}

# Whatever is there of it. The interfaces go with the namespaces that they are in.
remove_network() {
    local port space
    read -r port 2>/dev/null <"$DIR/run/network" && [[ $port =~ ^[0-9]+$ ]] || return 0
    ip netns list | while read -r space _; do
        [[ $space != "elastic-$port" && $space != "elastic-$port-n"* ]] || ip netns delete "$space"
    done
    ip link delete "elastic$port" 2>/dev/null || true
}

# slurmctld listens where its host name points to: with namespaces, where the nodes find it.
start_controller() {
    local -a within=() under=()
    if [[ $NETWORK ]]; then
        # shellcheck disable=SC2016 # the inner shell's
        within=(unshare --mount -- bash -c
            'mount --bind "$1" /etc/hosts && shift && exec "$@"' - "$DIR/etc/hosts")
    fi
    as_slurm
    # Words that slurmctld is started by: valgrind and its options.
    read -ra under <<<"${ELASTIC_SLURMCTLD_UNDER:-}"
    start_daemon slurmctld "${within[@]}" "${AS_SLURM[@]}" "${under[@]}" "$(type -P slurmctld)" -D -f "$CONF"
}

# node_cpus NODE: prints the mask of its part of the processors.
node_cpus() {
    hwloc-distrib --taskset "$NODES" | sed -n "${1#n}p"
}

# start_node NODE [OPTION]...: its slurmd. With a namespace it has its own host name, and finds those of the
# others in its /etc/hosts.
start_node() {
    local -a within=()
    if [[ $NETWORK ]]; then
        # shellcheck disable=SC2016 # the inner shell's
        within=(nsenter "--net=/run/netns/$(node_namespace "$1")" unshare --mount --uts -- bash -c
            'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"' -
            "$1" "$DIR/etc/hosts")
    fi
    if [[ $REAL ]]; then
        make_groups "$1"
        isolate "$1" "$([[ $OWN_CPUS ]] && hwloc-calc -I pu --po "$(node_cpus "$1")" || own_processors)"
        within+=("${WITHIN[@]}")
    fi
    [[ ! $OWN_CPUS ]] || within=(taskset "$(node_cpus "$1")" "${within[@]}")
    start_daemon "slurmd.$1" "${within[@]}" slurmd -D -N "$1" -f "$CONF" "${@:2}"
}

# node_processes NODE: prints the pids of all that is on the node: those that have its log open (slurmd
# and the slurmstepds), and those with the environment of a job there.
node_processes() {
    local pid exe
    if [[ $REAL ]]; then
        group_processes "$1"
        return
    fi
    if [[ $NETWORK ]]; then
        ip netns pids "$(node_namespace "$1")"
        return
    fi
    # Its status is that of some process which has ended meanwhile.
    find /proc/[0-9]*/fd -maxdepth 1 -lname "$DIR/log/slurmd.$1.log" 2>/dev/null | cut -d/ -f3 |
        sort -u || true
    while IFS=/ read -r _ _ pid _; do
        if grep -qzxF "SLURM_CONF=$CONF" "/proc/$pid/environ" 2>/dev/null; then
            printf '%s\n' "$pid"
        fi
    done < <(grep -lzxF "SLURMD_NODENAME=$1" /proc/[0-9]*/environ 2>/dev/null)
}

# The processes of a node in the order in which they can be killed one by one as if at once: an srun is two
# processes, and the second cancels the step when it sees the first one end; slurmstepd says that a batch script has ended;
# an agent says that a worker, its child, has.
in_killing_order() {
    local pid name
    while read -r pid; do
        read -r name 2>/dev/null <"/proc/$pid/comm" || continue
        case $name in
            slurmd | slurmstepd) printf '0 -%s %s\n' "$pid" "$pid" ;;
            srun) printf '1 -%s %s\n' "$pid" "$pid" ;;
            *) printf '2 %s %s\n' "$pid" "$pid" ;;
        esac
    done | sort -k1,1n -k2,2n | cut -d' ' -f3
}

kill_node() {
    local round
    local -a pids
    for ((round = 0; round < 50; round++)); do
        mapfile -t pids < <(node_processes "$1" | in_killing_order)
        ((${#pids[@]})) || return 0
        thaw_groups
        kill -s KILL "${pids[@]}" 2>/dev/null || true
        sleep 0.02
    done
    die "some processes of $1 cannot be killed: ${pids[*]}"
}

# set_link NODE up|down: the port of the switch, so that the node sees what it would if a cable is pulled.
set_link() {
    ip -n "$(hub_namespace)" link set "$1" "$2" || die "the link of $1 cannot be set $2"
}

# known_node: checks the operand of a command.
known_node() {
    [[ $opt_node =~ ^n([1-9][0-9]{0,2})$ ]] && ((BASH_REMATCH[1] <= NODES)) ||
        die "node ${opt_node:-is missing}: want one of n1 to n$NODES"
}

need_network() {
    [[ $NETWORK ]] || die "$1 needs a testbed that was started with --netns"
}

command_cut() {
    read_record
    known_node
    need_network cut
    set_link "$opt_node" down
    say "$opt_node is cut off"
}

command_mend() {
    read_record
    known_node
    need_network mend
    set_link "$opt_node" up
    say "$opt_node is connected"
}

# As a power failure: what is in its memory is gone, and without a word if it has a network of its own.
crash_node() {
    [[ ! $NETWORK ]] || set_link "$1" down
    kill_node "$1"
    wait_until 60 remove_groups "$1" || die "the cgroups of $1 cannot be removed"
    rm -rf --one-file-system -- "$DIR/snapshots/elastic-"*"-$1"
}

command_crash() {
    read_record
    known_node
    crash_node "$opt_node"
    say "$opt_node has crashed"
}

slurmd_listens() {
    (exec 3<>"/dev/tcp/$(node_address "$1")/$(node_port "$1")") 2>/dev/null
}

# boot_node NODE [OPTION]...
boot_node() {
    ! daemon_alive "slurmd.$1" || die "$1 is running"
    sed -i "/^slurmd.$1 /d" "$PIDS"
    [[ ! $NETWORK ]] || set_link "$1" up
    [[ ! $REAL ]] || choose_namespace_cpu
    start_node "$@"
}

# registered NODE SINCE: whether slurmctld has heard from a slurmd of the node that began since then.
registered() {
    local began
    began=$(slurm scontrol show node "$1" 2>/dev/null | sed -n 's/.*SlurmdStartTime=\([0-9T:-]*\).*/\1/p')
    [[ $began ]] && (($(date -d "$began" +%s) >= $2))
}

# Until slurmctld knows the new slurmd, it may use the node, and then miss there what it has just begun.
command_boot() {
    local began=$EPOCHSECONDS
    read_record
    known_node
    boot_node "$opt_node"
    wait_until 120 slurmd_listens "${opt_node#n}" || fail "$opt_node does not start" "slurmd.$opt_node.out"
    ! daemon_alive slurmctld || wait_until 120 registered "$opt_node" "$began" ||
        fail "$opt_node does not register" "slurmd.$opt_node.out"
    say "$opt_node is started"
}
