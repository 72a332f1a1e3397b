#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Jobs with GPUs: each worker sees those of its own node, also on an extension's, and whoever needs the GPUs gets them.
# Takes 60 s

load helpers
load elastic

GRACE=300

setup_file() {
    ((UID == 0)) || skip "only root makes device nodes"
    testbed_up --nodes 3 --gpus-per-node 2 --grace "$GRACE"
    patient
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    script gpu_steps <<SH
#!/bin/bash
echo "\$SLURMD_NODENAME \$LOCAL_RANK/\$LOCAL_WORLD_SIZE cuda=\$CUDA_VISIBLE_DEVICES job=\$SLURM_JOB_GPUS" \\
    >$TB_WORK/gpus-\$ELASTIC_JOB_ID-\$ELASTIC_GENERATION-\$RANK
exec /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$ELASTIC_JOB_ID 100000 0.2
SH
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# gpus_of JOB GENERATION: a line per worker, in the order of ranks.
gpus_of() { cat "$TB_WORK/gpus-$1-$2"-? "$TB_WORK/gpus-$1-$2"-?? 2>/dev/null || true; }

# A rigid job that needs both GPUs of a node.
rival_gets_both_gpus() {
    rival=$(submit -N1 --gres=gpu:2 -t 5 --wrap 'echo "cuda=$CUDA_VISIBLE_DEVICES"; sleep 1')
    wait_for 120 job_is "$rival" COMPLETED
    waited_less "$rival" $((GRACE / 3))
    [[ $(cat "$TB_WORK/$rival.out") == cuda=0,1 ]]
}

@test "a worker per GPU sees its node's GPUs on the extension as well, and gives them to who needs them" {
    job=$(submit --elastic=2:3 --elastic-grow-delay=2 --gres=gpu:2 --exclusive -t 10 --wrap "srun elasticrun $TB_WORK/gpu_steps")
    wait_for 60 size_is "$job" 3
    wait_for 60 steps_made_by "$job" 2
    extension=$(extensions_of "$job")
    [[ $(job_field "$extension" TresPerNode) == *gpu:2 ]]
    run gpus_of "$job" 2
    echo "$output"
    ((${#lines[@]} == 6))
    [[ $(sort -u <<<"$output" | wc -l) == 6 ]]
    [[ $(grep -cE '^n[123] [01]/2 cuda=0,1 job=0,1$' <<<"$output") == 6 ]]
    rival_gets_both_gpus
    wait_for 60 size_is "$job" 3
    goes_on "$job"
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
    steps_were_made_once "$job"
}

# What slurmctld keeps of a job about each of its nodes. Since 24.11 --cpus-per-task shows as TresPerTask=cpu=1 of the
# extension, whose base does not have that option.
asks_for() {
    on_testbed scontrol -o show job "$1" | tr ' ' '\n' |
        grep -vE '^TresPerTask=cpu=[0-9]+$' | grep -E '^(MinMemory|MinTmpDisk|MemPer|TresPer|CpusPerTres|OverSubscribe|Account|Features|WCKey)' |
        sed -E 's/^(TresPerNode)=gres:gres:/\1=gres:/'
}

@test "an extension asks for what its base has, in each spelling, and for the time that the pool allows" {
    on_testbed scontrol update partitionname=elastic maxtime=7
    for memory in --mem=0 --mem-per-gpu=300; do
        job=$(submit --elastic=1:2 --gres=gpu:1 "$memory" --nice=3 -x n3 -t 10 \
            --wrap 'srun elasticrun sleep 600')
        wait_for 60 size_is "$job" 2
        extension=$(extensions_of "$job")
        printf '%s\n' "$memory"
        diff <(asks_for "$job") <(asks_for "$extension")
        has_field "$extension" Nice 3
        has_field "$extension" TimeLimit 00:07:00
        [[ $(job_field "$extension" NodeList) == n[12] ]]
        as_user scancel "$job"
        wait_for 30 nothing_is_left_of "$job"
    done
    on_testbed scontrol update partitionname=elastic maxtime=INFINITE
}

has_field() { [[ $(job_field "$1" "$2") == "$3" ]]; }

@test "jobs that share nodes each see only the GPU that is theirs" {
    # GPU 0 of every node is somebody else's.
    for node in n1 n2 n3; do
        submit -w "$node" -N1 -n1 --gres=gpu:1 -t 30 --wrap 'sleep 1800'
    done
    wait_for 30 nodes_are 3 mixed
    job=$(submit --elastic=2:3 --elastic-grow-delay=2 -N2 --ntasks-per-node=1 --gres=gpu:1 -t 10 \
        --wrap "srun elasticrun $TB_WORK/gpu_steps")
    wait_for 60 size_is "$job" 3
    wait_for 60 steps_made_by "$job" 2
    run gpus_of "$job" 2
    echo "$output"
    [[ $(grep -cE '^n[123] 0/1 cuda=1 job=1$' <<<"$output") == 3 ]]
    goes_on "$job"
    steps_were_made_once "$job"
}
