#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# job_submit/elastic: which elastic jobs and extensions are let in, and what is set on them.
#
# "Forged" submissions go round spank_elastic.so, or past its checks, as any user can.
# Takes 75 s

load helpers

setup_file() {
    has_plugin job_submit_elastic || return 0
    testbed_up --nodes 6
    cp "$TB_DIR/etc/elastic.conf" "$TB_HOME/elastic.conf"
    : >"$TB_WORK/empty.conf"
    chmod a+r "$TB_WORK/empty.conf"
    # The ordinary user may not see this clone.
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/forge" "$TB_WORK/"
}

teardown_file() {
    testbed_down
}

setup() { need_plugin job_submit_elastic; }

teardown() {
    has_plugin job_submit_elastic || return 0
    if ! cmp -s "$TB_HOME/elastic.conf" "$TB_DIR/etc/elastic.conf"; then
        site_conf <"$TB_HOME/elastic.conf"
    fi
    cancel_all
}

# site_conf <<EOF: replaces the site's elastic.conf and has slurmctld read it.
site_conf() {
    local before text
    before=$(reconfigurations)
    text=$(cat)
    # The default is a place in /run, for which the prolog would mount a file system on this machine.
    [[ $text == *snapshot_dir* || $text == *color* ]] || text="snapshot_dir = $TB_DIR/snapshots"$'\n'"$text"
    printf '%s\n' "$text" >"$TB_DIR/etc/elastic.conf"
    on_testbed scontrol reconfigure
    wait_for 10 reconfigured_since "$before"
}

reconfigurations() {
    grep -cE 'reconfigure_slurm: completed|Processing Reconfig' "$TB_DIR/log/slurmctld.log" || true
}

reconfigured_since() { (($(reconfigurations) > $1)); }

# refused TEXT COMMAND...: slurmctld says no, with a line that has the text in it.
refused() {
    local text=$1
    shift
    run as_user "$@"
    echo "$output"
    [[ $status -ne 0 && ${lines[0]} == *": error: "*"elastic: "*"$text"* ]]
}

# forged COMMAND...: the command with a client that has no pools and no limits.
forged() { as_user ELASTIC_CONF="$TB_WORK/empty.conf" "$@"; }

# base [SBATCH-ARGUMENT...]: submits an elastic job that stays, waits until it runs, prints its id.
base() {
    local id
    id=$(submit -J train -t 60 "$@" --wrap 'sleep 600') || return 1
    wait_for 20 job_is "$id" RUNNING
    echo "$id"
}

# extend BASE SBATCH-ARGUMENT...: as the leader does.
extend() {
    local base=$1
    shift
    submit --elastic-extend="$base" --comment="elastic-extension-of=$base.0" "$@" --wrap 'sleep 600'
}

extend_refused() {
    local text=$1 base=$2
    shift 2
    refused "--elastic-extend=$base: $text" sbatch --elastic-extend="$base" \
        --comment="elastic-extension-of=$base.0" \
        "$@" --wrap true
}

has() {
    local got
    got=$(job_field "$1" "$2")
    echo "$2=$got"
    [ "$got" = "$3" ]
}

slurmctld_lives() { as_user scontrol ping | grep -q 'is UP'; }

@test "a base gets MIN nodes, survives a node and is requeued" {
    id=$(submit -H --elastic=2:4:2 --wrap true)
    has "$id" NumNodes 2-2
    has "$id" Requeue 1
    has "$id" AdminComment elastic=2:4:2
    on_testbed scontrol -o show job "$id" -d | grep -E 'Requeue=1'
    as_user scontrol release "$id"
    wait_for 20 job_is "$id" COMPLETED
    has "$id" NumNodes 2
}

has_processes() { [[ -n $(job_processes "$1") ]]; }

@test "a base goes on when a node is lost" {
    id=$(base --elastic=2:4 -w n5,n6)
    has "$id" NumNodes 2
    wait_for 20 has_processes "$id"
    on_testbed scontrol update nodename=n6 state=down reason=test
    wait_for 10 has "$id" NumNodes 1
    job_is "$id" RUNNING
    # Where its slurmd has had to end a step, it is back already.
    on_testbed scontrol update nodename=n6 state=resume || wait_for 20 nodes_are 0 down
}

@test "what the user says is kept: no requeue, nodes that agree, tasks" {
    id=$(submit -H --elastic=2:4 --no-requeue -N2 -n6 --wrap true)
    has "$id" Requeue 0
    has "$id" NumNodes 2-2
    has "$id" NumTasks 6
}

