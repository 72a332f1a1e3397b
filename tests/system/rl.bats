#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# examples/rl: a coordinator, learners in a world, collectors that come and go.
# Takes 85 s

load helpers
load elastic
load roles

setup_file() {
    testbed_up --nodes 5 --cpus-per-node 4 --grace 60
    patient
    cp "$TREE"/examples/rl/* "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out
    cancel_all
}

# rl ARGUMENT...: of the coordinator; prints the job. Its programs are those of the example. STEP_TIME, PLAY: of the collectors.
rl() {
    local arguments
    arguments=$(printf ', "%s"' "$@")
    sed "s|coordinator.py\]|coordinator.py$arguments]|; s|learner.py\]|learner.py, --log, learner.log]|
        s|collector.py\]|collector.py, --step-time, \"${STEP_TIME:-0.005}\"${PLAY:-}]|" \
        "$TREE/examples/rl/rl.yaml" >"$TB_WORK/rl.yaml"
    rm -f "$TB_WORK/learner.log"
    as_user bash -c "cd $TB_WORK && sbatch --parsable -o %j.out job.sh"
}

# programs JOB [NODE]: lines "PROGRAM PID" of the replicas and the learners, sorted.
programs() {
    local pid words
    for pid in $(job_processes "$@"); do
        words=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)
        if [[ $words =~ ^/usr/bin/python3\ (coordinator|learner|collector)\.py ]]; then
            echo "${BASH_REMATCH[1]} $pid"
        fi
    done | sort
}

# kinds PROGRAMS: how many of each.
kinds() { cut -d' ' -f1 <<<"$1" | uniq -c | tr -s ' \n' ' '; }

# handed_in JOB COUNT: so many collectors at least have said what they have handed in.
handed_in() { (($(grep -c 'collector-[0-9]*: [0-9]* fragments' "$TB_WORK/$1.out") >= $2)); }

updates_of() { sed -n 's/.*: update \([0-9]*\): .*/\1/p' "$TB_WORK/$1.out" | tail -n 1; }

learns_on() {
    local before
    before=$(updates_of "$1")
    wait_for 60 eval "((\$(updates_of $1) > ${before:-0} + 2))"
}

# each_step_once [PID...]: each rank of each step has made it once. If these learners were killed, others have gone on from a
# checkpoint, of which the learner makes one every ten updates; the step in which they were killed counts for nothing.
each_step_once() {
    /usr/bin/python3 - "$TB_WORK/learner.log" "$@" <<'PY'
import collections, json, sys

killed = {int(pid) for pid in sys.argv[2:]}
before, ranks = collections.defaultdict(list), collections.defaultdict(list)
for line in open(sys.argv[1]):
    one = json.loads(line)
    of = before if one["pid"] in killed else ranks
    of[one["update"], one["step"]].append((one["world"], one["rank"]))


def check(ranks, first):
    wrong = {step: made for step, made in ranks.items() if sorted(made) != [(len(made), rank) for rank in range(len(made))]}
    last = max(ranks)
    print(len(ranks), "steps from", first, "to", last, "wrong:", wrong)
    everything = [(update, step) for update in range(first, last[0] + 1) for step in range(16) if (update, step) <= last]
    return wrong == {} and sorted(ranks) == everything


good, first = True, 0
if killed:
    last = max(before)
    del before[last]
    first = min(ranks)[0]  # of the newest checkpoint; it may have been written after that step
    good = check(before, 0) and first > 0 and first in (last[0] // 10 * 10, (last[0] + 1) // 10 * 10)
sys.exit(not (check(ranks, first) and good))
PY
}

# learned JOB: an episode of who knows nothing takes 20 steps. How far it goes from there is the example's affair, and costs time.
learned() {
    wait_for 200 job_is "$1" COMPLETED
    grep -E 'reward=(1[5-9]|[2-4][0-9])[0-9] samples=[0-9]+ seconds=[0-9]+' "$TB_WORK/$1.out"
}

# learners: the processes of this testbed that learn.
learners() {
    pgrep -f '^/usr/bin/python3 learner\.py' | while read -r pid; do
        grep -qzxF -e "SLURM_CONF=$TB_DIR/etc/slurm.conf" "/proc/$pid/environ" && echo "$pid"
    done
}

@test "the coordinator asks for more collectors; all learners are killed, others go on from the checkpoint, and the pole stands in the end" {
    # So slow that two of them cannot feed the learners, however slow this machine makes these.
    job=$(STEP_TIME=0.02 rl --reward 150)
    wait_for 120 eval "((\$(updates_of $job) > 11))"
    # At once: the training does not go on for long.
    mapfile -t killed < <(learners)
    kill -KILL "${killed[@]}"
    learned "$job"
    says "$TB_WORK/$job.out" 'update 1: '
    says "$TB_WORK/$job.out" 'of ([4-9]|1[0-2]) collectors'
    each_step_once "${killed[@]}"
    wait_for 10 nothing_is_left_of "$job"
}

@test "2, 12, fewer by preemption, 3: no program of the base notices" {
    # As many samples as by 8 carts at 0.04 s. What a step costs does not depend on the carts.
    job=$(STEP_TIME=0.16 PLAY=', --carts, "32", --length, "16"' rl --reward 501 --collectors 12)
    wait_for 60 ready_are "$job" collector 12
    wait_for 30 ready_are "$job" learner 2
    learns_on "$job"
    [ "$(kinds "$(programs "$job")")" = " 12 collector 1 coordinator 2 learner " ]
    base=$(as_user squeue -h -j "$job" -o %N)
    before=$(programs "$job" "$base")
    [ "$(kinds "$before")" = " 2 collector 1 coordinator 1 learner " ]
    # Nodes of collectors and of a learner go to a job of the higher tier.
    rival=$(lasting -N3 --exclusive)
    learns_on "$job"
    over "$rival"
    wait_for 60 ready_are "$job" collector 12
    run -0 as_user selastic scale "$job" collector=3
    wait_for 30 eval "[[ \$(programs $job | grep -c '^collector') == 3 ]]"
    learns_on "$job"
    [ "$(programs "$job" "$base")" = "$before" ]
    # A collector that is to go hands its fragment in.
    wait_for 20 handed_in "$job" 9
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
    each_step_once
}
