#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Fits by HTTP: of our own form, and by OpenAI's client.

load helpers
load elastic
load roles
load serve
load fit

setup_file() {
    export SERVICE=g$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 1 --cpus-per-node 8
    cp "$TREE/tests/system/openai_fits.cjs" "$TB_WORK/"
    fit_file fit 1 'within: {start: 600s, fit: 600s, target: 600s}'
    submit -N1 --exclusive -t 60 --wrap "srun elasticrun --roles=$TB_WORK/fit.yaml" >"$TB_WORK/job"
}

setup() {
    job=$(<"$TB_WORK/job")
    [[ ! -s $TB_HOME/proxy.out ]] || read -r url <"$TB_HOME/proxy.out"
}

teardown_file() {
    end_process "$TB_WORK/proxy.pid" TERM
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || { tail -n 60 "$TB_WORK"/*.out; as_user selastic fit list "$SERVICE"; }; }

model() { as_user cat "$TB_WORK/models/m/current/model"; }

# asks METHOD PATH [BODY]: prints the answer and, in a line of its own, the status.
asks() { as_user curl -s -w '\n%{http_code}' -X "$1" ${3:+-d "$3"} "$url$2"; }

answers() { [[ $(asks GET /v1/shards) == *$'\n200' ]]; }

@test "a training is started, watched, and its log is read" {
    wait_for 40 runs_it
    as_user sh -c "echo \$\$ >proxy.pid; exec selastic proxy $job" >"$TB_HOME/proxy.out" 3>&- &
    wait_for 30 test -s "$TB_HOME/proxy.out"
    read -r url <"$TB_HOME/proxy.out"
    wait_for 30 answers
    data first A
    run -0 asks POST /v1/fits '{"model": "m", "data": "'"$TB_WORK/data/first"'", "config": {"rate": 0.2}}'
    [[ ${lines[-1]} == 200 && ${lines[0]} == *'"message":"fit 1: INITIAL"'* ]]
    wait_for 60 ended_as SUCCESS
    run -0 asks GET /v1/fits/1
    [[ ${lines[-1]} == 200 && ${lines[0]} == *'"status":"SUCCESS"'* && ${lines[0]} == *'"rate":0.2'* ]]
    run -0 asks GET /v1/fits/1/log
    [[ $output == staged*"trains "*" from None"*200 ]]
    run -0 asks GET /v1/fits
    [[ ${lines[-1]} == 200 && $(json_value 'len(s["data"]["fits"])' <<<"${lines[0]}") == 1 ]]
    [[ $(model) == A ]]
}

@test "a training that goes on is cancelled" {
    data long X until "$TB_WORK/never"
    run -0 asks POST /v1/fits '{"model": "m", "data": "'"$TB_WORK/data/long"'"}'
    reason=$(printf 'not needed %.0s' {1..27})abc # 300 bytes
    run -0 asks POST /v1/fits/2/cancel '{"reason": "'"$reason"'d"}'
    [[ ${lines[-1]} == 400 && ${lines[0]} == *"--reason has 301 bytes; 300 is the most"* ]]
    run -0 asks POST /v1/fits/2/cancel '{"reason": "'"$reason"'"}'
    [[ ${lines[-1]} == 200 ]]
    wait_for 40 ended_as CANCELLED
    run -0 asks GET /v1/fits/2
    [[ ${lines[0]} == *"\"reason\":\"$reason\""* ]]
    [[ $(model) == A ]]
}

@test "what is wrong has a line, and a status" {
    # refused STATUS TEXT METHOD PATH [BODY]
    refused() {
        run -0 asks "${@:3}"
        [[ ${lines[-1]} == "$1" && ${lines[0]} == *"$2"* ]] || { echo "$output" && return 1; }
    }
    refused 409 'fit 2 is over already: CANCELLED' POST /v1/fits/2/cancel
    refused 404 'there is no fit 99' GET /v1/fits/99
    refused 404 'there is no fit 99' GET /v1/fits/99/log
    refused 409 '--data=/nowhere: No such file or directory' POST /v1/fits '{"data": "/nowhere"}'
    refused 400 "key 'wait' of the body is not known" POST /v1/fits '{"data": "/d", "wait": 1}'
    refused 400 '--within=fit=soon' POST /v1/fits '{"data": "/d", "within": {"fit": "soon"}}'
    refused 405 'allowed are GET, POST' DELETE /v1/fits
    run -4 as_user selastic fit cancel "$SERVICE" 2
    run -3 as_user selastic fit show "$SERVICE" 99
}

@test "OpenAI's client trains a model" {
    npm=$("$TREE/scripts/setup" --print-npm) || skip "without openai from npm (scripts/setup --npm)"
    data second B
    run -0 as_user node openai_fits.cjs "$npm" "$url" m "$TB_WORK/data/second"
    [[ ${lines[0]} == "created m queued" ]]
    [[ ${lines[1]} == "ended succeeded m" ]]
    [[ ${lines[2]} == "newest true all true" ]]
    [[ ${lines[3]} == "events SUCCESS < WAIT_FOR_FIT < WAIT_FOR_START < INITIAL" ]]
    [[ ${lines[4]} == "cancel 409: fit 3 is over already: SUCCESS" ]]
    [[ ${lines[5]} == "unknown 404: there is no fit 999; "* ]]
    [[ ${lines[6]} == "file 400: training_file: a path that begins with '/', or a URL is expected" ]]
    [[ $(model) == "A B" ]]
}
