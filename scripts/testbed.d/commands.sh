# SPDX-License-Identifier: GPL-2.0-or-later
# The commands that concern the cluster as a whole.
# shellcheck shell=bash

# fail TEXT [LOG]: for up: shows the end of a log, takes everything down, ends with an error.
fail() {
    say "$1" >&2
    local log=$DIR/log/${2:-}
    if [[ -n ${2:-} && -s $log ]]; then
        printf '%s\n' "--- end of $log" >&2
        tail -n 15 "$log" >&2
        printf '%s\n' "---" >&2
    fi
    exit 1
}

abandon_up() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    jobs -p | xargs -r kill -s KILL 2>/dev/null || true
    remove_cluster
    say "not started; nothing is left of it" >&2
    exit "$status"
}

# Sets SUBMITTER: the ordinary user. With SlurmUser other than root only that user has jobs.
choose_submitter() {
    SUBMITTER=$opt_user
    if ((UID != 0)); then
        SUBMITTER=${SUBMITTER:-$(id -un)}
        [[ $SUBMITTER == "$(id -un)" ]] ||
            die "--user $SUBMITTER: only root can start a testbed for somebody else"
        ((opt_gpus == 0)) || die "--gpus-per-node $opt_gpus: needs root, which alone makes devices"
    elif [[ -z $SUBMITTER ]]; then
        SUBMITTER=${SUDO_USER:-elastic}
        id -u "$SUBMITTER" >/dev/null 2>&1 || SUBMITTER=root
    fi
    id -u "$SUBMITTER" >/dev/null 2>&1 || die "--user $SUBMITTER: no such user on this machine; scripts/setup --test-user makes one"
}

