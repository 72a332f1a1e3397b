#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# prolog.d and epilog.d: what a job leaves on its nodes and in the queue is gone when it has ended.
# Takes 95 s

load helpers
load hook

setup_file() {
    testbed_up --nodes 4
    # The plugin lets nobody mark jobs as extensions that nobody has asked for.
    sed -i '/^JobSubmitPlugins=/d' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    export SNAPSHOTS=$TB_DIR/snapshots
    find_hook
}

teardown_file() {
    testbed_down
}

teardown() {
    cancel_all
    rm -rf -- "${SNAPSHOTS:?}"/* "$TB_WORK"/victim*
    if [[ -e $TB_WORK/pids ]]; then
        while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done <"$TB_WORK/pids"
        rm -f "$TB_WORK/pids"
    fi
}

nodes_are_idle() { nodes_are 4 idle; }

# ended_well ID: it is over, and no node has been taken out of service.
ended_well() {
    job_ended "$1" && nodes_are_idle
}

# A job on two nodes that makes run directories as killed agents leave them: with a file that is
# not writable.
messy_job() {
    script messy.sh <<'JOB'
#!/bin/bash
srun bash -c '
    dir=$0/elastic-$(id -u)-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}-$SLURMD_NODENAME
    mkdir -m 700 "$dir"
    mkdir -p "$dir/sub/deep"
    echo x >"$dir/sub/deep/file"
    chmod 500 "$dir/sub/deep" && echo made >&2
' "$1"
sleep 3600
JOB
}

# left NAME...: makes run directories of the user by these names.
left() {
    local name
    for name; do
        as_user mkdir -m 700 "$SNAPSHOTS/$name"
    done
}

lines_are() { [[ $(wc -l 2>/dev/null <"$2") == "$1" ]]; }

gone() { [[ ! -e $1 && ! -L $1 ]]; }

@test "run directories of a cancelled job are gone from each of its nodes, and no others" {
    left "elastic-$(uid)-99.0-n1"
    id=$(submit -N2 -w n1,n2 "$(messy_job)" "$SNAPSHOTS")
    wait_for 20 lines_are 2 "$TB_WORK/$id.out"
    [ "$(find "$SNAPSHOTS" -name "elastic-*-$id.*" | wc -l)" -eq 2 ]
    as_user scancel "$id"
    wait_for 20 ended_well "$id"
    [ -z "$(find "$SNAPSHOTS" -name "elastic-*-$id.*")" ]
    [ -d "$SNAPSHOTS/elastic-$(uid)-99.0-n1" ]
}

@test "only this job's and this node's directories are removed" {
    keep=("elastic-$(uid)-12.0-n2" "elastic-$(uid)-12.0-xx-n1" "elastic-$(uid)-12.0-n1-ib"
        "elastic-$(uid)-112.0-n1"
        "elastic-$(uid)-12.x-n1" "elastic-$(uid)-1.0-n1" "elastic-4242-12.0-n1" "12.0-n1")
    left "elastic-$(uid)-12.0-n1" "elastic-$(uid)-12.3-n1" "${keep[@]}"
    hook epilog 12 3 n1
    [ "$(ls "$SNAPSHOTS")" = "$(printf '%s\n' "${keep[@]}" | sort)" ]
}

@test "a link in the place of a run directory is not followed" {
    as_user mkdir "$TB_WORK/victim"
    as_user touch "$TB_WORK/victim/file"
    as_user ln -s "$TB_WORK/victim" "$SNAPSHOTS/elastic-$(uid)-12.0-n1"
    left "elastic-$(uid)-12.1-n1"
    as_user ln -s "$TB_WORK/victim" "$SNAPSHOTS/elastic-$(uid)-12.1-n1/link"
    as_user chmod 500 "$SNAPSHOTS/elastic-$(uid)-12.1-n1"
    hook epilog 12 1 n1
    [ -e "$TB_WORK/victim/file" ]
    gone "$SNAPSHOTS/elastic-$(uid)-12.0-n1"
    gone "$SNAPSHOTS/elastic-$(uid)-12.1-n1"
}

@test "what belongs to somebody else is left alone" {
    [[ $(id -u) == 0 ]] || skip 'needs root to be another user'
    mkdir -m 755 "$SNAPSHOTS/elastic-$(uid)-12.0-n1"
    touch "$SNAPSHOTS/elastic-$(uid)-12.0-n1/file"
    mkdir -m 777 "$TB_WORK/victim"
    touch "$TB_WORK/victim/file"
    ln -s "$TB_WORK/victim" "$SNAPSHOTS/elastic-$(uid)-12.1-n1"
    hook epilog 12 1 n1
    [ -e "$SNAPSHOTS/elastic-$(uid)-12.0-n1/file" ]
    [ -e "$TB_WORK/victim/file" ]
}

@test "names with blanks and odd characters in a run directory are no trouble" {
    left "elastic-$(uid)-12.0-n1"
    as_user touch "$SNAPSHOTS/elastic-$(uid)-12.0-n1/-rf" \
        "$SNAPSHOTS/elastic-$(uid)-12.0-n1/a b"$'\n'"c"
    as_user mkdir "$SNAPSHOTS/elastic-$(uid)-12.0-n1 x"
    hook epilog 12 0 n1
    gone "$SNAPSHOTS/elastic-$(uid)-12.0-n1"
    [ -d "$SNAPSHOTS/elastic-$(uid)-12.0-n1 x" ]
}

run_dirs_of_those_alive() {
    local pid
    while read -r pid; do
        tr '\0' '\n' </proc/"$pid"/environ | sed -n 's/^ELASTIC_RUN_DIR=//p'
    done 2>/dev/null <"$TB_WORK/pids" | sort
}

@test "a worker's child that Slurm has lost is killed, and nobody else" {
    left "elastic-$(uid)-12.0-n1"
    # Two lines of a name are not two names.
    as_user mkdir "$SNAPSHOTS/elastic-1-x"$'\n'"elastic-$(uid)-12.0-n1"
    for dir in "elastic-$(uid)-12.0-n1" "elastic-$(uid)-12.0-n1x" "elastic-$(uid)-12.0-n2"; do
        # shellcheck disable=SC2016
        as_user ELASTIC_RUN_DIR="$SNAPSHOTS/$dir" ELASTIC_JOB_ID=12 SLURM_JOB_ID=12 \
            setsid -f bash -c 'echo $$ >>pids; exec sleep 300'
    done
    wait_for 30 lines_are 3 "$TB_WORK/pids"
    hook epilog 12 0 n1
    run run_dirs_of_those_alive
    [ "$output" = "$SNAPSHOTS/elastic-$(uid)-12.0-n1x
$SNAPSHOTS/elastic-$(uid)-12.0-n2" ]
}

@test "the prolog removes what earlier runs of the job have left" {
    left "elastic-$(uid)-12.0-n1" "elastic-$(uid)-12.1-n1" "elastic-$(uid)-12.2-n1"
    hook prolog 12 2 n1
    [ "$(ls "$SNAPSHOTS")" = "elastic-$(uid)-12.2-n1" ]
}

# extension BASE RUN [SBATCH-ARGUMENT...]: a job that says it is an extension of that run. It says so later, for sbatch
# would be asked whether there is such a base.
extension() {
    local base=$1 run=$2 id
    shift 2
    id=$(submit "$@" -t 60 --wrap 'sleep 3600')
    as_user scontrol update "JobId=$id" Comment="elastic-extension-of=$base.$run" && printf '%s\n' "$id"
}

@test "extensions that a dead base has left are cancelled, pending or running" {
    base=$(submit --elastic=1:4 -w n1 -t 60 --wrap 'sleep 3600')
    running=$(extension "$base" 0 -w n2)
    pending=$(extension "$base" 0 -H)
    other=$(extension $((base + 100)) 0 -H)
    user=$(submit -H --wrap true)
    as_user scontrol update "JobId=$user" Comment="elastic-extension-of=$base"
    wait_for 20 job_is "$base" RUNNING
    wait_for 20 job_is "$running" RUNNING
    as_user scancel "$base"
    wait_for 30 job_ended "$running"
    wait_for 30 job_ended "$pending"
    job_is "$other" PENDING
    job_is "$user" PENDING
}

@test "extensions of a job that goes on on other nodes are not cancelled" {
    [[ $(id -u) == 0 ]] || skip 'slurmd runs as root'
    base=$(submit --elastic=1:4 -w n1 -t 60 --wrap 'sleep 3600')
    this=$(extension "$base" 0 -H)
    wait_for 20 job_is "$base" RUNNING
    hook epilog "$base" 0 n4 SPANK_ELASTIC_SIZES=1:4
    # Those of a job that is gone are, by a hook that came later.
    other=$(extension 12 0 -H)
    hook epilog 12 0 n4 SPANK_ELASTIC_SIZES=1:4
    wait_for 30 job_ended "$other"
    job_is "$this" PENDING
}

@test "extensions of a later run are not cancelled" {
    [[ $(id -u) == 0 ]] || skip 'slurmd runs as root'
    old=$(extension 12 0 -H)
    this=$(extension 12 1 -H)
    next=$(extension 12 2 -H)
    hook epilog 12 1 n1 SPANK_ELASTIC_SIZES=1:2
    wait_for 30 job_ended "$old"
    wait_for 30 job_ended "$this"
    job_is "$next" PENDING
}

@test "another user's job with the same comment is not cancelled" {
    [[ $(id -u) == 0 ]] || skip 'needs root to be another user'
    conf=$(as_user sh -c 'echo $SLURM_CONF')
    nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups env -C / SLURM_CONF="$conf" "$@"; }
    foreign=$(nobody sbatch --parsable -H -o /dev/null --wrap true)
    nobody scontrol update "JobId=$foreign" Comment=elastic-extension-of=12.0
    own=$(extension 12 0 -H)
    # A comment may have lines of its own, which look like what is asked of squeue.
    odd=$(submit -H --comment="x"$'\n'"$foreign|elastic-extension-of=12.0" --wrap true)
    hook epilog 12 0 n1 SPANK_ELASTIC_SIZES=1:2
    wait_for 30 job_ended "$own"
    job_is "$foreign" PENDING
    job_is "$odd" PENDING
}

@test "the first node of a job acts for all, an extension for none" {
    one=$(extension 12 0 -H)
    hook epilog 12 0 n2 SPANK_ELASTIC_SIZES=1:2 SLURM_NODELIST='n[1-2]'
    hook epilog 12 0 n1 SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT=elastic-extension-of=7.0
    two=$(extension 13 0 -H)
    hook epilog 13 0 n1 SPANK_ELASTIC_SIZES=1:2 SLURM_NODELIST='n[1-2]'
    wait_for 30 job_ended "$two"
    job_is "$one" PENDING
}

@test "it never fails and never waits, whatever it is given" {
    failed=0
    wait_for 60 quick hook epilog 12 0 n1 SLURM_CONF=/nonexistent/slurm.conf
    wait_for 60 quick hook epilog 12 0 n1 SPANK_ELASTIC_SIZES='$(touch /tmp/owned)' SLURM_NODELIST='n[' \
        SLURM_JOB_RESTART_COUNT=x
    wait_for 60 quick hook epilog 12 '' n1 SPANK_ELASTIC_SIZES=1:2
    wait_for 60 quick hook epilog '12; true' 0 n1
    wait_for 60 quick hook epilog ../.. 0 n1
    wait_for 60 quick env -i "$HOOK"
    # slurmctld is away.
    cp "$TB_DIR/etc/slurm.conf" "$TB_WORK/away.conf"
    cp "$TB_DIR/etc/elastic.conf" "$TB_WORK/elastic.conf"
    sed -i 's/^SlurmctldPort=.*/SlurmctldPort=1/' "$TB_WORK/away.conf"
    wait_for 60 quick hook epilog 12 0 n1 SPANK_ELASTIC_SIZES=1:2 SLURM_CONF="$TB_WORK/away.conf"
    ((failed == 0))
}

