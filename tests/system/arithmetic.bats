#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Exact arithmetic: a training that was resized three times is the training that never was.
# Takes 30 s

load helpers
load elastic

# Each growth is one step in the list of allowed sizes, so that it is one extension and one change.
# No size but 2 divides the global batch of 128.
SIZES=2,3,5,2
STEPS=144

setup_file() {
    testbed_up --nodes 5
    patient
    cp "$TREE"/examples/digits/*.py "$TREE/tests/system/arithmetic.py" "$TB_WORK/"
    chmod 0755 "$TB_WORK"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# stepped_in JOB WORLD: has rank 0 made some steps there? True as well if the job has ended: what comes next says so.
stepped_in() {
    local steps
    steps=$(grep -sc "\"generation\": $2," "$TB_WORK/steps-$1") || true
    ((${steps:-0} >= 8)) || [[ -e $TB_WORK/ended-$1 ]]
}

# resize JOB WORLD SIZE: as soon as that world trains.
resize() {
    if ! wait_for 120 stepped_in "$1" "$2" || ! as_user selastic resize "$1" "$3"; then
        cat "$TB_WORK/$1.out"
        return 1
    fi
}

each_sample_once() { as_user "$PYTHON" check_log.py --epochs $((STEPS / 12)) "$1"; }

arithmetic() { as_user "$PYTHON" -u arithmetic.py "$@"; }

@test "through three resizes each step's loss is that of a run without, and all ranks are alike" {
    local size world=1
    # All other nodes are taken until the job has been told which size is wanted first.
    rigid=$(submit -N3 --exclusive -t 60 --wrap 'sleep 3600')
    wait_for 30 job_is "$rigid" RUNNING
    job=$(submit --elastic=2,3,5 --elastic-grow-delay=1 --exclusive -t 60 --wrap "srun elasticrun \
        $PYTHON -u arithmetic.py train steps-\$SLURM_JOB_ID $STEPS $SIZES; echo \$? > ended-\$SLURM_JOB_ID")
    for size in $(tr ',' ' ' <<<"${SIZES#*,}"); do
        resize "$job" "$world" "$size"
        ((world++ > 1)) || as_user scancel "$rigid"
    done
    arithmetic train reference $STEPS
    wait_for 200 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    as_user selastic history "$job" | head -n 15
    [[ $(sizes_of "$job") == "$SIZES" ]]
    for log in "$TB_WORK/steps-$job"*; do # for the test below
        ln "$log" "$TB_WORK/resized${log#"$TB_WORK/steps-$job"}"
    done

    each_sample_once resized
    arithmetic check reference resized float64 1e-10
    arithmetic check reference resized float32 1e-5
}

# refused WORDS COMMAND...: it must fail and say that.
refused() {
    local words=$1
    shift
    run "$@"
    echo "$output"
    ((status == 1)) && [[ $output =~ $words ]]
}

# doctored RANK SED-EXPRESSION: the logs of the resized run, changed.
doctored() {
    local log
    for log in "$TB_WORK"/resized*; do
        cp "$log" "$TB_WORK/doctored${log#"$TB_WORK/resized"}"
    done
    sed -i -E "$2" "$TB_WORK/doctored${1/#0/}"
    ! cmp -s "$TB_WORK/doctored${1/#0/}" "$TB_WORK/resized${1/#0/}"
}

@test "the same checks find unweighted gradients, and say where; and a sample, a step or a rank that is wrong" {
    local place='epoch [0-9]+ step [0-9]+ \(world [0-9]+ of [0-9]+ workers\)'
    refused "unweighted: $place: global loss .*, the reference has .*: differs by" \
        arithmetic check reference resized unweighted 1e-10
    refused "unweighted: $place: global loss .*, the reference has .*: differs by" \
        arithmetic check reference resized unweighted 1e-5

    doctored 0 '7s/"indices": \[[0-9]+, [0-9]+/"indices": [5, 5/'
    refused 'lost=[1-9] repeated=[1-9]' each_sample_once doctored
    doctored .1 '9s/("state": \{"float64": ")[0-9a-f]{4}/\1wxyz/'
    refused "float64: $place: ranks \[1\] have another state than rank 0" arithmetic check reference doctored float64 1e-10
    doctored .1 '1s/("loaded": .*"float32": ")[0-9a-f]{4}/\1wxyz/'
    refused "float32: $place: ranks \[1\] have another loaded than rank 0" arithmetic check reference doctored float32 1e-5
    doctored .2 12d
    refused "float64: $place: made by ranks \[" arithmetic check reference doctored float64 1e-10
}
