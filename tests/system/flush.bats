#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What a job has in the memory of its nodes when it ends otherwise than well: the epilog makes it durable, and the job goes on from there.
# Time limit: 300 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=150
load helpers
load elastic

setup_file() {
    testbed_up --nodes 4 --grace 2
    cp "$TREE/tests/system/snapshots.py" "$TB_WORK/"
    export MEMORY=$TB_DIR/snapshots
    if ((UID == 0)); then
        # As on a site: only the prolog can make anything there.
        MEMORY=$TB_DIR/memory
        mkdir -m 711 "$MEMORY"
        sed -i "s|^snapshot_dir = .*|snapshot_dir = $MEMORY|" "$TB_DIR/etc/elastic.conf"
    fi
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# keeper SIZES EVERY [WORD...] [-- SBATCH-OPTION...]: submits snapshots.py; prints the job id. Its log is TB_WORK/log-JOB.
keeper() {
    local sizes=$1
    local -a words=("$2")
    shift 2
    while (($#)) && [[ $1 != -- ]]; do
        words+=("$1")
        shift
    done
    submit --elastic="$sizes" --elastic-grow=ask --exclusive -t 10 --requeue --open-mode=append "${@:2}" --wrap \
        "srun elasticrun /usr/bin/python3 $TB_WORK/snapshots.py $TB_WORK/log-\$SLURM_JOB_ID ${words[*]}"
}

made() { (($(last_step "$1" 2>/dev/null || echo 0) >= $2)); }

last_step() { awk '/^step/ { step = $2 } END { print step + 0 }' "$TB_WORK/log-$1"; }

# Of the second run of the job: the step that it began with.
began_again() { awk '/^start/ && $2 ~ /\.1$/ { print $4; exit }' "$TB_WORK/log-$1"; }

# Of the first: the last that it made.
ended_with() { awk '/^start/ && $2 ~ /\.1$/ { exit } /^step/ { step = $2 } END { print step + 0 }' "$TB_WORK/log-$1"; }

has_begun_again() { [[ -n $(began_again "$1") ]]; }

checkpoints_of() { ls -A "$TB_DIR/jobs/$TB_USER-$1/checkpoint"; }

# All that this job has on these nodes is killed at the same moment: workers, agents, and those of Slurm that watch over them.
kill_all() {
    local job=$1 node
    shift
    {
        grep -lzE "^slurmstepd: \[$job\." /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | while read -r pid; do
            # Another testbed has jobs of the same number.
            ! ls -l "/proc/$pid/fd" 2>/dev/null | grep -qF "$TB_DIR/" || echo "$pid"
        done
        job_processes "$job"
    } | sort -u | xargs -r kill -KILL
}

nothing_is_in_memory_of() {
    local left
    left=$(find "$MEMORY" -path "*/elastic-*-$1.*")
    [[ -z $left ]] || { echo "$left" && return 1; }
}

# Jobs that were put back into the queue wait two minutes unless they are told not to; in the second that their nodes have become free these would
# refuse them.
start_again() {
    local job
    job_is "$1" PENDING && job_is "$2" PENDING && all_nodes_are_idle || return
    sleep 1.5
    for job; do
        on_testbed scontrol update jobid="$job" starttime=now
    done
}

all_nodes_are_idle() { nodes_are 4 idle; }

@test "after the loss of everything a job goes on from its snapshot; a checkpoint that is newer wins" {
    local lost saved
    lost=$(keeper 2:2 10)
    saved=$(keeper 2:2 10 save=25)
    wait_for 40 made "$lost" 33
    wait_for 40 made "$saved" 33
    kill_all "$lost"
    kill_all "$saved"
    as_user scontrol requeue "$lost,$saved"
    wait_for 40 start_again "$lost" "$saved"
    wait_for 40 has_begun_again "$lost"
    wait_for 40 has_begun_again "$saved"
    cat "$TB_WORK/$lost.out"
    echo "lost: $(ended_with "$lost") -> $(began_again "$lost"); saved: $(ended_with "$saved") -> $(began_again "$saved")"
    (($(began_again "$lost") >= 30 && $(ended_with "$lost") - $(began_again "$lost") < 10))
    (($(began_again "$saved") == 25))
    grep -q "goes on from a snapshot of run 0, generation 1, step $(began_again "$lost")" "$TB_WORK/$lost.out"
    [[ $(checkpoints_of "$lost") != *flush* && $(checkpoints_of "$saved") != *flush* ]]
    # It has all that the other had: the run goes on, and saves in order.
    wait_for 20 made "$lost" $(($(began_again "$lost") + 20))
    as_user scancel "$lost" "$saved"
    wait_for 30 job_ended "$lost"
    wait_for 30 job_ended "$saved"
    nothing_is_in_memory_of "$lost"
    nothing_is_in_memory_of "$saved"
    cat "$TB_WORK/$lost.out"
    [[ $(checkpoints_of "$lost") == $'00000001\n00000002\nlatest' ]]
}
