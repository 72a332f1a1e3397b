#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# sbatch --elastic-roles=FILE: the job file is checked before the job waits, travels with it, and is
# what srun elasticrun runs.
# Takes 35 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 3 --cpus-per-node 4
    # As on a site: only the prolog can make anything there.
    export MEMORY=$TB_DIR/snapshots
    ((UID)) || chmod 711 "$MEMORY"
    # A text that is about the largest one: one role with a long argument. Quotes, a line break, UTF-8.
    /usr/bin/python3 - "$TB_WORK" <<'PYTHON'
import json, sys
def job_file(name, text):
    role = {"leads": True, "run": ["/usr/bin/printf", "%s", text]}
    with open(f"{sys.argv[1]}/{name}", "w", encoding="utf-8") as file:
        json.dump({"roles": {"a": role}}, file, ensure_ascii=False)
odd = "it's \"odd\"\n\t$HOME `true` \\ 'größe' € 😀 "
job_file("odd.json", odd)
with open(f"{sys.argv[1]}/odd.txt", "w", encoding="utf-8") as file:
    file.write(odd)
job_file("long.json", "x" * 64000)
job_file("longer.json", "x" * 65536)
PYTHON
    chmod -R a+rX "$TB_WORK"
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out
    cancel_all
}

# job_file NAME TEXT
job_file() {
    printf '%s\n' "$2" >"$TB_WORK/$1"
    chmod a+r "$TB_WORK/$1"
}

# refused TEXT COMMAND...: in a line that has the text in it. Slurm adds another where slurmctld refuses.
refused() {
    run as_user "${@:2}"
    echo "$output"
    [[ $status -ne 0 && ${lines[0]} == *": error: elastic: "*"$1"* ]]
}

@test "what is wrong is refused at once, with its place in the file" {
    need_plugin job_submit_elastic
    job_file bad.yaml $'roles:\n  a: {leads: yes, run: [a]}\n  b: {run: [b], cpus: many}'
    refused "$TB_WORK/bad.yaml:3:17: roles.b.cpus: 'many' is not a whole number" \
        sbatch --elastic-roles=bad.yaml --wrap true
    script bad.sh <<<$'#!/bin/bash\n#SBATCH --elastic-roles=bad.yaml' >/dev/null
    refused 'bad.yaml:3:17: ' sbatch bad.sh
    refused 'bad.yaml:3:17: ' salloc --elastic-roles=bad.yaml true
    refused '--elastic-roles: the name of the file is missing' sbatch --elastic-roles= --wrap true
    refused 'none.yaml: No such file' sbatch --elastic-roles=none.yaml --wrap true
    refused '--elastic-roles='"$TB_WORK"'/odd.json does not go together with --elastic' \
        sbatch --elastic-roles=odd.json --elastic=1:2 --wrap true
    refused '65536 travel with a job' sbatch --elastic-roles=longer.json --wrap true
    job_file pool.yaml 'roles: {a: {leads: yes, run: [a]}, b: {run: [b], pool: moon}}'
    refused "pool.yaml: roles.b.pool: 'moon' is no pool; pools of this site: elastic, spare" \
        sbatch --elastic-roles=pool.yaml --wrap true
    job_file wide.yaml 'roles: {a: {leads: yes, run: [a], cpus: 5}}'
    refused '--elastic-roles: a needs 5 CPUs on a node, those of batch have 4' \
        sbatch --elastic-roles=wide.yaml --wrap true
    job_file many.yaml 'roles: {a: {leads: yes, run: [a]}, b: {run: [b], replicas: 8}}'
    refused 'need 9 CPUs, and its base can have 2 nodes of batch with at most 4 each' \
        sbatch --elastic-roles=many.yaml -N2 --wrap true
    [ -z "$(as_user squeue -h)" ]
    run -0 as_user sbatch -H --elastic-roles=many.yaml -N3 --wrap true
    [[ $output == *'elastic: warning: the job asks for 3 CPUs, and the replicas that it guarantees need 9'* ]]
}

