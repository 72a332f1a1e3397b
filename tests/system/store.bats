#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The store that elasticrun serves: torch.distributed meets there, whoever else is at the socket.

load helpers
load elastic

setup_file() {
    testbed_up --nodes 2 --cpus-per-node 16
    patient
    cp "$TREE/tests/system/store.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

socket_of() { find "$TB_DIR/snapshots" -path "*-$1.0-$2/store" -type s; }

is_there() { [[ -n $(socket_of "$@") ]]; }

job_is_over() { job_is "$1" COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL; }

# has_said COUNT PATTERN: the job's workers.
has_said() { (($(grep -cE "$2" "$TB_WORK/$job.out") == $1)); }

@test "groups form one after the other while strangers misuse the socket; of a killed worker the others are told, and the next world finds nothing of theirs" {
    # Two workers on each of two nodes.
    job=$(submit --elastic=2:2 --ntasks-per-node=2 --exclusive -t 60 --wrap \
        "srun elasticrun --max-restarts=1 $PYTHON $TB_WORK/store.py meet $TB_WORK/enough")
    wait_for 30 is_there "$job" n1
    socket=$(socket_of "$job" n1)
    [[ $(stat -c %a "$socket") == 600 ]]

    run -0 as_user timeout 600 "$PYTHON" "$TB_WORK/store.py" hostile "$socket"
    echo "$output"
    [[ $(sort <<<"$output" | uniq -c | sed 's/^ *//') == "1 answered: None
9 answered: bad
1 answered: gone
1 answered: timeout
5 dropped: True
1 held: 10" ]]

    # Root comes past the mode of the file, nobody else does.
    if ((UID == 0)); then
        run -0 timeout 300 "$PYTHON" "$TB_WORK/store.py" refused "$socket"
        [[ $output == "refused: True" ]]
        run -0 timeout 300 setpriv --reuid=65534 --regid=65534 --clear-groups "$PYTHON" "$TB_WORK/store.py" refused "$socket"
        [[ $output == "refused: Permission denied" ]]
    fi

    job_is "$job" RUNNING
    touch "$TB_WORK/enough"
    wait_for 60 has_said 4 '^right: rank [0-3] of 4$'
    cat "$TB_WORK/$job.out"
    for rank in 0 1 2 3; do
        says "$TB_WORK/$job.out" "^right: rank $rank of 4$"
    done
    run ! says "$TB_WORK/$job.out" 'wrong|generation 2|lost'

    touch "$TB_WORK/enough.lost"
    wait_for 90 job_is_over "$job"
    cat "$TB_WORK/$job.out"
    job_is "$job" COMPLETED
    for rank in 1 2 3; do
        says "$TB_WORK/$job.out" "^gone: rank $rank: get\(never\) in generation 1\.1: that world is over$"
    done
    for rank in 0 1 2 3; do
        says "$TB_WORK/$job.out" "^right: rank $rank finds nothing: .* in generation 2\.2: not there after 0.2 s$"
    done
    has_said 4 '^right: rank [0-3] of 4$'
    wait_for 20 nothing_is_left_of "$job"
}
