# SPDX-License-Identifier: GPL-2.0-or-later
# Ports and configuration files of a cluster.
# shellcheck shell=bash

# Two testbeds that start at once must not pick the same ports. From the choice until the daemons
# listen, up holds a lock on a file that all testbeds of the machine share and nobody else locks.
lock_ports() {
    exec {LOCK_FD}<"$(readlink -f "$(command -v munged)")"
    flock -w 900 "$LOCK_FD" || die "other testbeds have been starting for 900 s; try again"
}

unlock_ports() {
    exec {LOCK_FD}<&-
    LOCK_FD=
}

# Sets PORT to the first of $1 successive free ports. They lie below the range from which the
# kernel gives ports to clients, which could take one at any moment, and below the ports of elastic
# jobs' leaders (port_range of elastic.conf).
choose_ports() {
    local count=$1 low=10000 high try port
    local -A used=()
    read -r high _ </proc/sys/net/ipv4/ip_local_port_range
    ((high < 23000)) || high=23000
    ((high > low + 2 * count)) || low=1024
    ((high > low + 2 * count)) || die "no room below port $high for $count ports"
    # There may be ten thousand connections, and a loop of the shell takes seconds for them.
    while read -r port; do
        used[$((16#$port))]=1
    done < <(cut -d: -f3 /proc/net/tcp /proc/net/tcp6 2>/dev/null | cut -c1-4 |
        grep -x '[0-9A-F]\{4\}' | sort -u)
    for ((try = 0; try < 1000; try++)); do
        PORT=$((low + (RANDOM * 32768 + RANDOM) % (high - low - count)))
        for ((port = PORT; port < PORT + count; port++)); do
            [[ -z ${used[$port]:-} ]] || continue 2
        done
        return 0
    done
    die "no $count successive free ports between $low and $high"
}

controller_port() { printf '%d' "$PORT"; }
database_port() { printf '%d' $((PORT + 1)); }
node_port() { printf '%d' $((PORT + 1 + $1)); }
port_count() { printf '%d' $((opt_nodes + 2)); }

make_directories() {
    mkdir "$DIR"/{etc,log,munge,run,spool,state,tmp}
    chmod 0755 "$DIR" "$DIR"/{etc,munge,run,spool,tmp}
    chmod 0700 "$DIR/state"
    if [[ $REAL ]]; then
        touch "$DIR"/log/slurm{ctld,dbd}.log
        chown "$SERVICE_USER:" "$DIR/state" "$DIR"/log/slurm{ctld,dbd}.log
    fi
    # Jobs write here as their users.
    mkdir -m 1777 "$DIR/jobs" "$DIR/snapshots"
    local i
    local -a nodes=()
    for ((i = 1; i <= opt_nodes; i++)); do
        nodes+=("n$i")
    done
    mkdir -m 0755 "${nodes[@]/#/$DIR/spool/}"
    mkdir -m 1777 "${nodes[@]/#/$DIR/tmp/}"
    if ((opt_gpus)); then
        mkdir -m 0755 "$DIR/dev"
        for ((i = 0; i < opt_gpus; i++)); do
            mknod -m 0666 "$DIR/dev/fakegpu$i" c 240 "$i" 2>/dev/null ||
                die "--gpus-per-node $opt_gpus: mknod is not allowed here"
        done
    fi
}

# Preemption by partition without slurmdbd, by QOS with it.
preemption_conf() {
    if [[ $opt_dbd == yes ]]; then
        printf 'PreemptType=preempt/qos\nPreemptMode=CANCEL\n'
    else
        printf 'PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n'
    fi
}

accounting_conf() {
    if [[ $opt_dbd == no ]]; then
        printf 'AccountingStorageType=accounting_storage/none\n'
        return
    fi
    # For auth/munge, the word "pass" means the path of munge's socket.
    cat <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStoragePass=$MUNGE_SOCKET
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$(database_port)
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
CONF
    if ((opt_gpus)); then
        printf 'AccountingStorageTRES=gres/gpu\n'
    fi
}

plugins_conf() {
    [[ $opt_stock == no ]] || return 0
    local prolog epilog
    [[ -z $JOB_SUBMIT_DIR ]] || printf 'PluginDir=%s:%s\nJobSubmitPlugins=elastic\n' \
        "$JOB_SUBMIT_DIR" "$(system_plugin_dir)"
    [[ -n $JOB_SUBMIT_DIR || -z $SELECT_DIR ]] ||
        printf 'PluginDir=%s:%s\n' "$SELECT_DIR" "$(system_plugin_dir)"
    prolog=$(link_hooks prolog)
    epilog=$(link_hooks epilog)
    [[ -z $prolog ]] || printf 'Prolog=%s\n' "$prolog"
    [[ -z $epilog ]] || printf 'Epilog=%s\n' "$epilog"
}

select_conf() {
    if [[ $opt_select == yes ]]; then
        printf 'SelectType=select/elastic_cons_tres\n'
    else
        printf 'SelectType=select/cons_tres\n'
    fi
    [[ $opt_tree == no ]] || printf 'TopologyPlugin=topology/tree\n'
}

# node_range FIRST LAST: such as n[5-8] or n5.
node_range() {
    if (($1 == $2)); then
        printf 'n%d' "$1"
    else
        printf 'n[%d-%d]' "$1" "$2"
    fi
}

topology_conf() {
    local first last leaf=0
    for ((first = 1; first <= opt_nodes; first += LEAF_NODES)); do
        last=$((first + LEAF_NODES - 1))
        printf 'SwitchName=s%d Nodes=%s\n' $((++leaf)) \
            "$(node_range "$first" $((last < opt_nodes ? last : opt_nodes)))"
    done
    printf 'SwitchName=s0 Switches=s[1-%d]\n' "$leaf"
}

# As selastic topology collect writes it.
shapes_file() {
    local half=$(((opt_nodes + 1) / 2))
    printf '{"format": 1, "shapes": {"a": {}, "b": {}},\n "nodes": {"%s": "a"' \
        "$(node_range 1 "$half")"
    ((half == opt_nodes)) || printf ', "%s": "b"' "$(node_range $((half + 1)) "$opt_nodes")"
    printf '}}\n'
}

# Nodes of the partitions that are no zone. ALL where it can be: then nodes may come and go.
static_nodes() {
    if ((opt_static == opt_nodes)); then
        echo ALL
    else
        node_range 1 "$opt_static"
    fi
}

nodes_conf() {
    local i state gres=
    if ((opt_gpus)); then
        printf 'GresTypes=gpu\n'
        gres=" Gres=gpu:$opt_gpus"
    fi
    for ((i = 1; i <= opt_nodes; i++)); do
        zone_of "$i"
        state=${ZONE:+CLOUD Feature=$ZONE}
        state=${state:-UNKNOWN}
        printf 'NodeName=n%d NodeHostname=%s NodeAddr=%s Port=%d Sockets=1' "$i" \
            "$(node_host "$i")" "$(node_address "$i")" "$(node_port "$i")"
        printf ' CoresPerSocket=%d ThreadsPerCore=1 RealMemory=%d%s State=%s\n' "$opt_cpus" \
            $((opt_cpus * 1000)) "$gres" "$state"
    done
}

# Jobs share nodes unless they say --exclusive: both kinds can be tried. Memory is shared out as
# well (1000 MB to each CPU; nothing is enforced), so that jobs are counted as on a real cluster.
slurm_conf() {
    local bind=NoInAddrAny,NoCtldInAddrAny
    # A node's srun would listen where its host name points to; in a namespace nobody minds if it listens everywhere.
    [[ -z $NETWORK ]] || bind=NoCtldInAddrAny
    cat <<CONF
# Made by scripts/testbed.
ClusterName=testbed
SlurmctldHost=$(host_name)($(controller_address))
SlurmctldPort=$(controller_port)
SlurmUser=$(slurm_user)
SlurmdUser=$(id -un)
CommunicationParameters=$bind
AuthType=auth/munge
AuthInfo=socket=$MUNGE_SOCKET
CredType=cred/munge
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
TmpFS=$DIR/tmp/%n
SlurmctldPidFile=$DIR/state/slurmctld.pid
SlurmdPidFile=$DIR/run/slurmd.%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd.%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
PlugStackConfig=$DIR/etc/plugstack.conf
MailProg=/bin/true

$(form_conf)
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SwitchType=switch/none
$(select_conf)
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,bf_continue,sched_interval=5,batch_sched_delay=1
PriorityType=priority/basic

# Small, so that tests are quick.
KillWait=10
CompleteWait=0
InactiveLimit=0
MinJobAge=300
MessageTimeout=10
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout=$opt_slurmd_timeout
UnkillableStepTimeout=60

$(preemption_conf)
$(accounting_conf)
$(plugins_conf)
$(cloud_conf)
$(nodes_conf)
PartitionName=DEFAULT Nodes=$(static_nodes) State=UP MaxTime=INFINITE DefaultTime=60
PartitionName=batch Default=YES PriorityTier=10 PreemptMode=OFF
PartitionName=whole OverSubscribe=EXCLUSIVE PriorityTier=10 PreemptMode=OFF
PartitionName=elastic PriorityTier=1 PreemptMode=CANCEL GraceTime=$opt_grace
PartitionName=spare PriorityTier=2 PreemptMode=CANCEL GraceTime=$opt_grace
$(cloud_partitions)
CONF
}

write_configuration() {
    if ((opt_gpus)); then
        printf 'AutoDetect=off\nName=gpu File=%s/dev/fakegpu[0-%d]\n' "$DIR" $((opt_gpus - 1)) \
            >"$DIR/etc/gres.conf"
    fi
    {
        printf '# Made by scripts/testbed.\n'
        [[ -z $SPANK_DIR ]] || printf 'required %s/spank_elastic.so\n' "$SPANK_DIR"
    } >"$DIR/etc/plugstack.conf"
    elastic_conf >"$DIR/etc/elastic.conf"
    if [[ $opt_tree == yes ]]; then
        topology_conf >"$DIR/etc/topology.conf"
        shapes_file >"$DIR/etc/elastic-shapes.json"
    fi
    isolation_files
    cloud_files
    slurm_conf >"$CONF"
}

# The time values are small, so that tests are quick. Node names and job ids are those of every other
# testbed, so state and snapshots must lie in this one's directory.
elastic_conf() {
    local pool
    cat <<CONF
# Made by scripts/testbed.
munge_socket = $MUNGE_SOCKET
state_dir = $DIR/jobs/%u-%j
snapshot_dir = $DIR/snapshots
grow_delay = 3
fault_wait = 5
node_backoff = 1
default_pool = elastic
CONF
    # Nothing in slurmctld tells jobs that a node is drained.
    [[ -n $JOB_SUBMIT_DIR ]] || printf 'drain_look = 5\n'
    for pool in elastic spare $(zone_names); do
        printf '\n[pool %s]\npartition = %s\n' "$pool" "$pool"
        [[ $opt_dbd == no ]] || printf 'qos = elastic\n'
        printf 'grace = %d\ntime_min = 1\n' "$opt_grace"
        ! zone_range "$pool" || printf 'wake = yes\n'
    done
}
