#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A run of a real MLflow server goes with a job: over generations, a lost leader and a requeue. Servers that are away or hang.
# Takes 90 s

load ../system/helpers
load ../system/elastic

setup_file() {
    testbed_up --nodes 3
    cp "$TREE"/tests/{system/steps,pypi/mlflow_client}.py "$TB_WORK/"
    script train <<SH
#!/bin/bash
echo "rank \$RANK has run \$MLFLOW_RUN_ID at \$MLFLOW_TRACKING_URI"
exec /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.05
SH
}

teardown_file() {
    cancel_all
    testbed_down
}

teardown() {
    [[ -z ${server:-} ]] || { kill -- "-$server" && wait "$server" || true; }
    cancel_all
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out "$TB_HOME"/server.err || true
}

setup() { server=; }

# serve COMMAND...: in the background, in a process group of its own.
serve() {
    setsid "$@" >"$TB_HOME/server.err" 2>&1 3>&- &
    server=$!
}

answers() { curl -sf -o /dev/null "$1/health"; }
client() { "$mlflow" -W ignore "$TB_WORK/mlflow_client.py" "$@"; }
lines() { [[ $(grep -c "$2" "$TB_WORK/$1.out") -ge $3 ]]; }
has_event() { curl -s "$url/api/2.0/mlflow/runs/get?run_id=$run_id" | grep -qF "elastic.event.$1"; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

@test "one run: over generations, a lost leader and a requeue" {
    mlflow=$("$TREE/scripts/setup" --print-mlflow 2>/dev/null) || skip "MLflow is not installed (scripts/setup --python-env)"
    mkdir "$TB_HOME/mlflow"
    port=$(free_port)
    MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false MLFLOW_DISABLE_TELEMETRY=true serve "$mlflow" -m mlflow server --workers 1 \
        --backend-store-uri "sqlite:///$TB_HOME/mlflow/db" --artifacts-destination "$TB_HOME/mlflow/files" --host 127.0.0.1 --port "$port"
    url=http://127.0.0.1:$port
    wait_for 90 answers "$url"
    job=$(submit -N2 --exclusive --elastic=2:3 --elastic-grow-delay=0 --elastic-mlflow="$url" --elastic-experiment="digits & co" \
        --elastic-run-name="first try" -t 30 --requeue --open-mode=append --wrap "srun elasticrun --max-restarts=9 $TB_WORK/train")
    wait_for 60 size_is "$job" 3
    wait_for 20 lines "$job" "has run [0-9a-f]\{32\} at $url" 3
    run_id=$(sed -n 's/.*has run \([0-9a-f]*\) .*/\1/p' "$TB_WORK/$job.out" | sort -u)
    [[ $run_id =~ ^[0-9a-f]{32}$ ]]

    wait_for 20 has_event "$job.0.000002"
    as_user kill -KILL "$(agent_of "$job" n1)"
    wait_for 60 led_by "$job" n2
    wait_for 30 lines "$job" "MLflow run $run_id at $url" 2

    as_user scontrol requeue "$job"
    wait_for 120 size_is "$job" 3
    wait_for 30 lines "$job" "MLflow run $run_id at $url" 3
    as_user touch "$TB_WORK/log-$job.enough"
    wait_for 60 job_is "$job" COMPLETED
    # No worker has got another run, or none.
    [[ $(sed -n 's/.*has run \([0-9a-f]*\) .*/\1/p' "$TB_WORK/$job.out" | sort -u) == "$run_id" ]]

    MLFLOW_RUN_ID=$run_id MLFLOW_TRACKING_URI=$url run -0 client "digits & co"
    echo "$output"
    for line in 'runs=1' 'status=FINISHED' 'name=first try' "user=$TB_USER" "job=$job" 'own=0.5' 'grace=600' 'most=3' \
        'incarnations=0,1' 'pauses=yes' 'goodput=yes' 'steps=yes'; do
        grep -qxF "$line" <<<"$output"
    done

    # A job goes on with a run that is there, and makes none.
    mine=$(curl -s "$url/api/2.0/mlflow/runs/create" -H 'Content-Type: application/json' -d '{"experiment_id": "0", "run_name": "mine"}' |
        json_value 's["run"]["info"]["run_id"]')
    job=$(submit -N1 --exclusive --elastic=1:1 --elastic-mlflow="$url" --elastic-run-id="$mine" -t 30 --wrap "srun elasticrun $TB_WORK/train")
    wait_for 60 lines "$job" "has run $mine at $url" 1
    enough "$job"
    run -0 curl -s "$url/api/2.0/mlflow/runs/search" -H 'Content-Type: application/json' -d '{"experiment_ids": ["0"]}'
    [[ $(json_value '*[(r["info"]["run_id"], r["info"]["run_name"], r["info"]["status"]) for r in s["runs"]]' <<<"$output") == "('$mine', 'mine', 'FINISHED')" ]]
    [[ $(json_value '*[t["value"] for r in s["runs"] for t in r["data"]["tags"] if t["key"] == "elastic.job"]' <<<"$output") == "$job" ]]
    # … and no other one where there is no such run: the training goes on without.
    job=$(submit -N1 --exclusive --elastic=1:1 --elastic-mlflow="$url" --elastic-run-id=0123456789abcdef0123456789abcdef -t 30 \
        --wrap "srun elasticrun $TB_WORK/train")
    wait_for 60 steps_exceed "$job" 20
    enough "$job"
    grep -i mlflow "$TB_WORK/$job.out"
    run -0 curl -s "$url/api/2.0/mlflow/runs/search" -H 'Content-Type: application/json' -d '{"experiment_ids": ["0"]}'
    [[ $(json_value 'len(s["runs"])' <<<"$output") == 1 ]]
}

@test "a server that is not there costs nothing, and is told of" {
    job=$(submit -N1 --exclusive --elastic=1:1 --elastic-mlflow=http://127.0.0.1:1 -t 30 --wrap "srun elasticrun $TB_WORK/train")
    wait_for 60 says "$TB_WORK/$job.out" 'http://127.0.0.1:1: the MLflow server does not answer'
    wait_for 20 says "$TB_WORK/$job.out" '^rank 0 has run  at $'
    enough "$job"
}

@test "a server that takes connections and never answers keeps nobody" {
    port=$(free_port)
    serve /usr/bin/python3 -c 'import socket; import sys; s = socket.create_server(("127.0.0.1", int(sys.argv[1]))); kept = []
while True: kept.append(s.accept())' "$port"
    wait_for 30 connects "$port"
    job=$(submit -N1 --exclusive --elastic=1:1 --elastic-mlflow=http://127.0.0.1:"$port" -t 30 --wrap "srun elasticrun $TB_WORK/train")
    wait_for 60 steps_exceed "$job" 20
    child=$(as_user pgrep -f "elastic-mlflow --job $job ")
    # It does not even have to run on for the job to end.
    as_user kill -STOP "$child"
    enough "$job"
    wait_for 20 is_gone "$child"
}

connects() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

@test "an address that is none is refused at submission" {
    run -1 as_user sbatch --elastic=1:2 --elastic-mlflow=/scratch/mlruns --wrap true
    [[ $output == *"--elastic-mlflow=/scratch/mlruns: '/scratch/mlruns' is not allowed; write none, or an address such as http://"* ]]
}
