#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Bad input, at each door through which it can come: one line that names the value and what is allowed, an exit status,
# and nothing half-done.
#
# Where each kind of bad input is tested:
#
#   sizes: MIN > MAX, zero, negative, no number, overflowing,   here, at all doors; parsing itself in
#     empty, a STEP that does not fit, list and step              tests/unit/test_sizes.c, test_options.c
#   times, pools, signals and --elastic-grow of that kind       spank.bats, tests/unit/test_policy.c
#   sizes for selastic resize                                   here (one that is not allowed: main_path.bats)
#   a MIN that can never be had                                 here: sbatch, salloc, srun, elasticrun
#   --elastic with an array or a heterogeneous job              here: sbatch, salloc, srun
#   -N that contradicts MIN                                     submit.bats: sbatch, salloc, srun; here: elasticrun
#   an unknown pool                                             here: all doors; extensions: submit.bats
#   an extension of a foreign, finished, rigid, unknown job,    submit.bats (asked for with --elastic-extend);
#     or exceeding MAX                                            here: by the comment alone; at the leader's port
#   policy file: missing, a directory, no JSON, unknown keys,   here: sbatch, environment, elasticrun; FIFO, sizes
#     100 MB, a device                                            in it, trailing text: spank.bats
#   elastic.conf: the same, broken lines                        here; in slurmctld: submit.bats; keys and values:
#                                                                 tests/unit/test_conf.c
#   elasticrun outside a job, without srun, with too few nodes  here, level0.bats
#   a worker command that is missing or cannot be executed      here; tests/unit/test_worker_faults.c
#   connections without munge, of others, garbage, half a       here, with a job that trains meanwhile; each kind
#     message, 10 000; a join of an earlier incarnation           alone: tests/unit/test_link_faults.c
#   anything at all, for each parser                            tests/fuzz
# Takes 110 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 6
    patient
    cp "$TREE/tests/system/"{steps,stranger}.py "$TB_WORK/"
    bad_files
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# Policy files and commands that are no good, in TB_WORK.
bad_files() {
    (
        cd "$TB_WORK" || exit 1
        echo 'grace = 10' >text.json
        echo '{"nodes": "2:4", "colour": 1}' >key.json
        echo '{"nodes": "2:4", "grace": 99999999999999999999}' >number.json
        echo '{"nodes": "2:4", "pool": "moon"}' >pool.json
        echo '{"nodes": "2:8:4"}' >sizes.json
        truncate -s 100M large.json
        mkdir directory
        mkfifo fifo
        printf '#!/nowhere/python\n' >no-interpreter
        printf '#!/bin/sh\n' >no-permission
        chmod 0755 no-interpreter
        chmod a+rX ./*
    )
}

# one_line TEXT COMMAND...: fails with one line of ours that has the text in it. Slurm may add a line of its own.
one_line() {
    local text=$1
    shift
    run as_user timeout 120 "$@"
    printf '%s\n' "$* -> $status" "$output"
    [[ $status -ne 0 && $status -ne 124 && ${lines[0]} == *"error: "*"$text"* ]] &&
        { ((${#lines[@]} == 1)) ||
            [[ ${#lines[@]} -eq 2 && ${lines[1]} =~ (submission failed|allocate failed|allocate resources): ]]; }
}

# at_all_doors TEXT SIZES: sbatch, a line of a script, a policy file, salloc, srun, elasticrun.
at_all_doors() {
    printf '#!/bin/sh\n#SBATCH --elastic=%s\ntrue\n' "$2" >"$TB_WORK/line.sh"
    printf '{"nodes": "%s"}\n' "$2" >"$TB_WORK/nodes.json"
    chmod a+r "$TB_WORK"/{line.sh,nodes.json}
    one_line "--elastic=$2: $1" sbatch --elastic="$2" --wrap true
    one_line "--elastic=$2: $1" sbatch line.sh
    one_line "nodes.json: \"nodes\": '$2': $1" sbatch --elastic-config=nodes.json --wrap true
    one_line "--elastic=$2: $1" salloc --elastic="$2" true
    one_line "--elastic=$2: $1" srun --elastic="$2" true
    one_line "--elastic=$2: $1" elasticrun --elastic="$2" true
}

no_job_was_left() { [[ -z $(as_user squeue -h) ]]; }

@test "sizes that are none, at all doors" {
    at_all_doors 'MIN 8 is larger than MAX 2; write MIN:MAX with 1 <= MIN <= MAX <= 65533' 8:2
    at_all_doors "MIN '0' is not a number of nodes; allowed are whole numbers from 1 to 65533" 0:4
    at_all_doors "MAX '-4' is not a number of nodes; allowed are" 2:-4
    at_all_doors "'two' is not a number of nodes; write MIN:MAX such as 2:8, MIN:MAX:STEP such as 2:8:2, or a list" two
    at_all_doors "'2-8' is not a number of nodes; write MIN:MAX such as 2:8" 2-8
    at_all_doors "MAX '99999999999999999999' is not a number of nodes; allowed are" 2:99999999999999999999
    at_all_doors 'STEP 4 does not lead from MIN 2 to MAX 8; use a STEP that divides 6, or a MAX of 6 or 10' 2:8:4
    at_all_doors 'a list and MIN:MAX[:STEP] exclude each other; write either 2,4,8 or 2:8:2' 2,4:8
    no_job_was_left
}

@test "no sizes" {
    for door in 'sbatch --elastic= --wrap true' 'salloc --elastic= true' 'srun --elastic= true' 'elasticrun --elastic= true'; do
        # shellcheck disable=SC2086
        one_line '--elastic=: the value is empty; write MIN:MAX such as 2:8' $door
    done
    echo '{"nodes": ""}' >"$TB_WORK/nodes.json"
    one_line 'nodes.json: "nodes": ' sbatch --elastic-config=nodes.json --wrap true
    no_job_was_left
}

@test "selastic resize takes a number of nodes" {
    for size in '' two 0 -0 1.5 65534 99999999999999999999; do
        one_line "'$size' is not a size; give a number of nodes from 1 to 65533" selastic resize 1 "$size"
        ((status == 2))
    done
    for job in '' twelve 0 99999999999999999999; do
        one_line "'$job' is not a job id" selastic resize "$job" 2
    done
}

@test "a MIN that no partition can have" {
    need_plugin job_submit_elastic
    text='the MIN of 7 nodes of --elastic can never be had: partition batch lets a job have at most 6'
    echo '{"nodes": "7:8"}' >"$TB_WORK/nodes.json"
    one_line "$text" sbatch --elastic=7:8 --wrap true
    one_line "$text" sbatch --elastic-config=nodes.json --wrap true
    one_line "$text" salloc --elastic=7:8 true
    one_line "$text" srun --elastic=7:8 true
    no_job_was_left
}

@test "arrays and heterogeneous jobs are not elastic" {
    need_plugin job_submit_elastic
    one_line '--elastic does not work with --array; submit the tasks of the array as jobs' \
        sbatch --elastic=2:4 --array=1-3 --wrap true
    text='--elastic does not work with heterogeneous jobs; submit one job'
    one_line "$text" sbatch --elastic=2:4 : -N1 --wrap true
    one_line "$text" sbatch -N1 : --elastic=2:4 --wrap true
    one_line "$text" salloc --elastic=2:4 : -N1 true
    one_line "$text" srun --elastic=2:4 true : -N1 true
    no_job_was_left
}

@test "an unknown pool" {
    text='--elastic-pool=moon: unknown pool; pools of this site: elastic, spare'
    printf '#!/bin/sh\n#SBATCH --elastic=2:4\n#SBATCH --elastic-pool=moon\ntrue\n' >"$TB_WORK/line.sh"
    one_line "$text" sbatch line.sh
    one_line "$text" sbatch --elastic-config=pool.json --wrap true
    one_line "$text" salloc --elastic=2:4 --elastic-pool=moon true
    one_line "$text" srun --elastic=2:4 --elastic-pool=moon true
    one_line "$text" env ELASTIC_POOL=moon sbatch --elastic=2:4 --wrap true
    no_job_was_left
}

# file TEXT NAME: that policy file, at the doors.
file() {
    one_line "$1" sbatch --elastic-config="$2" --wrap true
    one_line "$1" env ELASTIC_CONFIG="$2" sbatch --elastic=2:4 --wrap true
    one_line "$1" salloc --elastic-config="$2" true
}

@test "policy files that are none" {
    file 'missing.json: No such file or directory' missing.json
    file 'directory: it is a directory, not a file' directory
    file 'text.json: this is not a JSON object; write {"key": value, ...}' text.json
    file 'key.json: "colour": unknown key; known keys: nodes, replica, grace,' key.json
    file 'number.json: "grace": NaN, Infinity and numbers that need more than 64 bits' number.json
    file 'large.json: it has 104857600 bytes; at most 1048576 are allowed' large.json
    file 'fifo: it is a FIFO, not a regular file' fifo
    file '/dev/zero: it is a device, not a regular file' /dev/zero
    no_job_was_left
}

@test "an elastic.conf that is none, or has a wrong line" {
    conf() { one_line "$1" env ELASTIC_CONF="$2" sbatch --elastic=2:4 --wrap true; one_line "$1" env ELASTIC_CONF="$2" selastic list; }
    conf 'missing.conf: No such file or directory' missing.conf
    conf 'directory: it is a directory, not a file' "$TB_WORK/directory"
    conf 'fifo: it is a FIFO, not a regular file' "$TB_WORK/fifo"
    conf '/dev/zero: it is a device, not a regular file' /dev/zero
    conf 'large.json: it has 104857600 bytes; at most 1048576 are allowed' "$TB_WORK/large.json"
    echo 'max_nodes = -1' >"$TB_WORK/wrong.conf"
    conf "wrong.conf:1: max_nodes: '-1' is not a number; allowed are whole numbers from 0 to 65533" "$TB_WORK/wrong.conf"
    echo '[pool' >"$TB_WORK/wrong.conf"
    conf "wrong.conf:1: unknown section '[pool'; write [pool NAME]" "$TB_WORK/wrong.conf"
    no_job_was_left
}

# steps_that_fail WORD...: runs elasticrun with each of these options in a job of two nodes that is not elastic, one after the
# other; output and exit status of each are in TB_WORK/N.step.
steps_that_fail() {
    local job number=0 words
    {
        printf '#!/bin/bash\ncd %q\n' "$TB_WORK"
        for words; do
            number=$((number + 1))
            printf 'timeout 300 srun elasticrun %s >%d.step 2>&1 </dev/null; echo "-> $?" >>%d.step\n' "$words" $number $number
        done
    } >"$TB_WORK/steps.sh"
    job=$(submit -N2 --exclusive -t 30 "$TB_WORK/steps.sh")
    wait_for 120 job_is "$job" COMPLETED
    wait_for 20 nothing_is_left_of "$job"
}

# step NUMBER STATUS TEXT: that step ended so, and elasticrun complained once.
step() {
    cat "$TB_WORK/$1.step"
    [[ $(grep -c 'elasticrun: error: ' "$TB_WORK/$1.step") == 1 ]] && grep -qF -- "$3" "$TB_WORK/$1.step" &&
        [[ $(tail -n 1 "$TB_WORK/$1.step") == "-> $2" ]]
}

@test "what elasticrun itself refuses in a job" {
    steps_that_fail '--elastic=8:2 true' '--elastic=3:4 true' '--elastic=1,3 true' '--elastic=2:4 --elastic-config=large.json true' \
        '--elastic=2:4 --elastic-config=/dev/zero true' '--elastic=2:4 --elastic-config=directory true' \
        '--elastic=2:4 --elastic-pool=moon true' true '--elastic=2:4'
    step 1 2 '--elastic=8:2: MIN 8 is larger than MAX 2'
    step 2 1 '--elastic=3:4 needs 3 nodes to start, this step has 2; use srun -N3 in a job of 3 nodes'
    step 3 1 '--elastic=1,3 does not allow the 2 nodes of this step; use srun -N1'
    step 4 1 'large.json: it has 104857600 bytes; at most 1048576 are allowed'
    step 5 1 '/dev/zero: it is a device, not a regular file'
    step 6 1 'directory: it is a directory, not a file'
    step 7 1 '--elastic-pool=moon: unknown pool; pools of this site: elastic, spare'
    step 8 1 'no size given: submit with sbatch --elastic=MIN:MAX'
    step 9 2 'no command to run; try: srun elasticrun python train.py'
}

@test "a command that cannot be run is not tried again" {
    steps_that_fail '--elastic=2:4 no-such-command' '--elastic=2:4 ./no-such-file' '--elastic=2:4 ./directory' \
        '--elastic=2:4 ./no-permission' '--elastic=2:4 ./no-interpreter'
    step 1 127 'no-such-command: No such file or directory'
    step 2 127 './no-such-file: No such file or directory'
    step 3 126 './directory: Is a directory'
    step 4 126 './no-permission: Permission denied'
    step 5 127 './no-interpreter: the interpreter that its first line names does not exist'
    for step in 1 2 3 4 5; do
        (($(grep -c ': generation [0-9]*:' "$TB_WORK/$step.step") == 1))
    done
}

@test "elasticrun outside a job, and an agent of an extension without a leader" {
    one_line 'not inside a Slurm job; submit one: sbatch --elastic=MIN:MAX' elasticrun --elastic=2:4 true
    one_line 'not inside a Slurm job' env SLURM_JOB_ID=twelve elasticrun --elastic=2:4 true
    one_line 'SLURMD_NODENAME is not set; start elasticrun with srun' env SLURM_JOB_ID=12 elasticrun --elastic=2:4 true
    one_line '--extension is for jobs that elasticrun submits itself' \
        env SLURM_JOB_ID=12 SLURMD_NODENAME=n6 elasticrun --extension
    one_line 'ELASTIC_LEADER=127.0.0.1:0: not ADDRESS:PORT' env SLURM_JOB_ID=12 SLURMD_NODENAME=n6 ELASTIC_BASE=1.0 \
        ELASTIC_LEADER=127.0.0.1:0 elasticrun --extension
}

@test "a leader that cannot start ends the step on all nodes" {
    run as_user timeout 120 srun -N3 elasticrun --elastic=3:3 --state-dir=/proc/none true
    echo "$status: $output"
    [[ $status != 0 && $status != 124 && $output == *'/proc/none'* && $output != *'lost the leader'* ]]
}

# ---- connections ----

# leader_of EXTENSION: where the leader of that extension listens, ADDRESS:PORT.
leader_of() {
    local pid
    for pid in $(job_processes "$1"); do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n 's/^ELASTIC_LEADER=\([^,]*\).*/\1/p'
    done | head -n 1
}

# listener PORT: the pid of who listens there.
listener() { ss -Hltnp "sport = :$1" | sed -n 's/.*pid=\([0-9]*\).*/\1/p' | head -n 1; }

# stranger WHAT BASE [ARGUMENT]...: talks to the leader, as the user.
stranger() { as_user /usr/bin/python3 "$TB_WORK/stranger.py" "$1" "$address" "$port" "${@:2}"; }

# hand_made BASE JOB NODE: what an extension job made by hand would run, without a job.
hand_made() {
    as_user timeout 300 env ELASTIC_BASE="$1" ELASTIC_LEADER="$address:$port" SLURM_JOB_ID="$2" SLURMD_NODENAME="$3" \
        elasticrun --extension
}

# job_with_leader MAX: a job that has grown to that size; sets job, extension, address, port and leader (a pid).
job_with_leader() {
    job=$(train "2:$1" 100000 0.2)
    wait_for 60 size_is "$job" "$1"
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    find_leader
}

find_leader() {
    extension=$(extensions_of "$job" | head -n 1)
    wait_for 30 eval '[[ -n $(leader_of "$extension") ]]'
    address=$(leader_of "$extension")
    port=${address##*:} address=${address%:*}
    leader=$(listener "$port")
    [[ -n $leader ]]
}

open_files() { find "/proc/$leader/fd" -mindepth 1 2>/dev/null | wc -l; }

# The generation has not changed, and makes steps.
undisturbed() {
    local steps
    steps=$(steps_of "$job")
    wait_for 30 steps_exceed "$job" $((steps + 5))
    [[ $(generation_of "$job") == "$1" ]]
}

@test "strangers at the leader's port: garbage, half a message, no munge, an earlier run" {
    job_with_leader 3
    generation=$(generation_of "$job")
    munge="$(sed -n 's/^munge_socket *= *//p' "$TB_DIR/etc/elastic.conf") $(id -u "$TB_USER")"
    stranger half "$job.0" >"$TB_WORK/half.out" &
    half=$!
    run -0 stranger garbage "$job.0"
    [[ $output == $'challenge\nchallenge' ]]
    run -0 stranger no-munge "$job.0"
    [[ ${#lines[@]} == 3 && $output == *'cannot decode a credential'* && $output != *accept* ]]
    run -0 stranger credential "$job.1" "$munge"
    [[ $output == "this is the leader of job $job.0" ]]
    wait "$half"
    [[ $(cat "$TB_WORK/half.out") == challenge ]]
    # One that is too many.
    run hand_made "$job.0" 4000000 n6
    echo "$output"
    [[ $output == *'the job has its 3 nodes (MAX)'* ]]
    undisturbed "$generation"
    steps_were_made_once "$job"
    # One of an earlier run of the same job.
    on_testbed scontrol requeue "$job"
    wait_for 60 starts_again "$job"
    wait_for 60 size_is "$job" 3
    [[ $(show_json "$job" | json_value 's["incarnation"]') == "$job.1" ]]
    find_leader
    generation=$(generation_of "$job")
    run hand_made "$job.0" 4000000 n6
    echo "$output"
    [[ $output == *"no leader of job $job.0 at $address"*"this is the leader of job $job.1"* ]]
    undisturbed "$generation"
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "another user at the leader's port" {
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    job_with_leader 3
    generation=$(generation_of "$job")
    munge="$(sed -n 's/^munge_socket *= *//p' "$TB_DIR/etc/elastic.conf") $(id -u "$TB_USER")"
    run -0 on_testbed setpriv --reuid=nobody --regid=nogroup --clear-groups -- /usr/bin/python3 \
        "$TB_WORK/stranger.py" credential "$address" "$port" "$job.0" "$munge"
    [[ $output == "uid $(id -u nobody) may not take part as agent in a job of uid $(id -u "$TB_USER")" ]]
    undisturbed "$generation"
    steps_were_made_once "$job"
}

crowd_is_there() { says "$TB_WORK/crowd.out" "^holding"; }

fast_enough() {
    local began=$EPOCHREALTIME
    show_json "$job" >/dev/null && (($(seconds_since "$began") <= 15))
}

@test "all of a job's ports are taken" {
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    exec {hold}> >(on_testbed setpriv --reuid=nobody --regid=nogroup --clear-groups -- /usr/bin/python3 \
        "$TB_WORK/stranger.py" squat any 28000 16 >"$TB_WORK/squat.out")
    wait_for 30 says "$TB_WORK/squat.out" '^listening on [0-9]*-[0-9]*$'
    sed "1i port_range = $(sed 's/listening on //' "$TB_WORK/squat.out")
        /^port_range/d" "$TB_DIR/etc/elastic.conf" >"$TB_WORK/ports.conf"
    squeezed=$(as_user ELASTIC_CONF="$TB_WORK/ports.conf" sbatch --parsable -N2 --elastic=2:2 --exclusive \
        --output=/dev/null --wrap 'srun elasticrun sleep 600')
    size_shown() { as_user ELASTIC_CONF="$TB_WORK/ports.conf" selastic show "$squeezed" --json | json_value 's["size"]'; }
    wait_for 30 eval '[[ $(size_shown) == 2 ]]'
    [[ -s $TB_DIR/jobs/$TB_USER-$squeezed/leader/$squeezed.0.port ]]
    if has_plugin job_submit_elastic; then # of other jobs it does not look for the leader's port in a directory
        as_user ELASTIC_CONF="$TB_WORK/ports.conf" selastic list --json >"$TB_WORK/list.json"
        [[ $(json_value "{j['job']: j['generation'] for j in s['jobs']}[$squeezed]" <"$TB_WORK/list.json") == 1 ]]
    fi
    exec {hold}>&-
}

@test "10 000 connections: the job trains, selastic is answered, a node joins" {
    job_with_leader 4
    as_user selastic resize "$job" 3
    wait_for 60 size_is "$job" 3
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    before=$(open_files)
    mkfifo "$TB_WORK/hold"
    stranger crowd "$job.0" 10000 <"$TB_WORK/hold" >"$TB_WORK/crowd.out" 2>&1 &
    crowd=$!
    exec 9>"$TB_WORK/hold"
    wait_for 60 crowd_is_there
    steps=$(steps_of "$job")
    for _ in 1 2 3 4 5; do
        wait_for 60 fast_enough
        ((most = $(open_files)))
        echo "$most open files, $before before"
        # 64 places for those that have not proved themselves.
        ((most < before + 80))
    done
    as_user selastic resize "$job" 4
    wait_for 60 size_is "$job" 4
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    exec 9>&-
    wait "$crowd"
    cat "$TB_WORK/crowd.out"
    steps_exceed "$job" "$steps"
    wait_for 20 eval '(($(open_files) < before + 20))'
    steps_were_made_once "$job"
}

# by_hand_refused TEXT BASE [SBATCH-ARGUMENT]...
by_hand_refused() {
    one_line "--comment=elastic-extension-of=$2: $1" sbatch --comment="elastic-extension-of=$2" "${@:3}" --wrap true
}

@test "extensions made by hand, by the comment alone" {
    need_plugin job_submit_elastic
    finished=$(submit -N1 -t 5 --wrap true)
    elastic=$(submit --elastic=1:2 -t 30 --wrap 'sleep 1800')
    rigid=$(submit -N1 -t 30 --wrap 'sleep 1800')
    wait_for 30 job_is "$finished" COMPLETED
    wait_for 30 job_is "$elastic" RUNNING
    wait_for 30 job_is "$rigid" RUNNING
    by_hand_refused 'there is no job 4000000; name a running elastic job' 4000000.0
    by_hand_refused 'not the id of a job; name a running elastic job' train
    by_hand_refused "job $finished has ended or is about to" "$finished.0"
    by_hand_refused '2 more nodes are too many' "$elastic.0" -N2
    by_hand_refused "the comment is 'elastic-extension-of=$elastic.1'; an extension of this run of the job needs --comment=" \
        "$elastic.1"
    # Of a job that is not elastic for Slurm its leader would know: there is none.
    made=$(as_user ELASTIC_BASE="$rigid.0" ELASTIC_LEADER=127.0.0.1:23000 sbatch --parsable -o "$TB_WORK/%j.out" -N1 \
        -t 10 -p elastic --comment="elastic-extension-of=$rigid.0" --wrap 'srun elasticrun --extension')
    wait_for 60 job_ended "$made"
    cat "$TB_WORK/$made.out"
    [[ $(grep -c "elasticrun: .*no leader of job $rigid\\.0 " "$TB_WORK/$made.out") == 1 ]]
    [[ $(as_user squeue -h | wc -l) == 2 ]]
}

@test "an extension of a foreign job, by the comment alone" {
    need_plugin job_submit_elastic
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    foreign=$(on_testbed sbatch --parsable --chdir=/ -o /dev/null -N1 -t 30 --wrap 'sleep 1800')
    wait_for 30 job_is "$foreign" RUNNING
    by_hand_refused "job $foreign belongs to another user; name a running elastic job of your own" "$foreign.0"
}
