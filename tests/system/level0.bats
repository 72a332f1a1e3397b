#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Level 0: a Slurm without any plugin, prolog or epilog of ours; only programs in a directory of the user's own.
# Takes 45 s

load helpers
load elastic
load roles

GRACE=300

setup_file() {
    export HOME_DIR
    HOME_DIR=$(mktemp -d "${TMPDIR:-/tmp}/elastic-home.XXXXXX")
    chmod 0755 "$HOME_DIR"
    cp -R "${prefix:-$TREE/build/inst}" "$HOME_DIR/slurm-elastic"
    prefix=$HOME_DIR/slurm-elastic testbed_up --nodes 4 --stock --grace "$GRACE"
    patient
    chown -R "$TB_USER" "$HOME_DIR"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    roles_up
}

teardown_file() {
    testbed_down
    rm -rf "$HOME_DIR"
}

teardown() { cancel_all; }

@test "nothing of ours is in this Slurm, and all of ours is the user's" {
    run as_user scontrol show config
    [[ $output =~ JobSubmitPlugins\ +=\ \(null\) && $output =~ Prolog\ +=\ \(null\) && $output =~ Epilog\ +=\ \(null\) ]]
    run ! grep -v '^#' "$TB_DIR/etc/plugstack.conf"
    run as_user which elasticrun selastic
    echo "$output"
    [[ $output == "$HOME_DIR/slurm-elastic/bin/elasticrun"$'\n'"$HOME_DIR/slurm-elastic/bin/selastic" ]]
    [[ $(stat -c %U "$HOME_DIR/slurm-elastic/bin/elasticrun") == "$TB_USER" ]]
}

@test "elasticrun --elastic=2:4 in a plain sbatch grows, finishes and leaves nothing" {
    run as_user sbatch --elastic=2:4 --wrap true
    ((status != 0)) # the plugin is really not there
    job=$(submit -N2 --exclusive -t 20 --wrap "srun elasticrun --elastic=2:4 --elastic-pool=elastic --elastic-grow-delay=2 \
        /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.3")
    wait_for 60 size_is "$job" 4
    run as_user selastic list
    [[ $output == *"$job"* ]]
    enough "$job"
    sizes_are_among "$job" 2 3 4
    steps_were_made_once "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "it gives a node to a job of the higher tier long before grace ends, and gets it back" {
    job=$(submit -N2 --exclusive -t 20 --wrap "srun elasticrun --elastic=2:4 --elastic-pool=elastic --elastic-grow-delay=2 \
        /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.2")
    wait_for 60 size_is "$job" 4
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    # What runs on the extension's node is the user's own as well.
    for extension in $(extensions_of "$job"); do
        programs_of "$extension" | tee /dev/stderr | grep -q "^$HOME_DIR/slurm-elastic/bin/elasticrun$"
    done
    rival=$(submit -N1 --exclusive -t 5 --wrap 'sleep 2')
    wait_for 120 job_is "$rival" RUNNING COMPLETED
    waited_less "$rival" $((GRACE / 3))
    wait_for 60 job_is "$rival" COMPLETED
    wait_for 60 size_is "$job" 4
    goes_on "$job"
    [[ $(sizes_of "$job") == *4,3,4 ]]
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
    steps_were_made_once "$job"
}

@test "mails are those of the base, as Slurm writes them; extensions send none" {
    keep_mails "$TREE/scripts/elastic-mail"
    job=$(submit -N2 --exclusive -t 5 --mail-type=ALL --mail-user=ada --wrap "srun elasticrun --elastic=2:4 --elastic-pool=elastic \
        --elastic-grow-delay=2 /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.3")
    wait_for 60 size_is "$job" 4
    enough "$job"
    wait_for 30 nothing_is_left_of "$job"
    wait_for 60 has_mail "$job" Ended
    run -0 has_mail "$job" '(Began|Ended)'
    echo "$output"
    [[ ${#lines[@]} == 4 && $output == *", COMPLETED, ExitCode 0"* && $output == *"to ada" && $output != *elastic* ]]
    [[ $(mailing_jobs) == "$job" ]]
}

# The programs that run in a job.
programs_of() {
    local pid
    for pid in $(job_processes "$1"); do
        readlink "/proc/$pid/exe" || true
    done
}

@test "roles: replicas in the base and in extensions, a preempted one, HTTP, reports" {
    job_file level0.yaml <<'YAML'
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 1:8
    cpus: 2
    grow: ask
    api: yes
    pool: elastic
    ports: [http]
    ready: {http: /healthz, within: 120s, every: 200ms}
    drain: {within: 5s}
YAML
    as_user selastic plan "$TB_WORK/level0.yaml" --partition=batch >"$TB_HOME/plan"
    says "$TB_HOME/plan" 'server'
    job=$(run_roles level0.yaml 1)
    wait_for 30 ready_are "$job" server 1
    # What runs is the user's own.
    pid=$(pid_of "$job" server-0)
    grep -q "$HOME_DIR/slurm-elastic/.*/libelastic-shield" "/proc/$pid/maps"
    api=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^ELASTIC_API=//p')
    inside() { as_user srun --overlap --jobid="$job" -N1 -n1 --quiet curl -s "$@"; }
    run -0 inside -X PATCH -d '{"replicas": 4}' "$api/v1/roles/server"
    [[ $output == *"server: 4 replicas (was 1)"* ]]
    wait_for 40 ready_are "$job" server 4
    each_answers "$job"
    run -0 inside -d '{"path": "/model", "size": 7}' "$api/v1/roles/server/replicas/server-0/report"
    [[ $output == *'"message":"report 1"'* ]]
    as_user selastic reports "$job" server-0 | tail -n 1 >"$TB_HOME/report"
    says "$TB_HOME/report" ' 1  .* server-0 .* 7  /model$'
    [[ $(as_user selastic endpoints "$job" --role server --format=hosts | wc -l) == 4 ]]
    # A job of the higher tier needs all other nodes: within drain.within they are its own.
    rival=$(submit -N3 --exclusive -t 5 --wrap 'sleep 2')
    wait_for 60 job_is "$rival" RUNNING COMPLETED
    waited_less "$rival" $((GRACE / 3))
    [[ $(pid_of "$job" server-0) == "$pid" ]]
    wait_for 60 ready_are "$job" server 4
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 20 job_is "$job" COMPLETED
    wait_for 30 nothing_is_left_of "$job"
}

@test "wrong sizes and places are refused with one line" {
    run as_user elasticrun --elastic=2:4 true
    ((status == 2))
    [[ $output == *"not inside a Slurm job"* && ${#lines[@]} == 1 ]]
    job=$(submit -N2 --exclusive -t 20 --wrap "srun elasticrun --elastic=4:2 true")
    wait_for 30 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'elasticrun: .*4:2.*MIN'
    [[ $(grep -c elasticrun: "$TB_WORK/$job.out") == 1 ]]
    job=$(submit -N2 --exclusive -t 20 --wrap "srun elasticrun --elastic=3:4 true")
    wait_for 30 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'elasticrun: .*3:4 needs 3 nodes to start, this step has 2'
    job=$(submit -N2 --exclusive -t 20 --wrap "elasticrun --elastic=2:4 true")
    wait_for 30 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'start it with srun'
}
