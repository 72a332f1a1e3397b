#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Real PyTorch DDP training through resizes: every sample of each epoch is committed exactly once.
# Takes 35 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 6
    patient
    cp "$TREE"/examples/digits/*.py "$TB_WORK/"
    PACED=$(paced_python)
    export PACED
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# digits SCRIPT SIZES ARGUMENT...: prints the job id. ELASTICRUN: options of elasticrun.
digits() {
    local script=$1 sizes=$2
    shift 2
    submit --elastic="$sizes" --elastic-grow-delay=2 --exclusive -t 30 --wrap \
        "PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun $ELASTICRUN $PYTHON -u $script --log $TB_WORK/steps-\$SLURM_JOB_ID $*"
}

has_stepped_at() { grep -q "world $2 loss" "$TB_WORK/$1.out"; }

each_sample_once() {
    run as_user "$PYTHON" check_log.py --epochs "$2" "$TB_WORK/steps-$1"
    echo "$output"
    ((status == 0))
    [[ ${lines[-1]} == "lost=0 repeated=0" ]]
}

accuracy_is_good() {
    local accuracy
    accuracy=$(sed -n 's/.*accuracy=\([0-9.]*\).*/\1/p' "$TB_WORK/$1.out")
    echo "accuracy $accuracy"
    awk -v a="$accuracy" 'BEGIN { exit !(a > 0.95) }'
}

# Slurm signals the three nodes one after the other: worlds are left that have hardly formed.
@test "live, 2 to 6, preempted down to 3, back to 6: the processes stay, and so do those of their data loaders" {
    job=$(digits train_elastic.py 2:6 --epochs 12 --step-time 1.5 --num-workers 1 --dtype float64)
    wait_for 120 has_stepped_at "$job" 6
    loaders=$(data_loaders_of "$job")
    rival=$(submit -p batch -N3 --exclusive -t 10 --wrap 'srun sleep 1')
    wait_for 60 job_is "$rival" COMPLETED
    left=$(data_loaders_of "$job")
    wait_for 120 size_is "$job" 6
    steps_are_fast
    wait_for 200 job_is "$job" COMPLETED
    run sizes_of "$job"
    [[ $output == 2,*6,*3,*6 ]]
    each_sample_once "$job" 12
    stayed_in_each_world 2
    # Of three that stay the loaders were there before.
    (($(comm -12 <(echo "$loaders") <(echo "$left") | wc -l) >= 3))
    accuracy_is_good "$job"
}

# The processes that load data in this job, sorted. They are forked by their worker, since Python 3.14 by a
# process that it has for this. So they have the command of their parent.
data_loaders_of() {
    local pid command
    for pid in $(job_processes "$1"); do
        command=$(command_of "$pid")
        if [[ $command == */python3\ -u\ train* || $command == *forkserver* ]] && [[ -z $(cat /proc/"$pid"/task/*/children) &&
            $(command_of "$(ps -o ppid= -p "$pid" | tr -d ' ')") == "$command" ]]; then
            echo "$pid"
        fi
    done | sort
}

command_of() { tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null || true; }

# After each_sample_once: every world but the first has at least so many processes of the one before.
stayed_in_each_world() {
    local line worlds=0
    for line in "${lines[@]:1}"; do
        [[ $line != generation* ]] || {
            [[ $line =~ ,\ ([0-9]+)\ processes\ stayed$ ]]
            ((BASH_REMATCH[1] >= $1))
            worlds=$((worlds + 1))
        }
    done
    ((worlds >= 3))
}

