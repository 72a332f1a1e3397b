#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Fits whose training is a role of the job file: a gang of tasks, a server that is called, a world.
# Takes 50 s

load helpers
load elastic
load roles
load serve
load fit
load fit_roles

setup_file() {
    testbed_up --stock --nodes 2 --cpus-per-node 8
    roles_train_up
}

setup() { export SERVICE=fo$$$BATS_TEST_NUMBER; } # services outlive jobs and testbeds

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || { tail -n 60 "$TB_WORK"/*.out; as_user selastic fit list "$SERVICE"; }
    end_service
    rm -rf "$TB_WORK/models"
}

teardown_file() { testbed_down; }

@test "a gang trains: all tasks, or none; it begins once more if one is lost" {
    begin_service 1 1 "" "tasks], tasks: 3"
    data first A
    run -0 fit first
    [[ $(path_of) == "INITIAL > WAIT_FOR_START > WAIT_FOR_FIT > SUCCESS" ]]
    [[ $(as_user sh -c "cat $TB_WORK/models/m/000001/rank-*" | tr '\n' ' ') == "333" ]]
    [[ $(as_user selastic fit log "$SERVICE" | sort) == "trains tasks "[012]" 3 learner"* ]]
    data fails X fail 2
    begin fails
    failed "the training: task 2: exit status 93"
    wait_for 20 are_tasks 0
    data again B until "$TB_WORK/again"
    begin again
    starts() { [[ $(as_user selastic fit log "$SERVICE" | grep -c ^trains) == "$1" ]]; }
    wait_for 30 starts 3
    as_user kill -KILL "$(pgrep -u "$TB_USER" -f "^[^ ]*elastic-fit train $SERVICE" | tail -n 1)"
    wait_for 30 starts 6
    go_on again
    wait_for 60 ended_as SUCCESS
    [[ $(latest) == "A B" ]]
    wait_for 20 serves_all "$(current)" 1
    data long X until "$TB_WORK/never"
    begin long --within=fit=2s
    failed "WAIT_FOR_FIT: not done in time, after 2 s (fit)"
    wait_for 20 ready_are "$job" learner 0
}

@test "a server trains when it is called" {
    begin_service 1 1 ", call: /fit" 'server, "{port}"], ports: [http], ready: {http: /ready, every: 200ms}'
    data first A
    run -0 fit first
    [[ $(as_user selastic fit log "$SERVICE") == "called /fit first" ]]
    data later B later
    run -0 fit later
    [[ $(latest) == "A B" ]]
    data refused X refuse
    begin refused
    failed "the training: its server answered 500: no such base model"
    data dies X die
    begin dies
    failed "the training: its server: exit status 5"
    data drops X drop
    begin drops
    failed "the training: its server has not answered, and closed the connection"
    data long X until "$TB_WORK/never"
    begin long
    wait_for 30 acts fit
    # It is ready, and no route leads to it.
    learner=$(endpoints "$job" | sed -n 's/^learner-0 //p')
    [[ $learner == *" "* && $(servers) ]]
    run ! grep -w "${learner#* }" <(table)
    as_user selastic fit cancel "$SERVICE"
    wait_for 40 ended_as CANCELLED
    wait_for 20 are_tasks 0
    [[ $(latest) == "A B" ]]
}

@test "a world trains, and then its slots are those of the servers" {
    begin_service 2 6 "" "world], kind: world, nodes: 1, cpus: 6"
    [[ $(roles_json "$job" | json_value "[r['size'] for r in s['roles'] if r['name'] == 'learner'][0]") == "no fit needs it" ]]
    data fails X fail 0
    begin fails
    failed "the training: learner has ended with 93"
    data long X until "$TB_WORK/never"
    begin long
    wait_for 30 are_tasks 1
    wait_for 30 acts fit
    as_user selastic fit cancel "$SERVICE"
    wait_for 60 ended_as CANCELLED
    wait_for 20 are_tasks 0
    [[ $(partials) == 0 ]]
    # The world has the room of the second server, until it has trained.
    data first A
    run -0 fit first
    [[ $(latest) == A ]]
    wait_for 20 serves_all 000001 2
    grep -q "checkpoints .*/fit-3$" "$TB_WORK/$job.out"
    # Now it has none.
    begin first
    waits() { [[ $(fit_json | json_value 's["waits"]') == "a place for the training: the base has no room for it" ]]; }
    wait_for 30 waits
    as_user selastic fit cancel "$SERVICE"
    wait_for 40 ended_as CANCELLED
}
