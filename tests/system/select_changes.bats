#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# select/elastic_cons_tres while the cluster changes around running elastic jobs: another controller takes over, nodes are
# created and deleted, hosts lack the plugin, and it is removed for good. Six nodes without switches, the first three of
# shape a, the others of shape b; so shapes alone decide, and nodes that are created later count as well. The form is
# simple: these tests start slurmctld and slurmd themselves, and nothing runs in the jobs.
# Takes 80 s

load helpers
load select

setup_file() {
    has_plugin select_elastic_cons_tres || return 0
    testbed_up --simple --nodes 6 --select --grace 0
    etc=$TB_DIR/etc
    # A copy of the plugins, one of which shall go.
    plugins=$(sed -n 's/^PluginDir=\([^:]*\):.*/\1/p' "$etc/slurm.conf")
    cp -R "$plugins" "$TB_DIR/plugins"
    sed -i -E -e "s,^PluginDir=[^:]*,PluginDir=$TB_DIR/plugins," -e '/^(Prolog|Epilog|TopologyPlugin)=/d' \
        -e '/^SelectType=/iMaxNodeCount=8' "$etc/slurm.conf"
    rm "$etc/topology.conf"
    sed -i 's/"n\[4-6\]": "b"/"n[4-6],d1": "b"/' "$etc/elastic-shapes.json"
    sed -i 's/^SlurmctldDebug=.*/SlurmctldDebug=debug/' "$etc/slurm.conf"
    restart
}

teardown_file() { testbed_down; }

setup() { need_plugin select_elastic_cons_tres; }

teardown() {
    has_plugin select_elastic_cons_tres || return 0
    stop "${backup:-}"
    stop "${slurmd:-}"
    "$TESTBED" status --dir "$TB_DIR" >/dev/null || "$TESTBED" start-controller --dir "$TB_DIR"
    cancel_all
}

# stop PID: and wait for its end; without one, nothing.
stop() {
    if [[ -n $1 ]]; then
        kill "$1" 2>/dev/null || true
        wait "$1" || true
    fi
}

# A base of 1:3 nodes of shape b, as two of shape a are taken.
begin() {
    allocate -w 'n[1-2]' >/dev/null
    base=$(allocate --elastic=1:3)
    is_at "$base" n4
}

controller_is() { on_testbed scontrol ping | grep -qE "^Slurmctld\\($1\\) at .* is UP"; }

# A second slurmctld, as on another host: it has its own name and address, and all files of the first one.
start_backup() {
    local conf=$TB_DIR/etc/slurm.conf
    sed -E -e "s,^SlurmctldPidFile=.*,SlurmctldPidFile=$TB_DIR/run/backup.pid," \
        -e "s,^SlurmctldLogFile=.*,SlurmctldLogFile=$TB_DIR/log/backup.log," "$conf" >"$TB_DIR/etc/slurm-backup.conf"
    sed '/ backup$/d' /etc/hosts >"$TB_HOME/hosts"
    echo '127.0.0.2 backup' >>"$TB_HOME/hosts"
    # shellcheck disable=SC2016 # the inner shell's
    on_testbed env SLURM_CONF="$TB_DIR/etc/slurm-backup.conf" unshare --mount --uts -- bash -c \
        'hostname backup && mount --bind "$1" /etc/hosts && shift && exec "$@"' - "$TB_HOME/hosts" \
        slurmctld -D -f "$TB_DIR/etc/slurm-backup.conf" >"$TB_DIR/log/backup.out" 2>&1 3>&- &
    backup=$!
}

@test "a backup controller takes over, and gives back" {
    ((UID == 0)) || skip "needs root, for a host name of its own"
    conf=$TB_DIR/etc/slurm.conf
    sed -i '/^SlurmctldPort=/iSlurmctldHost=backup(127.0.0.2)' "$conf"
    restart
    begin
    start_backup
    wait_for 30 controller_is backup
    on_testbed scontrol takeover
    wait_for 60 says "$TB_DIR/log/backup.log" 'Running as primary controller'
    is_at "$base" n4
    is_at "$(extend "$base" 1)" n5
    grep -q "select/elastic_cons_tres: JobId=.*shape b" "$TB_DIR/log/backup.log"
    # The first one comes back; the other one steps down by itself.
    "$TESTBED" start-controller --dir "$TB_DIR"
    wait_for 30 controller_is primary
    is_at "$base" n4
    is_at "$(extend "$base" 1)" n6
    sed -i '/^SlurmctldHost=backup/d' "$conf"
    stop "$backup"
    backup=
    restart
    is_at "$base" n4
}

# The slurmd of a node that is not in slurm.conf, on the port that the testbed keeps for slurmdbd.
start_slurmd() {
    mkdir "$TB_DIR/spool/$1" "$TB_DIR/tmp/$1"
    sed "1iSlurmdPort=$(spare_port)" "$TB_DIR/etc/slurm.conf" >"$TB_DIR/etc/slurm-$1.conf"
    on_testbed env SLURM_CONF="$TB_DIR/etc/slurm-$1.conf" slurmd -D -Z -N "$1" -f "$TB_DIR/etc/slurm-$1.conf" \
        --conf "CPUs=4 RealMemory=4000" >"$TB_DIR/log/slurmd.$1.out" 2>&1 3>&- &
    slurmd=$!
}