# quick COMMAND...: it has taken less than five seconds. On a machine that is busy it may have to try again.
quick() {
    local began=$EPOCHREALTIME
    "$@" || failed=1
    (($(seconds_since "$began") < 5))
}

# cost CONTEXT: prints how many milliseconds of processor time it takes for a rigid job, at the best. That is less than what passes: a prolog also waits for
# the shell of its sweep to begin, which is not counted here. But it is the same however busy the machine is.
cost() {
    local best=999999 took TIMEFORMAT='%3U %3S'
    local -a as_slurmd=(env -i SLURM_SCRIPT_CONTEXT="$1_slurmd" SLURM_JOB_ID=12
        SLURM_JOB_UID="$(uid)" SLURM_JOB_GID="$(id -g "$TB_USER")" SLURM_JOB_RESTART_COUNT=0
        SLURMD_NODENAME=n1 SLURM_NODELIST=n1 SLURM_CONF="$TB_DIR/etc/slurm.conf" "$HOOK")
    for _ in 1 2 3 4 5 6 7 8; do
        took=$({ time "${as_slurmd[@]}" >/dev/null 2>&1; } 2>&1)
        took=$(awk '{ print int(($1 + $2) * 1000) }' <<<"$took")
        ((took > best)) || best=$took
    done
    echo "$best"
}

