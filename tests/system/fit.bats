#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Fits: a model of a service is trained in its job, and its replicas are replaced by ones with the
# new state. Processes are killed at every step.
# Takes 100 s

load helpers
load elastic
load roles
load serve
load fit

setup_file() {
    export SERVICE=f$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 2 --cpus-per-node 8
    fit_file fit 2 'cpus: 2' 'within: {start: 600s, fit: 600s, target: 600s}' 'keep: 3'
    submit -N2 --exclusive -t 90 --wrap "srun elasticrun --roles=$TB_WORK/fit.yaml" >"$TB_WORK/job"
}

setup() { job=$(<"$TB_WORK/job"); }

teardown_file() {
    end_process "$TB_WORK/hey.pid" INT
    end_process "$TB_WORK/router.pid" TERM
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || { tail -n 60 "$TB_WORK"/*.out; as_user selastic fit list "$SERVICE"; }; }

@test "the service begins without a model; a fit makes the first state, and it is served" {
    wait_for 40 runs_it
    data first A
    run -0 fit first
    [[ $output == "fit 1 of $SERVICE: model m has been trained, and is served" ]]
    [[ $(path_of 1) == "INITIAL > WAIT_FOR_START > WAIT_FOR_FIT > SUCCESS" ]]
    [[ $(current) == 000001 ]]
    wait_for 20 serves_all 000001 2
    [[ $(as_user cat "$TB_WORK/models/m/000001/model") == A ]]
    run -0 as_user selastic states show "$TB_WORK/models/m" --verify
    [[ $output == *"Run:      fit 1 of $SERVICE"* ]]
    run -0 as_user selastic fit log "$SERVICE" 1
    [[ $output == staged*"trains None from None" ]]
    wait_for 20 trains_nobody
}

@test "a router takes the address of the service, and requests come all the time" {
    begin_load 000001
}

# With what replicas run, but for what is another one's for each.
settings() {
    local pid
    for pid in $(pgrep -u "$TB_USER" -f "^/usr/bin/python3 -S $TB_WORK/serve_program.py"); do
        tr '\0' '\n' <"/proc/$pid/cmdline" | sed 's/^[0-9]*$/PORT/'
        tr '\0' '\n' <"/proc/$pid/environ" | grep -E '^(ELASTIC_(ROLE|SHARD|TASKS|MODELS|SHARED_DIR)|OMP_NUM_THREADS)='
    done | sort | uniq -c
}

@test "a second fit gets the state before; its replicas are new ones, and answers change once" {
    before=$(servers | sort)
    settings=$(settings)
    [[ $settings == *"2 ELASTIC_ROLE=server-1"* ]]
    data second B until "$TB_WORK/second"
    as_user sh -c "echo '{\"rate\": 0.1}' >$TB_WORK/data/config.json"
    begin second --config="$TB_WORK/data/config.json"
    wait_for 30 acts fit
    # The replica that trains is none of the table's.
    [[ $(table | json_value 'sum(len(x["replicas"]) for x in s["shards"])') == 2 ]]
    if [[ -s $TB_WORK/port ]]; then
        ask() { curl -s "http://127.0.0.1:$(<"$TB_WORK/port")/m" && echo; }
        ask >"$TB_WORK/answers"
        go_on second
        until ended_as SUCCESS; do ask; done >>"$TB_WORK/answers"
        wait_for 20 serves "127.0.0.1:$(<"$TB_WORK/port")" 000002
        ask >>"$TB_WORK/answers"
        # New ones and old ones answer side by side while replicas are replaced.
        [[ $(head -n 1 "$TB_WORK/answers") == 000001 && $(tail -n 1 "$TB_WORK/answers") == 000002 ]]
        [[ $(sort -u "$TB_WORK/answers" | tr '\n' ' ') == "000001 000002 " ]]
    fi
    go_on second
    wait_for 60 ended_as SUCCESS
    wait_for 20 serves_all 000002 2
    [[ $(as_user cat "$TB_WORK/models/m/000002/model") == "A B" ]]
    [[ -z $(comm -12 <(echo "$before") <(servers | sort)) ]]
    [[ $(settings) == "$settings" ]]
    [[ $(as_user selastic states show "$TB_WORK/models/m" --json | json_value 's["state"], s["previous"]') == "000002 000001" ]]
    [[ $(as_user selastic fit log "$SERVICE") == *"'rate': 0.1"*"/m/000001" ]]
    [[ $(fit_json | json_value 's["count"]') == 2 ]]
}

@test "a fit that fails is skipped: the next one gets the state before it" {
    data fails X fail
    run -1 fit fails --format=unknown
    [[ $output == *"fit 3 has ended as FAILED: the program that gets the data: exit status 1;"* ]]
    run -1 fit fails
    [[ $output == *"fit 4 has ended as FAILED: the training: exit status 3;"* ]]
    data empty X empty
    run -1 fit empty
    [[ $output == *"fit 5 has ended as FAILED: the training: the training has written no files" ]]
    [[ $(current) == 000002 && $(partials) == 0 ]]
    data third C
    data labels labels
    as_user sh -c "mkdir -p ~/.slurm-elastic/services/$SERVICE/configs
        echo '{\"rate\": 0.2}' >~/.slurm-elastic/services/$SERVICE/configs/slow.json"
    fit third --config=slow --targets="$TB_WORK/data/labels" --format=words
    [[ $(as_user selastic fit log "$SERVICE") == *"trains {'rate': 0.2} from $TB_WORK/models/m/000002 to labels" ]]
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C" ]]
    wait_for 20 serves_all "$(current)" 2
}

@test "replicas that do not get ready with the new state bring the old one back" {
    old=$(current)
    data broken X broken
    run -1 fit broken
    [[ $output == *"FAILED: shard_1 did not get ready with "*": 2 new replicas in a row did not get ready" ]]
    [[ $(current) == "$old" ]]
    wait_for 20 serves_all "$old" 2
}

@test "a fit can be cancelled, and its time can be over; nothing of it stays" {
    old=$(current)
    data long X until "$TB_WORK/never"
    begin long
    wait_for 30 acts fit
    run -0 as_user selastic fit cancel "$SERVICE" --reason="not needed"
    wait_for 40 ended_as CANCELLED
    [[ $(fit_json | json_value 's["reason"]') == "not needed" ]]
    run -4 as_user selastic fit cancel "$SERVICE"
    [[ $output == *"is over already: CANCELLED" ]]
    run -1 fit long --within=fit=2s
    [[ $output == *"FAILED: WAIT_FOR_FIT: not done in time, after 2 s (fit)" ]]
    [[ $(current) == "$old" && $(partials) == 0 ]]
    wait_for 20 trains_nobody
}

@test "a runner that is killed at each step is followed by another one, which goes on" {
    # Three of its actions last until the runner of each has been killed.
    data killed D staged "$TB_WORK/staged" until "$TB_WORK/killed" slow "$TB_WORK/served"
    begin killed
    while [[ ${status:=} != SUCCESS ]]; do
        read -r status action < <(fit_json | json_value 's["status"], s["action"]')
        [[ $status != FAILED ]]
        mapfile -t pids < <(processes run)
        if [[ $action != "${last:-}" ]] && ((${#pids[@]} > 0)); then
            as_user kill -KILL "${pids[@]}" || true
            echo "killed ${pids[*]} at $action"
            last=$action
            case $action in
            stage) go_on staged ;;
            fit) go_on killed ;;
            replace) go_on served.all ;;
            esac
            kills=$((${kills:-0} + 1))
        fi
        sleep 0.1
    done
    ((kills >= 3))
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C D" ]]
    [[ $(partials) == 0 ]]
    wait_for 20 serves_all "$(current)" 2
}

@test "a trainer that is killed trains once more, and not a third time" {
    data again E until "$TB_WORK/again"
    begin again
    wait_for 30 acts fit
    trains() { [[ $(as_user selastic fit log "$SERVICE" 2>/dev/null | grep -c ^trains) == "$1" ]]; }
    wait_for 20 trains 1
    as_user kill -KILL "$(processes train)"
    wait_for 20 trains 2
    go_on again
    wait_for 60 ended_as SUCCESS
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C D E" ]]
    data thrice X until "$TB_WORK/never"
    begin thrice
    for n in 1 2; do
        wait_for 30 trains "$n"
        as_user kill -KILL "$(processes train)"
    done
    wait_for 60 ended_as FAILED
    [[ $(fit_json | json_value 's["reason"]') == "the training: it was lost with its node or its replica, 2 times" ]]
}

@test "the leader is killed while a fit goes on: the next one has it end well" {
    data led F until "$TB_WORK/led"
    begin led
    wait_for 30 acts fit
    term=$(show_json "$job" | json_value 's["term"]')
    as_user kill -KILL "$(agent_of "$job" "$(show_json "$job" | json_value 's["leader"]')")"
    led_on() { (($(show_json "$job" | json_value 's["term"]') > term)); }
    wait_for 60 led_on
    go_on led
    wait_for 60 ended_as SUCCESS
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C D E F" ]]
    wait_for 40 serves_all "$(current)" 2
}

@test "no request has failed meanwhile" {
    end_load 500
}

# refused STATUS TEXT ARGUMENT...: one line says why.
refused() {
    run -"$1" as_user selastic fit "${@:3}"
    echo "$output"
    ((${#lines[@]} == 1))
    [[ $output == *"$2"* ]]
}

@test "what is wrong has one line" {
    data good X
    refused 1 "there is no service 'nobody' of yours" start nobody --data="$TB_WORK/data/good"
    refused 1 "--data=/nonexistent: No such file or directory" start "$SERVICE" --data=/nonexistent
    refused 1 "start: needs --data=DATA" start "$SERVICE"
    refused 1 "--data=-: an object is expected" start "$SERVICE" --data=- <<<'{"data": "/d", "model": "m"}'
    refused 1 "--targets=/nonexistent: No such file" start "$SERVICE" --data=- <<<"{\"data\": \"$TB_WORK/data/good\", \"targets\": \"/nonexistent\"}"
    refused 1 "--model=../x: a model has up to" start "$SERVICE" --data="$TB_WORK/data/good" --model=../x
    as_user sh -c "printf '{\n\n\n\n\n\n  \"a\": ,\n}' >$TB_WORK/data/torn.json"
    refused 1 "torn.json: line 7" start "$SERVICE" --data="$TB_WORK/data/good" --config="$TB_WORK/data/torn.json"
    refused 1 "configs/other.json: No such file" start "$SERVICE" --data="$TB_WORK/data/good" --config=other
    refused 2 "--from=7: write the name of a state" start "$SERVICE" --data=x --from=7
    refused 2 "--within=fit=soon: write start=, fit= or target= and a time" start "$SERVICE" --data=x --within=fit=soon
    refused 2 "the commands are start, show, list, log and cancel" stop "$SERVICE"
    refused 2 "'x' is no fit: a fit has a number" show "$SERVICE" x
    [[ $(as_user selastic fit list nobody) == "the service has had no fits" ]]
    refused 3 "there is no fit 99" show "$SERVICE" 99
    run -1 fit good --from=000099
    [[ $output == *"FAILED: --from=000099: "* ]]
}

@test "the job ends in the middle of a fit: the next job of the service goes on with it" {
    data last G until "$TB_WORK/last"
    begin last
    wait_for 30 acts fit
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    go_on last
    next=$(submit -N2 --exclusive -t 30 --wrap "srun elasticrun --roles=$TB_WORK/fit.yaml")
    echo "$next" >"$TB_WORK/job"
    wait_for 100 ended_as SUCCESS
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C D E F G" ]]
    [[ $(partials) == 0 ]]
    (($(find "$TB_WORK/models/m" -maxdepth 1 -name '0*' | wc -l) <= 4))
    as_user scancel "$next"
    wait_for 30 job_ended "$next"
}