@test "the roles run, their text arrives byte for byte, and the job ends as the leading role" {
    odd=$(submit --elastic-roles=odd.json --export=PATH,SLURM_CONF,ELASTIC_CONF --wrap "srun elasticrun")
    long=$(submit -N2 --elastic-roles=long.json --wrap 'srun elasticrun | wc -c')
    job_file fail.yaml $'max-nodes: 3\nroles: {a: {leads: yes, tasks: 2, per-node: 1, run: [sh, -c, "env; sleep 1; exit 3"]}}'
    fail=$(submit -w n1,n2 --elastic-roles=fail.yaml --elastic-grace=7 --wrap '
        env >script.env
        sbatch -o nested.out --wrap env
        srun elasticrun')
    ! has_plugin job_submit_elastic || [[ $(job_field "$fail" AdminComment) == elastic=roles ]]
    for job in "$odd" "$long"; do
        wait_for 30 job_is "$job" COMPLETED
    done
    wait_for 30 job_is "$fail" FAILED
    [[ $(job_field "$fail" ExitCode) == 3:0 ]]
    # Each line of output begins with the name of the replica.
    sed -n 's/^a-0: //p' "$TB_WORK/$odd.out" | cmp - <(cat "$TB_WORK/odd.txt"; echo)
    says "$TB_WORK/$long.out" "^6400[0-9]\$"
    grep -q ': ELASTIC_ROLE=a$' "$TB_WORK/$fail.out"
    run ! grep -E ': (SLURM_SPANK_)?ELASTIC_ROLES(_NODES)?=' "$TB_WORK/$fail.out"
    # The prolog has made the place of each node, also where it runs for the step only.
    for node in n1 n2; do
        grep -qE ": ELASTIC_EVENT_FILE=$MEMORY/elastic-[0-9]+-$fail.0-$node/" "$TB_WORK/$fail.out"
    done
    grep -x ELASTIC_ROLES_NODES=3 "$TB_WORK/script.env"
    grep -x ELASTIC_GRACE=7 "$TB_WORK/script.env"
    grep -x SLURM_NO_KILL=set "$TB_WORK/script.env"
    run ! grep SPANK_ELASTIC "$TB_WORK/script.env"
    # Not what the script submits.
    wait_for 20 says "$TB_WORK/nested.out" ^SLURM_JOB_ID=
    run ! grep ELASTIC_ROLES "$TB_WORK/nested.out"
    [ "$(job_field "$(sed -n 's/^SLURM_JOB_ID=//p' "$TB_WORK/nested.out")" AdminComment)" = '' ]
}

@test "salloc and srun take a job file, too; a step does not" {
    job_file five.yaml 'roles: {a: {leads: yes, run: [sh, -c, "exit 5"]}}'
    run -5 as_user srun --export=PATH,SLURM_CONF,ELASTIC_CONF --elastic-roles=five.yaml elasticrun
    run -5 as_user salloc --elastic-roles=five.yaml sh -c '
        srun --elastic-roles=five.yaml elasticrun
        srun elasticrun'
    echo "$output"
    [[ $output == *'elastic: --elastic-roles makes a new job elastic, and this srun is a step of'* ]]
}

@test "a job with roles waits, is requeued and keeps its job file; a program is refused" {
    need_plugin job_submit_elastic
    job_file twice.yaml '{group: sweep, roles: {a: {leads: yes, run: [sh, -c, "echo run $SLURM_RESTART_COUNT; exec sleep 3"]}}}'
    # Outside of elasticrun, so that it is the same for each run.
    job=$(submit -H --requeue --elastic-roles=twice.yaml --wrap '
        srun elasticrun python3 train.py
        srun elasticrun
        [ "$SLURM_RESTART_COUNT" ] || { scontrol requeue $SLURM_JOB_ID; sleep 60; }')
    rm "$TB_WORK/twice.yaml"
    run -0 as_user selastic list
    [[ $output == *roles* ]]
    [[ $(as_user selastic list --group=sweep) == "$output" ]]
    [ -z "$(as_user selastic list --group=other --json | json_value "' '.join(str(j['job']) for j in s['jobs'])")" ]
    as_user scontrol update jobid="$job" numnodes=2-2
    as_user scontrol release "$job"
    wait_for 30 says "$TB_WORK/$job.out" 'a-0: run$'
    [[ $(as_user selastic list --group=sweep --json | json_value "s['jobs'][0]['group']") == sweep ]]
    wait_for 45 starts_again "$job"
    wait_for 30 job_is "$job" COMPLETED
    says "$TB_WORK/$job.out" 'a-0: run 1'
    says "$TB_WORK/$job.out" 'python3: the job file of `sbatch --elastic-roles` says what to run'
}

@test "an extension of a job with roles has its own tasks, and no more nodes than are left" {
    need_plugin job_submit_elastic
    job_file stay.yaml $'max-nodes: 3\nroles: {a: {leads: yes, run: [sleep, "600"]}}'
    base=$(submit --elastic-roles=stay.yaml -w n1 -t 60 --wrap 'srun elasticrun')
    wait_for 20 job_is "$base" RUNNING
    extend() {
        submit --elastic-extend="$base" --comment="elastic-extension-of=$base.0" --no-requeue \
            --elastic-pool=elastic "$@" --wrap 'sleep 600'
    }
    # On nodes that the job has already they cost none.
    for _ in 1 2; do
        beside=$(extend -n1 -w n1)
        wait_for 20 job_is "$beside" RUNNING
    done
    one=$(extend -n3 -c2)
    wait_for 20 job_is "$one" RUNNING
    [[ $(job_field "$one" NumNodes) == 2 && $(job_field "$one" Partition) == elastic ]]
    run as_user scontrol update jobid="$base" numnodes=2
    ((status != 0))
    on_testbed grep "the base of a job with roles keeps its 1 nodes" "$TB_DIR/log/slurmctld.log"
    refused "1 more nodes are too many; job $base has 1, its extensions have or wait for 2, and its MAX is 3" \
        sbatch --elastic-extend="$base" --comment="elastic-extension-of=$base.0" -n1 --wrap true
}