@test "nodes that contradict MIN are refused with both numbers" {
    refused '--nodes=3 contradicts the MIN of 2 nodes' sbatch --elastic=2:4 -N3 --wrap true
    refused '--nodes=1-4 contradicts the MIN of 2 nodes' sbatch --elastic=2:4 -N1-4 --wrap true
    refused '--nodes=3 contradicts the MIN of 2 nodes' sbatch --elastic=2:4 -w n1,n2,n3 --wrap true
    refused '--nodes=3 contradicts the MIN of 2 nodes' salloc --elastic=2:4 -N3 true
    refused '--nodes=3 contradicts the MIN of 2 nodes' srun --elastic=2:4 -N3 true
}

@test "tasks per node count for every node of the base" {
    id=$(submit --elastic=2:4 --ntasks-per-node=2 --wrap 'srun sh -c "echo \$SLURMD_NODENAME"')
    wait_for 20 job_is "$id" COMPLETED
    [[ $(sort "$TB_WORK/$id.out" | uniq -c | tr -d ' \n') =~ ^2n[1-6]2n[1-6]$ ]]
    refused '--ntasks=1 is less than the MIN of 2 nodes' sbatch --elastic=2:4 -n1 --wrap true
}

@test "what can never work is refused" {
    refused 'the MIN of 7 nodes of --elastic can never be had: partition batch lets a job have' \
        sbatch --elastic=7:8 --wrap true
    refused '--array' sbatch --elastic=2:4 --array=1-3 --wrap true
    refused 'heterogeneous' sbatch --elastic=2:4 : -N1 --wrap true
    refused '--partition: more than 1024 bytes' sbatch --elastic=2:4 -p "$(printf ',%.0s' {1..1025})" --wrap true
    refused '--exclude: more than 65536 bytes' sbatch --elastic=2:4 -x "$(printf 'n1,%.0s' {1..22000})n1" --wrap true
    [ -z "$(as_user squeue -h)" ]
}

@test "a site's limits hold for a client that does not know them" {
    site_conf <<'CONF'
max_nodes = 4
max_grace = 100
[pool low]
partition = elastic
CONF
    run forged sbatch --elastic=2:5 --wrap true
    [[ $status -ne 0 && $output == *'elastic: --elastic=2:5: MAX 5 is larger than the 4 nodes'* ]]
    run forged sbatch --elastic=2:4 --elastic-grace=101 --wrap true
    [[ $status -ne 0 && $output == *'elastic: --elastic-grace=101: this site allows at most 100'* ]]
    run forged sbatch --elastic=2:4 --elastic-pool=elastic --wrap true
    [[ $status -ne 0 && $output == \
        *'elastic: --elastic-pool=elastic: unknown pool; pools of this site: low'* ]]
    forged sbatch -H --elastic=2:4 --elastic-pool=low --elastic-grace=100 --wrap true
}

@test "a policy that no plugin of the client has seen is checked all the same" {
    prefix=_SLURM_SPANK_OPTION_elastic_elastic
    forge() { run as_user "$TB_WORK/forge" "$@"; echo "$output"; }
    for value in 8:2 1:100000 '' 'a b' $'2:4\n'; do
        forge "$prefix=$value"
        [[ $status -ne 0 && $output == *"error: elastic: --elastic=${value//[[:cntrl:]]/?}: "* ]]
    done
    forge ELASTIC_SIZES=2:x
    [[ $status -ne 0 && $output == *'elastic: --elastic=2:x: '* ]]
    forge "$prefix=2:4" ELASTIC_SIZES=2:400 ELASTIC_POOL=moon
    [[ $status -ne 0 && $output == *'pools of this site: elastic, spare'* ]]
    forge "${prefix}_extend=-1"
    [[ $status -ne 0 && $output == *'elastic: --elastic-extend: not the id of a job'* ]]
    forge "$prefix=2:4" no-equals-sign = "$(printf '%070000d' 1)"
    has "$output" AdminComment elastic=2:4
    forge "$prefix=2:4" ELASTIC_POLICY="$(printf '%090000d' 1)"
    # What would keep every prolog from running is refused, of a rigid job, too.
    for first in "$prefix=2:4" mine=1; do
        forge "$first" large="$(printf '%0100000d' 1)"
        [[ $status -ne 0 && $output == *'no prolog could run with more than'* ]]
    done
    slurmctld_lives
}

