#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A service whose models are loaded when somebody asks the router for them, and go when nobody does.
# Takes 80 s

load helpers
load elastic
load roles
load serve

setup_file() {
    export SERVICE=d$$ # services outlive jobs and testbeds
    if [[ ! -x $(command -v haproxy) ]]; then skip "without haproxy"; fi
    testbed_up --stock --nodes 1 --cpus-per-node 8
    cp "$TREE"/tests/system/{light,serve_program}.py "$TB_WORK/"
    as_user mkdir "$TB_WORK/models"
    cat >"$TB_WORK/serve.yaml" <<YAML
service: $SERVICE
models: {repository: $TB_WORK/models, every: 1s}
roles:
  server:
    kind: shards
    shards: 1
    replicas: 1
    scale: {idle: 25s}
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 120s, every: 200ms}
    drain: {within: 5s}
    capacity: 10M
    window: 5m
YAML
    chmod 0644 "$TB_WORK/serve.yaml"
    model one 1 6000000
    model two 1 6000000
    submit -N1 --exclusive -t 60 --wrap "srun elasticrun --roles=$TB_WORK/serve.yaml" >"$TB_WORK/job"
    # shellcheck disable=SC2317 # wait_for calls it
    runs() { shard_json >/dev/null; }
    wait_for 40 runs
    begin_router
}

setup() {
    job=$(<"$TB_WORK/job")
    at=http://127.0.0.1:$(<"$TB_WORK/port")
}

teardown_file() {
    end_process "$TB_WORK/router.pid" TERM
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out; }

# status KEY: of the answer of the router.
status() { curl -s -o /dev/null -w '%{http_code}' "$at/$1"; }
has_status() { [[ $(status "$1") == "$2" ]]; }
no_shards() { [[ $(shard_json | json_value 'len(s["shards"])') == 0 ]]; }

# As a client does it that is told to come again.
served() {
    [[ $(curl -s -D "$TB_WORK/head" "$at/$1") == "$2" ]] && return
    grep -q '^HTTP/1.1 503' "$TB_WORK/head"
    grep -qix $'retry-after: 2\r' "$TB_WORK/head"
    return 1
}

@test "nobody has asked for a model: there is no replica; who asks is told to come again, and is served" {
    wait_for 40 has_status nobody 404
    no_shards
    routed
    wait_for 20 why_has one 'nobody asks for it'
    run -0 curl -s -i "$at/one"
    [[ $output == *"503"* && $output == *"etry-after: 2"* ]]
    wait_for 30 served one 000001
    routed one=shard_1
    [[ $(status nobody) == 404 ]]
}

@test "nothing has room for another model: the one that was not asked for the longest leaves" {
    wait_for 40 served two 000001
    routed two=shard_1
    wait_for 20 why_has one 'nobody asks for it'
    [[ $(shard_json | json_value '*(x["name"] for x in s["shards"])') == shard_1 ]]
}

@test "another version of a model that is not loaded is there when somebody asks for it" {
    model one 2 6000000
    seen() { [[ $(shard_json | json_value '*(m["version"] for m in s["models"] if m["name"] == "one")') == 000002 ]]; }
    wait_for 20 seen
    wait_for 40 served one 000002
}

@test "nobody asks any more: all replicas go; the next request brings them back" {
    wait_for 60 no_shards
    without() { ! pgrep -u "$TB_USER" -f "$TB_WORK/serve_program.py" >/dev/null; }
    wait_for 20 without
    wait_for 30 served two 000001
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
}
