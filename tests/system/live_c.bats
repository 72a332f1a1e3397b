#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Live mode from C: examples/worlds meets by elastic_put() and elastic_get(), and talks over sockets of its own.
# Takes 30 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 5
    patient
    gcc -O1 -Wall -Wextra -Werror -I"$prefix/include" -o "$TB_WORK/worlds" "$TREE/examples/worlds/worlds.c" \
        -L"$prefix/lib" -lelastic -Wl,-rpath,"$prefix/lib"
    chmod 0755 "$TB_WORK/worlds"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# worlds STEPS ELASTICRUN'S OPTIONS...: a job that has two nodes and grows when it is told to.
worlds() {
    local steps=$1
    shift
    job=$(submit --elastic=2:5 --elastic-grow=ask --elastic-grow-delay=0 -N2 --exclusive -t 20 --wrap \
        "mkdir -p $TB_WORK/log-\$SLURM_JOB_ID; srun elasticrun $* $TB_WORK/worlds $steps 200 $TB_WORK/log-\$SLURM_JOB_ID")
    LOG=$TB_WORK/log-$job
    seen=-1
    wait_for 60 made_by 2
}

# A step after number $seen was made by so many workers.
made_by() { cat "$LOG"/* 2>/dev/null | awk -v seen="$seen" -v size="$1" '$1 > seen && $3 == size { found = 1 } END { exit !found }'; }

resize() {
    seen=$(cat "$LOG"/* | sort -n | tail -1 | cut -d" " -f1)
    as_user selastic resize "$job" "$1"
    wait_for 60 made_by "$1"
}

# each_unit_once STEPS: all steps, each by all ranks of one world with one state, and each of its 1000 units once.
each_unit_once() {
    cat "$LOG"/* | sort -k1,1n -k4,4n | awk -v steps="$1" '
        function bad(why) { print "step " step ": " why; wrong = 1 }
        function close_step() {
            if (step != closed) bad("expected step " closed)
            if (lines != size || next_unit != (step + 1) * 1000) bad(lines " ranks of " size ", units up to " next_unit)
            closed++
        }
        NR == 1 || $1 != step { if (NR > 1) close_step(); step = $1; size = $3; state = $6; lines = 0; next_unit = step * 1000 }
        { lines++
          if ($2 != lines - 1 || $3 != size || $6 != state || $4 != next_unit) bad("rank " $2 " of " $3 ", unit " $4 ", state " $6)
          next_unit = $5 }
        END { close_step(); if (closed != steps) bad(closed " steps"); exit wrong }'
}

# Processes that have made all steps.
stayed() { wc -l "$LOG"/* | awk -v steps="$1" '$2 != "total" && $1 == steps { n++ } END { print n + 0 }'; }

state_alone() { as_user "$TB_WORK/worlds" "$1" 0 | sed -n 's/.* steps, state //p'; }

@test "grown, shrunk and preempted: two processes make every step, each unit once, and the state is that of one process" {
    worlds 3000
    for size in 4 5 3 5; do
        resize "$size"
    done
    rival=$(submit -p batch -N2 --exclusive -t 5 --wrap 'sleep 1')
    wait_for 60 job_is "$rival" COMPLETED
    touch "$LOG/fast"
    wait_for 120 job_is "$job" COMPLETED
    each_unit_once 3000
    [[ $(stayed 3000) == 2 ]]
    grep -q "^3000 steps, state $(state_alone 3000)\$" "$TB_WORK/$job.out"
    grep -qE '^generation [0-9]+: 5 workers, from step [1-9]' "$TB_WORK/$job.out"
}

@test "a worker is killed: the others go on, in the same processes, to the same state" {
    worlds 3000
    resize 3
    victim=$(awk '$2 == 2 { print FILENAME; exit }' "$LOG"/[0-9]*)
    seen=$(cat "$LOG"/* | sort -n | tail -1 | cut -d" " -f1)
    kill -9 "${victim##*/}"
    wait_for 60 others_go_on
    touch "$LOG/fast"
    wait_for 120 job_is "$job" COMPLETED
    grep -q "^3000 steps, state $(state_alone 3000)\$" "$TB_WORK/$job.out"
    [[ $(history_json "$job" | json_value '" ".join(g["kind"] for g in s["generations"])') == *fault* ]]
    # A step that was torn may be made by some and given to the others.
    (($(wc -l "$LOG"/* | awk '$2 != "total" && $1 >= 2999 { n++ } END { print n + 0 }') == 2))
}

# A step after number $seen, by who was there before.
others_go_on() { cat "$LOG"/* | awk -v seen="$seen" '$1 > seen + 1 && $2 == 0 { found = 1 } END { exit !found }'; }

@test "in restart mode there is no next world, and the program says so" {
    worlds 100000 --mode=restart --max-restarts=0
    as_user selastic resize "$job" 3
    wait_for 60 job_is "$job" FAILED COMPLETED
    grep -q 'no next world' "$TB_WORK/$job.out"
}