@test "an extension is put into its pool, beside the nodes of its base" {
    site_conf <<'CONF'
[pool low]
partition = elastic
time_min = 7
[pool other]
partition = spare
CONF
    base=$(base --elastic=2:6 -w n1,n2)
    first=$(extend "$base" -H --elastic-pool=low -p batch -N1 --exclusive --requeue -t 600 -J mine)
    has "$first" Partition elastic
    has "$first" JobName train+
    has "$first" Requeue 0
    has "$first" ExcNodeList 'n[1-2]'
    has "$first" TimeMin N/A # the leader changes that when it is needed
    limit=$(job_field "$first" TimeLimit)
    echo "TimeLimit=$limit"
    [[ $limit == 01:00:00 || $limit == 00:5[6-9]:00 ]]
    as_user scontrol release "$first"
    wait_for 20 job_is "$first" RUNNING
    second=$(extend "$base" --elastic-pool=other -N2 -x n6)
    has "$second" Partition spare
    node=$(job_field "$first" NodeList)
    has "$second" ExcNodeList "$(as_user scontrol show hostlist "n1,n2,$node,n6")"
    third=$(extend "$base" -H)
    has "$third" Partition elastic
    has "$third" NumNodes 1-1
}

@test "an extension asks for no more time than its partition allows" {
    on_testbed scontrol update partitionname=elastic maxtime=30
    base=$(base --elastic=1:3 --exclusive)
    one=$(extend "$base" -H -t 50 --time-min=40)
    has "$one" TimeLimit 00:30:00
    has "$one" TimeMin 00:30:00
    on_testbed scontrol update partitionname=elastic maxtime=INFINITE
}

@test "MAX holds for the base and all its extensions, pending or running" {
    base=$(base --elastic=2:4)
    extend_refused "3 more nodes are too many; job $base has 2, its extensions have" "$base" -N3
    [[ $output == *'and its MAX is 4'* ]]
    one=$(extend "$base" -N1)
    two=$(extend "$base" -N1 -H)
    extend_refused '1 more nodes are too many' "$base" -N1
    # One that leaves no longer counts.
    as_user scancel "$two"
    two=$(extend "$base" -N1)
    wait_for 20 job_is "$two" RUNNING
    extend_refused '1 more nodes are too many' "$base" -N1
    as_user scancel "$one"
    wait_for 20 job_ended "$one"
    extend "$base" -N1
    extend_refused '--nodes=1-2; an extension needs a fixed number' "$base" -N1-2
}

@test "what replaces nodes of a fallback pool may exceed MAX; pools and rigid bases have limits; warnings are shown" {
    site_conf <<'CONF'
max_nodes = 4
[pool elastic]
max_time = 20
reclaim = yes
[pool spare]
fallback = yes
max_nodes = 1
CONF
    base=$(base --elastic=1:2)
    dear=$(extend "$base" -H --elastic-pool=spare -N1)
    extend_refused '1 more nodes are too many' "$base" --elastic-pool=elastic -N1
    as_user scontrol release "$dear"
    wait_for 20 job_is "$dear" RUNNING
    extend_refused '1 more nodes are too many' "$base" --elastic-pool=spare -N1
    [[ $output != *'until replaced'* ]]
    spot=$(extend "$base" -H --elastic-pool=elastic -N1)
    has "$spot" TimeLimit 00:20:00
    extend_refused '1 more nodes are too many' "$base" --elastic-pool=elastic -N1
    [[ $output == *'(3 until replaced nodes leave)'* ]]
    as_user scancel "$dear"
    wait_for 20 job_ended "$dear"
    extend_refused '1 more nodes are too many' "$base" --elastic-pool=elastic -N1
    extend "$base" -H --elastic-pool=spare -N1 # though another pool's request waits

    base=$(base --elastic=1:4)
    extend "$base" -H --elastic-pool=spare -N1
    extend_refused '1 more nodes are too many' "$base" --elastic-pool=spare -N1
    [[ $output == *'1 of pool spare, and max_nodes of this pool is 1'* ]]
    extend "$base" -H --elastic-pool=elastic -N2
    rigid=$(submit -N1 --wrap 'sleep 600')
    wait_for 20 job_is "$rigid" RUNNING
    submit -H --comment="elastic-extension-of=$rigid.0" -N3 --wrap true
    refused 'and max_nodes of the site is 4' \
        sbatch -H --comment="elastic-extension-of=$rigid.0" -N1 --wrap true

    run as_user sbatch -H --elastic=1:2 -p elastic --wrap true
    echo "$output"
    [[ $status == 0 && $output == *'elastic: warning: the nodes of the base job may be taken'* ]]
    run as_user sbatch -H --elastic=1:2 --wrap true
    [[ $status == 0 && $output != *warning* ]]
}