spare_port() { echo $(($(sed -n 's/^SlurmctldPort=//p' "$TB_DIR/etc/slurm.conf") + 1)); }

node_is() { [[ $(on_testbed sinfo -h -p batch -n "$1" -o %T) == "$2" ]]; }

deleted() { on_testbed scontrol delete nodename="$1" 2>/dev/null; }

@test "a node is created, used for its shape, and deleted" {
    begin
    is_at "$(extend "$base" 1)" n5
    allocate -w n6 >/dev/null
    on_testbed scontrol create nodename=d1 nodeaddr=127.0.0.1 nodehostname="$(uname -n)" port="$(spare_port)" cpus=4 \
        realmemory=4000 state=CLOUD
    start_slurmd d1
    # Until its slurmd has said a word it is idle~, powered down.
    wait_for 30 node_is d1 idle
    last=$(extend "$base" 1)
    is_at "$last" d1
    run -1 deleted d1
    # Its end is not asked for: slurmctld asks nodes by way of others, which do not know this one.
    on_testbed scontrol update nodename=d1 state=DOWN reason=gone
    wait_for 30 job_ended "$last"
    wait_for 30 deleted d1
    stop "$slurmd"
    slurmd=
    # Of shape b no node is left.
    is_at "$(extend "$base" 1)" n3
}

# fails_with TEXT COMMAND...
fails_with() {
    local text=$1
    shift
    run -1 "$@"
    [[ $output == *"$text"* ]] || {
        printf '%s: %s\n' "$*" "$output" >&2
        return 1
    }
}

@test "commands of a host without the plugin name it; those that only submit and cancel can do without" {
    lacking=$TB_WORK/etc conf=$TB_DIR/etc/slurm.conf
    mkdir "$lacking"
    sed "s,^PluginDir=[^:]*:,PluginDir=," "$conf" >"$lacking/slurm.conf"
    # Since 23.11 only commands that ask for nodes load the plugin, since 25.05 none do.
    asking=(sinfo 'scontrol show nodes') others=(squeue 'srun -N1 true') submit='sbatch -o /dev/null --wrap true'
    if slurm_at_least 25.05; then
        others+=("${asking[@]}") asking=()
    elif ! slurm_at_least 23.11; then
        asking+=("${others[@]}") others=()
    fi
    # shellcheck disable=SC2086
    slurm_at_least 23.11 || fails_with "Can't find plugin for select/elastic_cons_tres" as_user SLURM_CONF="$lacking/slurm.conf" $submit
    for command in "${asking[@]}"; do
        # shellcheck disable=SC2086
        fails_with "Can't find plugin for select/elastic_cons_tres" as_user SLURM_CONF="$lacking/slurm.conf" $command
    done
    for command in "${others[@]}" 'scontrol ping'; do
        # shellcheck disable=SC2086
        as_user SLURM_CONF="$lacking/slurm.conf" $command
    done
    # With Slurm's own plugin in its slurm.conf, where slurmctld has ours.
    sed -i 's,^SelectType=.*,SelectType=select/cons_tres,' "$lacking/slurm.conf"
    for command in "${asking[@]}"; do
        # shellcheck disable=SC2086
        fails_with 'unknown select plugin id: 209' as_user SLURM_CONF="$lacking/slurm.conf" $command
    done
    job=$(as_user SLURM_CONF="$lacking/slurm.conf" sbatch --parsable -o /dev/null --wrap 'sleep 3000')
    wait_for 20 job_is "$job" RUNNING
    as_user SLURM_CONF="$lacking/slurm.conf" scancel "$job"
    wait_for 20 job_is "$job" CANCELLED
}

@test "valgrind finds nothing wrong with the plugin while jobs start, grow, leave and end" {
    command -v valgrind >/dev/null || skip "there is no valgrind: scripts/setup installs it"
    "$TREE/bench/memory" --valgrind --jobs 30 --prefix "$prefix" --builddir "$top_builddir"
}

# The last one: the plugin is gone then.
@test "back to select/cons_tres, and then without the plugin" {
    conf=$TB_DIR/etc/slurm.conf
    begin
    extension=$(extend "$base" 1)
    sed -i 's,^SelectType=.*,SelectType=select/cons_tres,' "$conf"
    # The first of them reads what our plugin has written, and writes it anew.
    restart
    restart
    rm "$TB_DIR/plugins/select_elastic_cons_tres."*
    restart
    is_at "$base" n4
    is_at "$extension" n5
    for node in 1 2 3 4 5 6; do
        "$TESTBED" crash --dir "$TB_DIR" "n$node"
        "$TESTBED" boot --dir "$TB_DIR" "n$node"
    done
    on_testbed scontrol update nodename='n[1-6]' state=RESUME || true
    is_at "$base" n4
    last=$(extend "$base" 1)
    on_testbed scancel "$extension" "$last"
    wait_for 30 job_ended "$last"
    wait_for 30 nodes_are 3 idle
    [ "$(as_user srun -N2 --exclusive hostname | wc -l)" -eq 2 ]
}