check_programs() {
    local program
    local -a missing=() wanted=(munged slurmctld slurmd sinfo scancel flock setpriv)
    [[ ! $OWN_CPUS ]] || wanted+=(hwloc-distrib taskset)
    [[ $opt_dbd == no ]] || wanted+=(mariadbd mariadb-install-db mariadb-admin slurmdbd sacctmgr)
    for program in "${wanted[@]}"; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    ((${#missing[@]} == 0)) || die "not installed: ${missing[*]}; scripts/setup installs them"
}

# Whether namespaces can be made here is tried, since a container may forbid it to root.
check_netns() {
    [[ $opt_netns == yes ]] || return 0
    ((UID == 0)) || die "--netns: needs root"
    ((opt_nodes <= MAX_NETNS_NODES)) || die "--netns: with $MAX_NETNS_NODES nodes at most"
    command -v ip >/dev/null || die "not installed: ip; scripts/setup installs it"
    unshare --net --mount --uts -- ip link add type veth >/dev/null 2>&1 ||
        die "--netns: network namespaces cannot be made on this machine"
}

# Takes the directory, atomically: of two ups for one directory the second is refused.
claim_directory() {
    if [[ -e $DIR/.claimed ]]; then
        own_directory
        no_daemon_alive ||
            die "a testbed is up in $DIR; take it down with: scripts/testbed down --dir $DIR"
        die "a dead testbed lies in $DIR; clear it with: scripts/testbed down --dir $DIR"
    fi
    if [[ -e $DIR ]]; then
        own_directory
        [[ -z $(ls -A "$DIR") ]] || die "$DIR is not empty and not a testbed; choose another --dir"
    else
        [[ -d ${DIR%/*} ]] || die "--dir $DIR: there is no directory ${DIR%/*}"
    fi
    (umask 022 && mkdir -p "$DIR") || die "cannot make $DIR"
    mkdir "$DIR/.claimed" 2>/dev/null || die "another testbed has just been started in $DIR"
    trap abandon_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    chmod 0755 "$DIR"
    as_submitter test -x "$DIR" ||
        die "user $SUBMITTER cannot enter $DIR: choose a --dir that everybody can enter"
}

start_munge() {
    local -a as=()
    (umask 077 && head -c 256 /dev/urandom >"$DIR/munge/key")
    if ((UID == 0)) && id -u munge >/dev/null 2>&1; then
        as=(setpriv --reuid=munge --regid="$(id -g munge)" --clear-groups --)
        chown -R munge: "$DIR/munge"
    fi
    start_daemon munged "${as[@]}" munged --foreground --socket="$MUNGE_SOCKET" \
        --key-file="$DIR/munge/key" --pid-file="$DIR/munge/pid" --seed-file="$DIR/munge/seed" \
        --log-file="$DIR/munge/log" --num-threads=4
    wait_until 60 munge_answers || fail "munged did not start" munged.out
}

munge_answers() {
    daemon_alive munged || fail "munged has ended" munged.out
    munge --no-input --socket="$MUNGE_SOCKET" >/dev/null 2>&1
}

start_slurm() {
    local i
    start_controller
    wait_until 120 controller_answers || fail "slurmctld does not answer" slurmctld.out
    for ((i = 1; i <= opt_static; i++)); do
        start_node "n$i"
    done
    wait_until 180 nodes_idle || fail_nodes
    start_cloud
}

controller_answers() {
    daemon_alive slurmctld || fail "slurmctld has ended" slurmctld.out
    SLURM_TIMEOUT=10 slurm scontrol ping >/dev/null 2>&1
}

nodes_idle() {
    [[ $(slurm sinfo -h -p batch -o '%D %T' 2>/dev/null) == "$opt_static idle" ]]
}

# Shows the log of the first node that did not come.
fail_nodes() {
    local node
    node=$(slurm sinfo -h -N -p batch -o '%N %T' 2>/dev/null | awk '$2 != "idle" {print $1; exit}')
    fail "node ${node:-n1} is not idle after 180 s" "slurmd.${node:-n1}.out"
}

command_up() {
    local began=$EPOCHREALTIME
    choose_slurm
    check_programs
    VERSION=$(slurmctld -V) || VERSION=
    check_netns
    choose_form
    choose_submitter
    choose_prefix
    claim_directory
    make_directories
    copy_hidden_prefix
    find_parts
    report_parts
    start_munge
    [[ $opt_dbd == no ]] || start_database
    lock_ports
    choose_ports "$(port_count)"
    NODES=$opt_nodes
    [[ -z $REAL ]] || choose_namespace_cpu
    write_record
    [[ $opt_netns == no ]] || make_network
    write_configuration
    write_record
    if [[ $opt_dbd == yes ]]; then
        say "slurmdbd on port $(database_port)"
        start_slurmdbd
        fill_accounts
    fi
    say "slurmctld on port $(controller_port), $NODES slurmds on ports $(node_port 1)" \
        "to $(node_port "$NODES")"
    start_slurm
    unlock_ports
    trap - EXIT INT TERM HUP
    say "up in $(elapsed "$began") s: $opt_static nodes idle${CLOUD:+, $((NODES - opt_static)) powered down}; jobs by $SUBMITTER; eval" \
        "\"\$(scripts/testbed env --dir $DIR)\""
}

elapsed() {
    local now=$EPOCHREALTIME
    local tenths=$(((${now/./} - ${1/./}) / 100000))
    printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

no_job_left() {
    [[ -z $(SLURM_TIMEOUT=2 slurm squeue -h -o %A 2>/dev/null) ]]
}

# Jobs get their SIGTERM and their epilogs while there is a controller, but not for long.
cancel_jobs() {
    daemon_alive slurmctld && ! no_job_left || return 0
    SLURM_TIMEOUT=2 slurm squeue -h -o %A 2>/dev/null |
        SLURM_TIMEOUT=3 slurm xargs -r scancel --quiet >/dev/null 2>&1 || true
    wait_until 2 no_job_left && return
    kill_job_processes || true
    wait_until 3 no_job_left || true
}

# Whatever state the cluster is in. No error may end this before its end.
remove_cluster() {
    set +e
    # shellcheck disable=SC1091
    [[ ! -e $DIR/run/testbed ]] || . "$DIR/run/testbed"
    use_slurm
    stop_cloud
    cancel_jobs
    signal_daemons TERM
    wait_until 3 no_daemon_alive || signal_daemons KILL
    kill_job_processes || say "some processes of $DIR cannot be killed" >&2
    wait_until 5 no_daemon_alive || say "some daemons of $DIR cannot be killed" >&2
    wait_until 5 remove_groups || say "some cgroups of $DIR cannot be removed" >&2
    remove_network
    rm -rf --one-file-system -- "$DIR"
}

command_down() {
    [[ -e $DIR ]] || die "no testbed in $DIR"
    own_directory
    [[ -e $DIR/.claimed ]] || die "$DIR is not a testbed: nothing is removed"
    trap '' INT TERM HUP
    remove_cluster
    [[ ! -e $DIR ]] || die "$DIR could not be removed"
    say "down: nothing is left in $DIR"
}

command_env() {
    read_record
    ((${#OUTER[@]} == 0)) || printf 'unset %s\n' "${OUTER[*]}"
    printf 'export SLURM_CONF=%q\n' "$CONF"
    printf 'export ELASTIC_CONF=%q\n' "$DIR/etc/elastic.conf"
    [[ -z $SLURM ]] || printf 'export PATH=%q:$PATH\n' "$SLURM/bin:$SLURM/sbin"
    [[ -z $PREFIX ]] || printf 'export PATH=%q:$PATH\n' "$PREFIX/bin"
    [[ -z $LIBRARY_DIR ]] || printf 'export LD_LIBRARY_PATH=%q${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n' \
        "$LIBRARY_DIR"
    [[ -z $PYTHON_DIR ]] || printf 'export PYTHONPATH=%q${PYTHONPATH:+:$PYTHONPATH}\n' "$PYTHON_DIR"
    printf 'export TESTBED_DIR=%q TESTBED_USER=%q TESTBED_SIMPLE=%q\n' "$DIR" "$SUBMITTER" "$SIMPLE"
}

command_stop_controller() {
    local name pid start
    read_record
    while read -r name pid start; do
        if [[ $name == slurmctld ]]; then
            kill -s TERM "$pid" 2>/dev/null || true
            wait_until 120 process_gone "$pid" "$start" || die "slurmctld (pid $pid) does not end"
            say "slurmctld has ended"
            return 0
        fi
    done < <(living_daemons)
    die "slurmctld is not running; start it with: scripts/testbed start-controller --dir $DIR"
}

process_gone() {
    ! same_process "$1" "$2"
}

command_start_controller() {
    read_record
    ! daemon_alive slurmctld || die "slurmctld is running"
    sed -i '/^slurmctld /d' "$PIDS"
    start_controller
    wait_until 120 controller_answers || fail "slurmctld does not answer" slurmctld.out
    say "slurmctld on port $(controller_port)"
}

command_status() {
    local name pid start state port
    read_record
    printf 'directory  %s\nuser       %s\nprefix     %s\n\n' "$DIR" "$SUBMITTER" "${PREFIX:-none}"
    printf '%-12s %8s %6s  %s\n' DAEMON PID PORT STATE
    while read -r name pid start; do
        case $name in
        slurmctld) port=$(controller_port) ;;
        slurmdbd) port=$(database_port) ;;
        slurmd.n*) port=$(node_port "${name#slurmd.n}") ;;
        *) port=- ;;
        esac
        state=dead
        same_process "$pid" "$start" && state=running
        printf '%-12s %8s %6s  %s\n' "$name" "$pid" "$port" "$state"
    done <"$PIDS"
    daemon_alive slurmctld || die "slurmctld is not running: no nodes or jobs to show"
    printf '\n'
    slurm sinfo -o '%9P %5D %10T %N'
    printf '\n'
    slurm squeue -o '%7A %10j %9P %9u %10T %8M %5D %R'
}