# at_once COUNT COMMAND...: starts that many of the command at the same time, and waits for all.
at_once() {
    local count=$1 pids=() pid
    shift
    for ((i = 0; i < count; i++)); do
        "$@" >"$TB_WORK/at-once.$i" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || true; done
}

@test "MAX holds for what is known by its comment alone, for many at once, and for lists of nodes" {
    base=$(base --elastic=1:2 -w n1)
    at_once 20 as_user ELASTIC_BASE_LEFT=0 sbatch -H --comment="elastic-extension-of=$base.0" \
        -o /dev/null --wrap true
    grep -h '' "$TB_WORK"/at-once.* | sort | uniq -c
    [ "$(grep -l Submitted "$TB_WORK"/at-once.* | wc -l)" == 1 ]
    one=$(cat "$TB_WORK"/at-once.* | awk '/Submitted/ { print $4 }')
    run ! as_user scontrol update jobid="$one" comment=mine
    has "$one" Comment "elastic-extension-of=$base.0"
    refused '1 more nodes are too many' sbatch -H --comment="elastic-extension-of=$base.0" --wrap true
    as_user scancel "$one"
    run ! as_user sbatch -H --comment="elastic-extension-of=$base.0" -w 'n[2-4]' --wrap true
    rigid=$(submit -H -N1 --wrap true)
    run ! as_user scontrol update jobid="$rigid" comment="elastic-extension-of=$base.0"
    refused 'merged into an elastic job' sbatch -H -d "expand:$base" -N1 --wrap true
}

@test "an extension needs a running elastic base of the same user" {
    extend_refused 'there is no job 4000000' 4000000
    rigid=$(submit -N1 --wrap 'sleep 600')
    wait_for 20 job_is "$rigid" RUNNING
    extend_refused "job $rigid is not elastic" "$rigid"
    waiting=$(submit -H --elastic=1:2 --wrap true)
    extend_refused "job $waiting does not run yet" "$waiting"
    base=$(base --elastic=1:3)
    extension=$(extend "$base")
    extend_refused "job $extension is itself an extension, of job $base" "$extension"
    refused "needs --comment=elastic-extension-of=$base.0" \
        sbatch --elastic-extend="$base" --wrap true
    refused "needs --comment=elastic-extension-of=$base.0" sbatch --elastic-extend="$base" \
        --comment="elastic-extension-of=$base.1" --wrap true
    refused '--array' sbatch --elastic-extend="$base" --comment="elastic-extension-of=$base.0" \
        --array=1-2 --wrap true
    as_user scancel "$base"
    wait_for 20 job_ended "$base"
    extend_refused "job $base has ended" "$base"
}

as_nobody() {
    on_testbed setpriv --reuid=nobody --regid=nogroup --clear-groups env -C / \
        SLURM_CONF="$(as_user sh -c 'echo $SLURM_CONF')" "$@"
}

@test "another user cannot extend the job" {
    [[ $(id -u) == 0 ]] || skip 'needs root to be another user'
    base=$(base --elastic=1:3)
    run as_nobody sbatch --elastic-extend="$base" --comment="elastic-extension-of=$base.0" -o /dev/null \
        --wrap true
    echo "$output"
    [[ $status -ne 0 && $output == \
        *"elastic: --elastic-extend=$base: job $base belongs to another user"* ]]
}

@test "a refused change tells another user no more than Slurm does" {
    [[ $(id -u) == 0 ]] || skip 'needs root to be another user'
    waiting=$(submit -H --elastic=2:4 --wrap true)
    # scontrol asks first about a job whose number of nodes it is to change, and may not see this one.
    run as_nobody scontrol update jobid="$waiting" comment=mine
    as_slurm_says=$output
    [[ $status -ne 0 && $output == *'user id'* ]]
    run as_nobody scontrol update jobid="$waiting" comment=elastic-extension-of=1.0
    [[ $status -ne 0 ]]
    diff <(echo "$output") <(echo "$as_slurm_says")
}

@test "an unknown pool of an extension is refused with those that there are" {
    base=$(base --elastic=1:3)
    run forged sbatch --elastic-extend="$base" --elastic-pool=moon \
        --comment="elastic-extension-of=$base.0" --wrap true
    [[ $status -ne 0 && $output == *'unknown pool; pools of this site: elastic, spare'* ]]
}

@test "extensions of a requeued base belong to its new run" {
    base=$(base --elastic=1:3)
    on_testbed scontrol requeue "$base"
    wait_for 45 starts_again "$base"
    refused "needs --comment=elastic-extension-of=$base.1" sbatch --elastic-extend="$base" \
        --comment="elastic-extension-of=$base.0" --wrap true
    submit --elastic-extend="$base" --comment="elastic-extension-of=$base.1" --wrap true
}