@test "a rigid job pays next to nothing" {
    local prolog epilog beside
    prolog=$(cost prolog) epilog=$(cost epilog)
    # With elastic jobs of others on the node.
    left "elastic-$(uid)-13.0-n1" "elastic-$(uid)-14.0-n1" "elastic-$(uid)-15.0-n1"
    beside=$(cost prolog)
    echo "# prolog $prolog, beside others' jobs $beside, epilog $epilog milliseconds" >&3
    ((prolog + epilog < 50 && beside + epilog < 50))
}

@test "elastic.conf's value is read as the programs read it" {
    mkdir "$TB_WORK/own"
    chmod 755 "$TB_WORK/own"
    mkdir -m 1777 "$TB_DIR/place" "$TB_DIR/pool"
    as_user mkdir -m 700 "$TB_DIR/place/elastic-$(uid)-12.0-n1" "$TB_DIR/pool/elastic-$(uid)-12.0-n1"
    {
        printf '# snapshot_dir = /nowhere\n'
        printf '  snapshot_dir\t=  %s  # here\n' "$TB_DIR/place"
        printf 'max_nodes = 3\n[pool a]\nsnapshot_dir = %s\n' "$TB_DIR/pool"
    } >"$TB_WORK/own/elastic.conf"
    hook epilog 12 0 n1 SLURM_CONF="$TB_WORK/own/slurm.conf"
    gone "$TB_DIR/place/elastic-$(uid)-12.0-n1"
    [ -d "$TB_DIR/pool/elastic-$(uid)-12.0-n1" ]
}
