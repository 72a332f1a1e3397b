#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What common/slurm_jobs.c, slurm_nodes.c and slurm_site.c read from a real slurmctld, against what scontrol says.
# Takes 65 s

load helpers

setup_file() {
    testbed_up --stock --nodes 4 --cpus-per-node 4 --gpus-per-node 2
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/slurm_client_probe" "$TB_WORK/probe"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

probe() { as_user "$TB_WORK/probe" "$@"; }

# has ID NAME=VALUE...: whether these are lines of what the probe says about the job.
has() {
    local answer want
    answer=$(probe job "$1")
    shift
    for want; do
        grep -qxF -- "$want" <<<"$answer" || {
            printf 'no line "%s" in:\n%s\n' "$want" "$answer" >&2
            return 1
        }
    done
}

# seconds ID FIELD: a time of scontrol show job in seconds since 1970.
seconds() { date -d "$(job_field "$1" "$2")" +%s; }

running() {
    local id
    id=$(submit "$@" --wrap 'sleep 3000')
    wait_for 40 job_is "$id" RUNNING
    printf '%s\n' "$id"
}

@test "a running job has the fields that scontrol shows" {
    id=$(running -N2 --ntasks-per-node=3 --mem-per-cpu=100 --gpus-per-node=2 -t 7 -x n4 -J "a name" \
        --comment="of the user" -D /tmp)
    has "$id" "id=$id" restarts=0 "uid=$(id -u "$TB_USER")" "gid=$(id -g "$TB_USER")" kind=running \
        state=RUNNING reason= "name=a name" partition=batch reservation=- features=- \
        "comment=of the user" admin_comment=- nodes=n[1-2] excluded=n4 \
        batch_host=n1 gres_per_node=gpu:2 work_dir=/tmp num_nodes=2 cpus_per_node=3 mem_per_node=0 \
        mem_per_cpu=100 exclusive=0 preempt_time=0 time_limit=7 "submit=$(seconds "$id" SubmitTime)" \
        "start=$(seconds "$id" StartTime)" "end=$(seconds "$id" EndTime)"
    [ "$(job_field "$id" NodeList)" = "n[1-2]" ]
    [ "$(job_field "$id" MinMemoryCPU)" = 100M ]
}

@test "an exclusive job, memory of the node, and no time limit" {
    on_testbed scontrol update partitionname=batch maxtime=UNLIMITED
    id=$(running -N1 --exclusive --mem=500 -t UNLIMITED)
    has "$id" exclusive=1 cpus_per_node=4 mem_per_node=500 mem_per_cpu=0 gres_per_node=- time_limit=-1
}

@test "what a partition bills of a node, and of the nodes of a job" {
    [[ $(probe limits batch) == *billing=-1* ]]
    sed -i '/^PartitionName=batch /s/$/ TRESBillingWeights=CPU=1.5/' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    wait_for 10 eval '[[ $(probe limits batch) == *billing=6* ]]'
    id=$(running -N2 --exclusive)
    has "$id" billing=6
    id=$(submit -N2 --begin=now+1hour --wrap true)
    has "$id" billing=-1
    [[ $(probe limits nosuch) == *billing=-1* ]]
}

@test "a pending job has the reason, and keeps its flags" {
    id=$(submit -N2 --begin=now+1hour --mem-per-cpu=77 --gpus-per-node=1 --wrap true)
    wait_for 10 has "$id" reason=BeginTime
    has "$id" kind=pending state=PENDING nodes=- batch_host=- mem_per_cpu=77 mem_per_node=0 \
        gres_per_node=gpu:1 num_nodes=2
    running -N1
    id=$(submit -N4 --exclusive --wrap true)
    # Slurm 23.11 gives no reason to a job that backfill has looked at.
    if slurm_is 23.11; then return; fi
    wait_for 10 has "$id" reason=Resources
    [ "$(job_field "$id" Reason)" = Resources ]
}

@test "GPUs by job and by task are divided among the nodes" {
    id=$(running -N4 --gpus=5)
    has "$id" gres_per_node=gpu:2
    on_testbed scancel "$id"
    id=$(running -N2 -n2 --gpus-per-task=1)
    has "$id" gres_per_node=gpu:1
    ! slurm_at_least 26.05 || return 0 # which refuses both together
    id=$(running -N1 --gres=gpu:1 --gpus-per-node=1)
    has "$id" gres_per_node=gpu:1
}

@test "a job that is preempted says since when" {
    id=$(submit -N4 --exclusive -p elastic --wrap 'trap "" TERM; srun sleep 3000')
    wait_for 10 job_is "$id" RUNNING
    has "$id" preempt_time=0
    submit -N4 --exclusive -p batch --wrap true
    said() { has "$id" "preempt_time=$(seconds "$id" PreemptTime)"; }
    wait_for 10 said
}

@test "a requeued job has another incarnation" {
    id=$(running -N1 --requeue)
    on_testbed scontrol requeue "$id"
    wait_for 20 has "$id" restarts=1 kind=pending
}

@test "a suspended job and an ended one" {
    id=$(running -N1)
    on_testbed scontrol suspend "$id"
    has "$id" kind=suspended state=SUSPENDED
    on_testbed scontrol resume "$id"
    probe cancel "$id"
    wait_for 20 has "$id" kind=ended state=CANCELLED
}

@test "a job that Slurm does not know is no error" {
    run -0 probe job 424242
    [ "$output" = unknown ]
    run -0 probe cancel 424242
    [ -z "$output" ]
}

@test "cancelling works once, and does no harm twice" {
    id=$(running -N1)
    run -0 probe cancel "$id"
    run -0 probe cancel "$id"
    wait_for 20 job_ended "$id"
    [ "$(job_state "$id")" = CANCELLED ]
}

@test "another user's job cannot be cancelled" {
    [ "$(id -u)" = 0 ] || skip "needs a second user: root"
    id=$(on_testbed sbatch --parsable -o /dev/null --wrap 'sleep 3000')
    run -1 probe cancel "$id"
    [ "$output" = "probe: Slurm cannot cancel job $id: Access/permission denied" ]
}

@test "the extensions of one incarnation are cancelled, wherever they are" {
    mark=--comment=elastic-extension-of
    for options in "-p elastic" "-p elastic" "--begin=now+1hour" "--dependency=afterany:1 -H"; do
        # shellcheck disable=SC2086
        submit -N1 $mark=77.0 $options --wrap 'sleep 3000'
    done
    other=$(submit -N1 $mark=77.1 --wrap 'sleep 3000')
    longer=$(submit -N1 "$mark=77.0 " --begin=now+1hour --wrap 'sleep 3000')
    own=$(submit -N1 --wrap 'sleep 3000')
    run -0 probe cancel-extensions 77 0 "$(id -u "$TB_USER")"
    [ "$output" = 4 ]
    run -0 probe cancel-extensions 77 0 "$(id -u "$TB_USER")"
    [ "$output" = 0 ]
    run -0 probe cancel-extensions 77 1 12345
    [ "$output" = 0 ]
    for id in "$other" "$longer" "$own"; do
        wait_for 10 job_is "$id" RUNNING PENDING
    done
}

@test "jobs of one user and of all" {
    id=$(running -N1)
    run -0 probe jobs "$(id -u "$TB_USER")"
    [[ $output == *"$id RUNNING"* ]]
    run -0 probe jobs -1
    [[ $output == *"$id RUNNING"* ]]
    run -0 probe jobs 12345
    [ -z "$output" ]
}

@test "hostlists" {
    run -0 probe expand 'n[1-3,007],x'
    [ "$output" = $'n1\nn2\nn3\nn007\nx' ]
    run -0 probe expand ''
    [ -z "$output" ]
    run -0 probe compress n5 n1 n2 n3
    [ "$output" = 'n[5,1-3]' ]
}

@test "idle nodes are those that could take a job at once" {
    idle_are() { [ "$(probe idle "$1")" = "$2" ]; }
    wait_for 20 idle_are batch 4
    id=$(running -N1)
    idle_are batch 3
    idle_are elastic 3
    on_testbed scontrol update nodename=n4 state=drain reason=test
    idle_are batch 2
    on_testbed scontrol update partitionname=elastic state=down
    idle_are elastic 0
    on_testbed scontrol update partitionname=elastic state=up
    on_testbed scontrol update nodename=n4 state=resume
    on_testbed scancel "$id"
    wait_for 20 idle_are batch 4
    run -1 probe idle nosuch
    [ "$output" = "probe: Slurm has no partition 'nosuch'" ]
}

@test "nodes that are kept for another job are idle until then" {
    running -N1
    waiting=$(submit -N4 --exclusive -t 5 --wrap 'sleep 3000')
    planned() { [ "$(probe idle batch)" = 0 ]; }
    wait_for 30 planned
    [ "$(probe idle-or-planned batch)" = 3 ]
    job_is "$waiting" PENDING
}

@test "a pending job of the user's own may be started for less time" {
    id=$(submit -H -N1 -t 60 --wrap true)
    has "$id" time_limit=60 time_min=0
    probe set-time-min "$id" 30
    has "$id" time_limit=60 time_min=30
    probe set-time-min "$id" 15
    has "$id" time_min=15
    run -1 probe set-time-min 4000000 15
    [ "$output" = "probe: Slurm cannot set TimeMin=15 of job 4000000: Invalid job id specified" ]
}

@test "addresses of nodes" {
    run -0 probe address n3
    [ "$output" = 127.0.0.1 ]
    run -0 probe address nosuch
    [ "$output" = nosuch ]
}

@test "the site" {
    run -0 probe site
    [ "$output" = "$(on_testbed scontrol show config | sed -n 's/^SlurmUser .*(\([0-9]*\))/\1/p') testbed" ]
}

@test "many threads" {
    id=$(running -N1)
    run -0 probe threads "$id"
    [ "$output" = "200 calls, 0 failures" ]
}

@test "a slurmctld that does not answer is an error with Slurm's words" {
    pid=$(<"$TB_DIR/state/slurmctld.pid")
    kill -STOP "$pid"
    run probe job 1
    kill -CONT "$pid"
    [ "$status" = 1 ]
    [ "$output" = "probe: Slurm cannot tell about job 1: Socket timed out on send/recv operation" ]
}
