#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that ask for nodes, wait, report and say that they have saved through libelastic and the Python package.
# Takes 55 s

load helpers
load elastic

GRACE=300

setup_file() {
    testbed_up --nodes 5 --grace "$GRACE"
    patient
    : "${prefix:=/usr/local}"
    gcc -O1 -Wall -Wextra -I"$prefix/include" -I"$TREE" -o "$TB_WORK/library" "$TREE/tests/system/pmix/library.c" \
        -L"$prefix/lib" -lelastic -Wl,-rpath,"$prefix/lib"
    chmod 0755 "$TB_WORK/library"
    cp "$TREE/tests/system/pmix/library.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# A job of 2 to 5 nodes that has two and wants no more until it asks.
program() {
    HERE=$(as_user mktemp -d "$TB_WORK/library.XXXX")
    LOG=$HERE/log
    as_user touch "$HERE/hold" "$HERE/wait"
    job=$(submit --elastic=2:5 --elastic-grow-delay=1 -N2 --ntasks-per-node=1 --exclusive -t 20 --wrap \
        "srun elasticrun --max-restarts=0 bash -c 'while [[ -e $HERE/hold ]]; do sleep 0.1; done; exec $TB_WORK/library $HERE'")
    wait_for 60 size_is "$job" 2
    as_user selastic resize "$job" 2
    wait_for 30 none_pending
    as_user rm "$HERE/hold"
    wait_for 60 says "$LOG" '^begins 2 nodes'
}

none_pending() { ! has_pending_extension "$job"; }

order() { as_user sh -c "echo '$*' >>$HERE/orders"; }

# id_of ORDER: of its last answer.
id_of() { grep "^$1: 0 " "$LOG" | tail -n 1 | sed 's/.* //'; }

progress_of() { show_json "$job" | json_value "s['progress']['$1']" 2>/dev/null; }

progress_exceeds() { (($(progress_of "done") > $1)); }

NOT_ELASTIC='init 1
test 0
wait 0
progress 1
request 1
release 1
named 1
cancel 1
result 1
done 1
error 
generation -1 rank -1 size -1 nodes -1'

@test "where there is no elasticrun, every call says so at once; without PMIx, only those that need it" {
    run -0 as_user "$TB_WORK/library" once
    [[ $output == "$NOT_ELASTIC" ]]
    job=$(submit -N1 -t 20 --wrap "srun -n1 $TB_WORK/library once && srun -n1 /usr/bin/python3 $TB_WORK/library.py once")
    other=$(submit --elastic=1:2 -N1 --ntasks-per-node=1 -t 20 --wrap "srun elasticrun --pmix=no --max-restarts=0 $TB_WORK/library once
        srun elasticrun --pmix=no --max-restarts=0 /usr/bin/python3 $TB_WORK/library.py once")
    wait_for 60 job_is "$job" COMPLETED
    cat "$TB_WORK/$job.out"
    # Without what srun says where the step before is not quite gone.
    [[ $(grep -v '^srun: ' "$TB_WORK/$job.out") == "$NOT_ELASTIC
False None None None None False False False" ]]
    wait_for 60 job_is "$other" COMPLETED
    cat "$TB_WORK/$other.out"
    for line in 'init 0' 'test 0' 'wait 0' 'progress 0' 'request -4' 'result -4' 'done -4' 'generation 1 rank 0 size 1 nodes 1' \
        'error this worker was started without PMIx, .* --pmix=no, or has said why' 'ElasticError: this worker was started without PMIx'; do
        says "$TB_WORK/$other.out" "$line"
    done
}

@test "a program gets nodes, hears of it after the restart, gives one back, and is told why not" {
    program
    for what in 'extend 100' 'extend 0' 'release 1' 'named n1' 'named elsewhere' 'cancel 7.0.1'; do
        order "$what"
    done
    wait_for 30 says "$LOG" '^cancel 7.0.1: '
    cat "$LOG"
    says "$LOG" '^extend 100: -5 refused: 100 more nodes would make 102: the job may have 2:5$'
    says "$LOG" '^extend 0: -6 0 nodes: must be 1 or more$'
    says "$LOG" '^release 1: -5 refused: 1 nodes less would leave 1: the base job itself has 2$'
    says "$LOG" '^named n1: -5 refused: n1 belongs to the base job, which keeps its nodes$'
    says "$LOG" "^named elsewhere: -5 refused: elsewhere is not a node of this job\$"
    says "$LOG" "^cancel 7.0.1: -5 refused: '7.0.1' is no request of this job\$"
    order extend 2
    wait_for 60 says "$LOG" "^ready $job.0.1: 4 nodes: \$"
    [[ $(id_of 'extend 2') == "$job.0.1" ]]
    # It goes on where it was, and so does what it says of its progress.
    awk '/^stops/ { at = $NF } /^begins/ && $NF != at + 0 { print; bad = 1 } END { exit bad }' "$LOG"
    step=$(sed -n 's/^begins 4 nodes, step //p' "$LOG")
    wait_for 30 progress_exceeds "$step"
    [[ $(progress_of total) == 1000000 && $(progress_of unit) == steps ]]
    run -0 as_user selastic show "$job"
    [[ $output =~ Progress\ +[0-9]+\ of\ 1000000\ steps\ \(0\ %\) ]]
    gone=$(show_json "$job" | json_value '[m["node"] for m in s["members"] if m["role"] == "extension"][-1]')
    # The two came with one job or with two.
    both=$(show_json "$job" | json_value '",".join(m["node"] for m in s["members"] if m["role"] == "extension")')
    [[ $(show_json "$job" | json_value 'len(set(m["job"] for m in s["members"]))') == 3 ]] || gone=$both
    order named "$gone"
    wait_for 60 says "$LOG" "^ready $job.0.2: "
    [[ " $(as_user squeue -h -t R -o %N | tr '\n' ' ') " != *" ${gone%%,*} "* ]]
    # What cannot be had now, and is not waited for.
    wait_for 30 none_completing
    filler=$(submit -N"$(free_nodes)" --exclusive -t 20 --wrap 'sleep 1200')
    wait_for 30 job_is "$filler" RUNNING
    order extend 1
    wait_for 30 has_pending_extension "$job"
    order cancel "$job.0.3"
    wait_for 30 says "$LOG" "^failed $job.0.3: "
    order extend 1 2
    wait_for 30 says "$LOG" "^failed $job.0.4: .* nodes: its time is over"
    wait_for 30 none_pending
    # A second life of the library in the same process.
    order reinit
    order extend 100
    wait_for 30 says "$LOG" '^reinit : 0'
    wait_for 30 eval '(($(grep -c "^extend 100: -5 refused: 100 more" "$LOG") == 2))'
    as_user scancel "$job" "$filler"
    wait_for 30 nothing_is_left_of "$job"
}

none_completing() { [[ -z $(as_user sinfo -h -p batch -t completing -o %N) ]]; }

free_nodes() { as_user sinfo -h -p batch -t idle -o %D; }

@test "who has saved is not waited for; a server that is killed costs an error and nothing else" {
    program
    order extend 1
    wait_for 60 says "$LOG" "^ready $job.0.1: 3 nodes"
    as_user touch "$HERE/linger"
    # From here on nobody ends by himself.
    rival=$(submit -N3 --exclusive -t 30 --wrap 'sleep 1800')
    wait_for 60 job_is "$rival" RUNNING
    waited_less "$rival" $((GRACE / 3))
    wait_for 60 says "$LOG" '^begins 2 nodes, step [1-9]'
    # The next world has its servers; then rank 0 has none.
    as_user rm "$HERE/linger"
    order release 1
    wait_for 30 says "$LOG" '^release 1: -5 refused: 1 nodes less'
    kill -9 "$(pmix_server_of "$job" n1)"
    wait_for 30 says "$LOG" '^result: -4 the PMIx server of this node has ended'
    order extend 1
    wait_for 30 says "$LOG" '^extend 1: -4 the PMIx server of this node has ended'
    wait_for 60 progress_exceeds 0
    step=$(progress_of "done")
    wait_for 60 progress_exceeds "$step"
    size_is "$job" 2
    as_user scancel "$job" "$rival"
    wait_for 30 nothing_is_left_of "$job"
}

# pmix_server_of JOB NODE: the pid of its elasticrun-pmix there.
pmix_server_of() {
    local pid
    for pid in $(job_processes "$@"); do
        [[ $(readlink "/proc/$pid/exe") != */elasticrun-pmix ]] || echo "$pid"
    done
}

@test "the same in Python" {
    as_user mkdir "$TB_WORK/python"
    job=$(submit --elastic=2:3 --elastic-grow-delay=1 -N2 --ntasks-per-node=1 --exclusive -t 10 --wrap \
        "srun elasticrun --max-restarts=0 /usr/bin/python3 $TB_WORK/library.py $TB_WORK/python")
    wait_for 60 job_ended "$job"
    cat "$TB_WORK/$job.out" "$TB_WORK/python/log"
    job_is "$job" COMPLETED
    for line in "release $job.0.1" "result True 2 ''" "request $job.0.2" "result True 3 ''" 'event grow' 'None True' \
        'NodesRefused: refused: 5 more nodes would make 7: the job may have 2:3' 'ValueError: 0 nodes: must be 1 or more' \
        'NodesRefused: refused: elsewhere is not a node of this job' "NodesRefused: refused: '1.2.3' is no request of this job" \
        'ValueError: progress: neither number may be negative'; do
        grep -qxF "$line" "$TB_WORK/python/log" || { echo "no line: $line"; return 1; }
    done
}
