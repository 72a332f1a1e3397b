#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# spank_elastic.so: the options of sbatch, salloc and srun, and what a job's script finds in its
# environment.
# Takes 50 s

load helpers

setup_file() {
    testbed_up --nodes 4
}

teardown_file() {
    testbed_down
}

teardown() {
    cancel_all
}

# refused TEXT COMMAND...: the command fails, and says so in one line that has the text in it.
refused() {
    local text=$1
    shift
    run as_user "$@"
    echo "$output"
    [[ $status -ne 0 && ${#lines[@]} -eq 1 && ${lines[0]} == *": error: elastic: "*"$text"* ]]
}

# Prints what of a job's environment elastic jobs could have changed.
ours() {
    grep -aE '^(SLURM_(NO_KILL|KILL_BAD_EXIT|WAIT)|_?(SLURM_)?SPANK|ELASTIC)' |
        grep -v ^ELASTIC_CONF= | sort
}

# environment_of SBATCH-ARGUMENT...: submits a job that prints its environment, waits for it,
# prints ours.
environment_of() {
    local id
    id=$(submit "$@" --wrap '/usr/bin/env -0 | /usr/bin/tr "\n\0" " \n"') || return 1
    wait_for 20 job_is "$id" COMPLETED
    ours <"$TB_WORK/$id.out"
}

srun_inputs='SLURM_KILL_BAD_EXIT=0
SLURM_NO_KILL=set
SLURM_WAIT=0'

@test "the options are explained by sbatch, salloc and srun" {
    for command in sbatch salloc srun; do
        as_user "$command" --help >"$BATS_TEST_TMPDIR/all"
        grep -A80 '^Options provided by plugins' "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/help"
        for option in elastic elastic-replica elastic-grace elastic-grow-delay elastic-snooze elastic-fault-wait \
            elastic-hang-wait elastic-straggler elastic-mlflow elastic-experiment elastic-run-name \
            elastic-run-id elastic-max-restarts elastic-pool elastic-deadline elastic-fallback \
            elastic-budget elastic-max-price elastic-wake elastic-reclaim elastic-signal \
            elastic-grow elastic-requeue elastic-config elastic-roles elastic-extend; do
            # A long one has its explanation on the next line.
            tr '\n' ' ' <"$BATS_TEST_TMPDIR/help" | grep -qE " +--$option=[A-Z,.]+ +\[elastic\] "
        done
    done
}

@test "wrong sizes are refused in one line that names them" {
    for sizes in 8:2 0:2 :2 2: 2:8:4 4,2 2,2 2:70000 two '' ' 2:4' -1:2; do
        refused "--elastic=$sizes: " sbatch --elastic="$sizes" --wrap true
    done
    [ -z "$(as_user squeue -h)" ]
}

@test "sizes that are not whole units are refused" {
    refused '--elastic-replica=2: MAX 5 is not a multiple of 2; use 4 or 6' sbatch --elastic=2:5 \
        --elastic-replica=2 --wrap true
    refused '--elastic-replica=3: MIN 2 is not a multiple of 3; use 3' sbatch --elastic=2:6 \
        --elastic-replica=3 --wrap true
    [ -z "$(as_user squeue -h)" ]
}

@test "wrong times, pools and signals are refused with what is allowed" {
    for option in grace grow-delay snooze fault-wait hang-wait max-restarts; do
        for value in -1 1.5 ten 99999999999 ''; do
            refused "--elastic-$option=$value: " sbatch --elastic=1:2 --elastic-$option="$value" \
                --wrap true
        done
    done
    for value in deadline=soon fallback=always budget=-1 max-price=0 wake=maybe reclaim=none; do
        refused "--elastic-$value: " sbatch --elastic=1:2 --elastic-$value --wrap true
    done
    refused '--elastic-deadline=2020-12-01T07:00:00Z has passed already' \
        TZ=CET-1 sbatch --elastic=1:2 --elastic-deadline=2020-12-01T08:00 --wrap true
    refused 'pools of this site: elastic, spare' sbatch --elastic=1:2 --elastic-pool=elastic,moon \
        --wrap true
    refused '--elastic-pool=a b' sbatch --elastic=1:2 '--elastic-pool=a b' --wrap true
    for signal in KILL SIGSTOP 0 65 HUPP; do
        refused "--elastic-signal=$signal: " sbatch --elastic=1:2 --elastic-signal="$signal" \
            --wrap true
    done
    refused "--elastic-grow=never: 'never' is not allowed; write auto or ask" sbatch --elastic=1:2 --elastic-grow=never --wrap true
}

@test "a wrong #SBATCH line is refused, also where the command line overrides it" {
    job=$(script wrong.sh <<'JOB'
#!/bin/bash
#SBATCH --elastic=8:2
true
JOB
    )
    refused '--elastic=8:2: MIN 8 is larger than MAX 2' sbatch "$job"
    refused '--elastic=8:2: ' sbatch --elastic=1:2 "$job"
}

@test "salloc and srun refuse as sbatch does" {
    refused '--elastic=4:2: ' salloc --elastic=4:2 true
    refused '--elastic=4:2: ' srun --elastic=4:2 true
}

@test "the exit status of a refusal is what SLURM_EXIT_ERROR says" {
    run as_user SLURM_EXIT_ERROR=77 sbatch --elastic=4:2 --wrap true
    [ "$status" -eq 77 ]
    run as_user sbatch --elastic=4:2 --wrap true
    [ "$status" -eq 1 ]
}

@test "an option without sizes is refused" {
    refused '--elastic-grace has no meaning without --elastic=MIN:MAX' sbatch --elastic-grace=5 \
        --wrap true
    echo '{"grace": 5}' >"$TB_WORK/grace.json"
    refused '--elastic-config has no meaning without --elastic=MIN:MAX' sbatch \
        --elastic-config=grace.json --wrap true
}

@test "a step of a job cannot be made elastic" {
    run as_user salloc -N1 srun --elastic=1:2 true
    echo "$output"
    [ "$status" -ne 0 ]
    [[ $output == *'srun: error: elastic: --elastic makes a new job elastic, and this srun is'* ]]
}

@test "--elastic-extend takes a job id, and no policy" {
    refused '--elastic-extend=x: not the id of a job' sbatch --elastic-extend=x --wrap true
    refused '--elastic-extend=1 goes with --elastic-pool only' sbatch --elastic-extend=1 \
        --elastic=1:2 --wrap true
    refused '--elastic-extend=1 goes with --elastic-pool only' sbatch --elastic-extend=1 \
        --elastic-grace=1 --wrap true
}

@test "a script of an elastic job finds its policy, and srun finds what it needs" {
    run environment_of --elastic=2:4 --elastic-replica=2 --elastic-grace=7 --elastic-grow-delay=8 --elastic-snooze=9 \
        --elastic-fault-wait=10 --elastic-hang-wait=11 --elastic-max-restarts=4/60 \
        --elastic-pool=spare,elastic --elastic-signal=SIGUSR1 --elastic-grow=ask --elastic-requeue=limit,fault \
        --elastic-deadline=2096-12-01T08:00-05:00 --elastic-fallback=never --elastic-budget=12.50 \
        --elastic-max-price=2 --elastic-wake=no --elastic-reclaim=shrink \
        --elastic-straggler=replace --elastic-mlflow=http://m:5000 --elastic-experiment=digits \
        --elastic-run-name=first --elastic-run-id=0123abc
    [[ $output =~ ELASTIC_SPANK=([0-9.]+) ]]
    [ "$output" = "ELASTIC_BUDGET=12.5
ELASTIC_DEADLINE=2096-12-01T13:00:00Z
ELASTIC_EXPERIMENT=digits
ELASTIC_FALLBACK=never
ELASTIC_FAULT_WAIT=10
ELASTIC_GRACE=7
ELASTIC_GROW=ask
ELASTIC_GROW_DELAY=8
ELASTIC_HANG_WAIT=11
ELASTIC_MAX_PRICE=2
ELASTIC_MAX_RESTARTS=4/60
ELASTIC_MLFLOW=http://m:5000
ELASTIC_POOL=spare,elastic
ELASTIC_RECLAIM=shrink
ELASTIC_REPLICA_NODES=2
ELASTIC_REQUEUE=limit,fault
ELASTIC_RUN_ID=0123abc
ELASTIC_RUN_NAME=first
ELASTIC_SIGNAL=USR1
ELASTIC_SIZES=2:4:2
ELASTIC_SNOOZE=9
ELASTIC_SPANK=${BASH_REMATCH[1]}
ELASTIC_STRAGGLER=replace
ELASTIC_WAKE=no
$srun_inputs" ]
}

@test "the policy survives every --export" {
    file=$TB_WORK/export.env
    printf 'FOO=1\0' >"$file"
    exports=(--export=NONE --export=NIL --export=FOO=1 --export=ALL)
    # Slurm 23.11 has no such option, releases before and after it have.
    slurm_is 23.11 || exports+=("--export-file=$file")
    for export in "${exports[@]}"; do
        run environment_of "$export" --elastic=1:3 --elastic-grace=7
        [[ $output =~ ELASTIC_SPANK=([0-9.]+) ]]
        [ "$output" = "ELASTIC_GRACE=7
ELASTIC_SIZES=1:3
ELASTIC_SPANK=${BASH_REMATCH[1]}
$srun_inputs" ]
    done
}

@test "the steps of a job with --export=NONE find the policy too" {
    srun=$(as_user sh -c 'command -v srun')
    for export in NONE FOO=1; do
        id=$(submit --export="$export" --elastic=2:3 --elastic-grace=7 \
            --wrap "$srun /usr/bin/env")
        wait_for 20 job_is "$id" COMPLETED
        for line in ELASTIC_SIZES=2:3 ELASTIC_GRACE=7 SLURM_NO_KILL=set; do
            [ "$(grep -cx "$line" "$TB_WORK/$id.out")" -eq 2 ]
        done
        run ! grep SPANK_ELASTIC "$TB_WORK/$id.out"
    done
}

@test "an #SBATCH line is enough, and the command line wins over it" {
    job=$(script lines.sh <<'JOB'
#!/bin/bash
#SBATCH --elastic=1:2
#SBATCH --elastic-grace=5
env
JOB
    )
    id=$(submit --elastic=2:4 "$job")
    wait_for 20 job_is "$id" COMPLETED
    grep -x ELASTIC_SIZES=2:4 "$TB_WORK/$id.out"
    grep -x ELASTIC_GRACE=5 "$TB_WORK/$id.out"
}

@test "the command line wins over the environment, that over the policy file" {
    mkdir -p "$TB_WORK/policies"
    cat >"$TB_WORK/policies/p.json" <<'JSON'
{"nodes": "2,4", "grace": 1, "snooze": 2, "fault_wait": 3, "pool": ["spare", "elastic"],
 "scale_config": {"4": {"lr": 0.5}}}
JSON
    chmod -R a+rX "$TB_WORK/policies"
    id=$(as_user ELASTIC_GRACE=10 ELASTIC_SNOOZE=20 ELASTIC_SIZES=1:3 sbatch --parsable \
        -o late.out --elastic-grace=100 --elastic-config=policies/p.json --begin=now+3 \
        --wrap 'srun -n1 env')
    # What waits in the queue does not depend on the file any more.
    echo broken >"$TB_WORK/policies/p.json"
    wait_for 30 job_is "$id" COMPLETED
    run ours <"$TB_WORK/late.out"
    [[ $output =~ ELASTIC_SPANK=([0-9.]+) ]]
    [ "$output" = "ELASTIC_FAULT_WAIT=3
ELASTIC_GRACE=100
ELASTIC_POLICY={\"4\":{\"lr\":0.5}}
ELASTIC_POOL=spare,elastic
ELASTIC_SIZES=2,4
ELASTIC_SNOOZE=20
ELASTIC_SPANK=${BASH_REMATCH[1]}
$srun_inputs" ]
}

@test "the environment names a policy file, but makes no job elastic" {
    echo '{"nodes": "1:2", "grace": 4}' >"$TB_WORK/env.json"
    chmod a+r "$TB_WORK/env.json"
    id=$(as_user ELASTIC_CONFIG="$TB_WORK/env.json" sbatch --parsable -o e.out --elastic=1:3 \
        --wrap env)
    wait_for 20 job_is "$id" COMPLETED
    grep -x ELASTIC_SIZES=1:3 "$TB_WORK/e.out"
    grep -x ELASTIC_GRACE=4 "$TB_WORK/e.out"
    run ! grep ELASTIC_CONFIG "$TB_WORK/e.out"
    id=$(as_user ELASTIC_CONFIG="$TB_WORK/env.json" ELASTIC_SIZES=1:2 sbatch --parsable -o r.out \
        --wrap env)
    wait_for 20 job_is "$id" COMPLETED
    run ! grep ELASTIC_SPANK "$TB_WORK/r.out"
    [ -z "$(job_field "$id" AdminComment)" ]
}

@test "a wrong variable is refused by its name" {
    refused 'ELASTIC_GRACE=x: ' ELASTIC_GRACE=x sbatch --elastic=1:2 --wrap true
    as_user ELASTIC_GRACE=x sbatch -H --wrap true
}

@test "a broken policy file is refused in one line, with what is wrong" {
    cd "$TB_WORK"
    mkfifo fifo
    mkdir directory
    printf '{"nodes": "1:2", "color": 1}' >key.json
    printf '{"nodes": "4:2"}' >sizes.json
    printf '{"nodes": "1:2",\n "grace": }' >syntax.json
    printf '{"nodes": "1:2"} {}' >trailing.json
    /usr/bin/python3 - >big.json <<'PYTHON'
import json
scale = {str(size): {"text": "x" * 1000} for size in range(1, 90)}
print(json.dumps({"nodes": "1:2", "scale_config": scale}))
PYTHON
    head -c 1100000 /dev/zero | tr '\0' ' ' >huge.json
    chmod -R a+rX .
    refused "$TB_WORK/missing.json" sbatch --elastic-config=missing.json --wrap true
    refused "$TB_WORK/fifo" sbatch --elastic-config=fifo --wrap true
    refused "$TB_WORK/directory" sbatch --elastic-config=directory --wrap true
    refused color sbatch --elastic-config=key.json --wrap true
    refused 'MIN 4' sbatch --elastic-config=sizes.json --wrap true
    refused syntax.json sbatch --elastic-config=syntax.json --wrap true
    refused trailing.json sbatch --elastic-config=trailing.json --wrap true
    refused scale_config sbatch --elastic-config=big.json --wrap true
    refused huge.json sbatch --elastic-config=huge.json --wrap true
}

@test "nothing of an elastic job reaches the jobs that its script submits" {
    submit_both=$(script nested.sh <<'JOB'
#!/bin/bash
# As a worker has them.
export ELASTIC_JOB_ID=$SLURM_JOB_ID ELASTIC_RUN_DIR=/run/x ELASTIC_STORE=/run/x/store ELASTIC_NODES=1
export ELASTIC_ROLE=web ELASTIC_PORT=1 ELASTIC_PORT_A=1 ELASTIC_PORT_B=2 ELASTIC_PORT_C=3
sbatch --parsable --wait -o nested.out --wrap env
sbatch --parsable --wait --export=NONE -o nested-none.out --wrap env
salloc -N1 env >nested-salloc.out
(unset ${!SLURM_*}; SLURM_CONF=$1 srun -N1 env) >nested-srun.out
JOB
    )
    # shellcheck disable=SC2016
    conf=$(as_user sh -c 'echo $SLURM_CONF')
    id=$(submit --elastic=1:2 --elastic-grace=7 --elastic-pool=spare "$submit_both" "$conf")
    wait_for 40 job_is "$id" COMPLETED
    cat "$TB_WORK/$id.out"
    for out in nested nested-none nested-salloc; do
        grep -q ^SLURM_JOB_ID= "$TB_WORK/$out.out"
        run ours <"$TB_WORK/$out.out"
        [ -z "$output" ]
    done
    # srun hands on what the script has in its environment, but the job is not elastic.
    nested=$(sed -n 's/^SLURM_JOB_ID=//p' "$TB_WORK/nested-srun.out")
    [ "$nested" != "$id" ]
    run ! grep -E '^ELASTIC_(JOB_ID|RUN_DIR|STORE|NODES|ROLE|PORT.*)=' "$TB_WORK/nested-srun.out"
    [ -z "$(job_field "$nested" AdminComment)" ]
}

@test "nothing of an elastic salloc reaches the jobs that are submitted in it" {
    as_user salloc --elastic=1:2 bash -c \
        'env >salloc.env; srun env >step.env; sbatch --wait -o inner.out --wrap env'
    grep -x ELASTIC_SIZES=1:2 "$TB_WORK/salloc.env"
    grep -x SLURM_NO_KILL=set "$TB_WORK/salloc.env"
    grep -x ELASTIC_SIZES=1:2 "$TB_WORK/step.env"
    run ours <"$TB_WORK/inner.out"
    [ -z "$output" ]
}

@test "an srun that makes its own elastic allocation gives its tasks the policy" {
    mapfile -t base < <(nodes_of_base --elastic=2:3)
    for export in ALL NONE; do
        as_user srun --export="$export" --elastic=2:3 "${base[@]}" --elastic-grace=7 /usr/bin/env \
            >"$TB_WORK/srun.env"
        [ "$(grep -cx ELASTIC_SIZES=2:3 "$TB_WORK/srun.env")" -eq 2 ]
        [ "$(grep -cx ELASTIC_GRACE=7 "$TB_WORK/srun.env")" -eq 2 ]
        [ "$(grep -cx SLURM_NO_KILL=set "$TB_WORK/srun.env")" -eq 2 ]
    done
}

@test "the environment of a rigid job is what it is without the plugin" {
    normal() { grep -avE '^SLURM_(JOB_ID|JOBID|JOB_SLUID|TASK_PID|JOB_START_TIME|JOB_END_TIME)='; }
    with=$(submit -N1 --wrap 'env | sort')
    wait_for 20 job_is "$with" COMPLETED
    conf=$(as_user sh -c 'echo $SLURM_CONF')
    sed "s,^PlugStackConfig=.*,PlugStackConfig=/dev/null," "$conf" >"$TB_WORK/plain.conf"
    chmod a+r "$TB_WORK/plain.conf"
    without=$(as_user SLURM_CONF="$TB_WORK/plain.conf" sbatch --parsable -o "$TB_WORK/%j.out" -N1 \
        --wrap 'env | sort')
    wait_for 20 job_is "$without" COMPLETED
    sed -i "s,$TB_WORK/plain.conf,$conf," "$TB_WORK/$without.out"
    diff <(normal <"$TB_WORK/$with.out") <(normal <"$TB_WORK/$without.out")
}

@test "a user's own elastic.conf with a mistake stops elastic jobs only" {
    printf 'max_pending = 1\ncolor = red\n' >"$TB_WORK/own.conf"
    chmod a+r "$TB_WORK/own.conf"
    refused "own.conf:2: unknown key 'color'" ELASTIC_CONF="$TB_WORK/own.conf" sbatch \
        --elastic=1:2 --wrap true
    as_user ELASTIC_CONF="$TB_WORK/own.conf" sbatch -H --wrap true
    as_user ELASTIC_CONF="$TB_WORK/own.conf" srun true
}

@test "where the plugin is optional, a refused job is not submitted either" {
    conf=$(as_user sh -c 'echo $SLURM_CONF')
    sed 's/^required/optional/' "$(sed -n 's/^PlugStackConfig=//p' "$conf")" \
        >"$TB_WORK/optional.conf"
    sed "s,^PlugStackConfig=.*,PlugStackConfig=$TB_WORK/optional.conf," "$conf" \
        >"$TB_WORK/slurm.conf"
    chmod a+r "$TB_WORK/optional.conf" "$TB_WORK/slurm.conf"
    refused '--elastic-grace has no meaning' SLURM_CONF="$TB_WORK/slurm.conf" sbatch \
        --elastic-grace=5 --wrap true
    [ -z "$(as_user squeue -h)" ]
}