@test "a user cannot change what was admitted, an admin can" {
    waiting=$(submit -H --elastic=2:4 --wrap true)
    run ! as_user scontrol update jobid="$waiting" numnodes=3
    has "$waiting" NumNodes 2-2
    run ! as_user scontrol update jobid="$waiting" numnodes=1-2
    run ! as_user scontrol update jobid="$waiting" numnodes=2-3
    run ! as_user scontrol update jobid="$waiting" numnodes=2 nodelist='n[1-4]'
    has "$waiting" NumNodes 2-2
    as_user scontrol update jobid="$waiting" numnodes=2
    as_user scontrol update jobid="$waiting" timelimit=5 comment=mine
    base=$(base --elastic=2:4)
    extension=$(extend "$base" -H)
    run ! as_user scontrol update jobid="$extension" partition=batch
    run ! as_user scontrol update jobid="$extension" numnodes=2
    run ! as_user scontrol update jobid="$extension" comment=mine
    as_user scontrol update jobid="$extension" timelimit=40
    run ! as_user scontrol update jobid="$extension" timelimit=41
    has "$extension" TimeLimit 00:40:00
    has "$extension" Partition elastic
    has "$extension" Comment "elastic-extension-of=$base.0"
    # Slurm 24.11 and later refuse a change of the partition now and then, with EAGAIN.
    wait_for 10 on_testbed scontrol update jobid="$extension" partition=spare
    has "$extension" Partition spare
    rigid=$(submit -H -N1 --wrap true)
    wait_for 10 as_user scontrol update jobid="$rigid" numnodes=2-3 partition=elastic comment=mine
}

@test "a broken elastic.conf stops elastic jobs only, and is in the log once" {
    grep -q 'job_submit/elastic: elastic jobs are admitted, by .*/elastic.conf' "$TB_DIR/log/slurmctld.log"
    printf 'max_nodes = 4\ncolor = red\n' | site_conf
    # Before anybody has submitted an elastic job.
    wait_for 10 grep -q 'error: job_submit/elastic: .*:2: unknown key' "$TB_DIR/log/slurmctld.log"
    run forged sbatch --elastic=2:4 --wrap true
    echo "$output"
    [[ $status -ne 0 && $output == *"elastic: $TB_DIR/etc/elastic.conf:2: unknown key 'color'"* ]]
    run forged sbatch --elastic=2:4 --wrap true
    [ "$status" -ne 0 ]
    id=$(submit -N1 --wrap true)
    wait_for 20 job_is "$id" COMPLETED
    as_user srun true
    logged=$(grep -c 'error: job_submit/elastic: .*:2: unknown key' "$TB_DIR/log/slurmctld.log")
    [ "$logged" -eq 1 ]
    printf '[pool elastic]\n[pool lost]\npartition = nowhere\n' | site_conf
    submit -H --elastic=2:4 --wrap true
    submit -H --elastic=2:4 --wrap true
    logged=$(grep -c "error: job_submit/elastic: elastic.conf: pool lost: there is no partition 'nowhere'" "$TB_DIR/log/slurmctld.log")
    [ "$logged" -eq 1 ]
    site_conf <"$TB_HOME/elastic.conf"
    submit -H --elastic=2:4 --wrap true
}

@test "slurmctld starts with a broken elastic.conf" {
    printf 'color = red\n' >"$TB_DIR/etc/elastic.conf"
    on_testbed slurmctld -t >/dev/null 2>&1 || true
    pid=$(cat "$TB_DIR/state/slurmctld.pid")
    on_testbed scontrol shutdown slurmctld
    wait_for 20 eval "! kill -0 $pid 2>/dev/null"
    (
        take_testbed_env
        unset ELASTIC_CONF
        slurmctld
    )
    wait_for 20 slurmctld_lives
    as_user srun true
    run forged sbatch --elastic=2:4 --wrap true
    [[ $status -ne 0 && $output == *"elastic.conf:1: unknown key 'color'"* ]]
}

@test "a rigid job is what it is without the plugin" {
    id=$(submit -H -N1-3 -J plain --wrap true)
    has "$id" NumNodes 1-3
    has "$id" NumTasks 1
    has "$id" JobName plain
    has "$id" ExcNodeList '(null)'
    has "$id" TimeMin N/A
    has "$id" AdminComment ''
    has "$id" Comment ''
}
