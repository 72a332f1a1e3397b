#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The HTTP interface of a service, and who may use it: its owner. Models are asked with a token.
# Takes 25 s

load helpers
load elastic
load roles
load serve

setup_file() {
    export SERVICE=h$$ TOKEN=0123456789abcdef0123 # services outlive jobs and testbeds
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    testbed_up --stock --nodes 1 --cpus-per-node 8
    # A cluster on which everybody sees the jobs of all.
    sed -i '/^PrivateData=/d' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    cp "$TREE"/tests/system/{light,serve_program}.py "$TB_WORK/"
    as_user mkdir "$TB_WORK/models"
    as_user sh -c "umask 077; echo $TOKEN >$TB_WORK/tokens"
    cat >"$TB_WORK/serve.yaml" <<YAML
service: $SERVICE
models: {repository: $TB_WORK/models, every: 1h}
roles:
  server:
    kind: shards
    shards: 2
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 120s, every: 200ms}
    drain: {within: 5s}
    capacity: 10M
    window: 1h
YAML
    if [[ -x $(command -v haproxy) ]]; then
        echo "  front: {kind: router, route-by: 'path:/', tokens: $TB_WORK/tokens}" >>"$TB_WORK/serve.yaml"
    fi
    chmod 0644 "$TB_WORK/serve.yaml"
    model one 1 4000000
    submit -N1 --exclusive -t 60 --wrap "srun elasticrun --roles=$TB_WORK/serve.yaml" >"$TB_WORK/job"
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

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out; }

# asks METHOD PATH [ARGUMENT...]: prints the answer and, in a line of its own, the status. Arguments are
# of curl.
asks() { as_user curl -s -w '\n%{http_code}' -X "$1" "${@:3}" "$url$2"; }

# As as_user, for another user.
as_other() {
    mkdir -p "$TB_HOME/other"
    chown nobody "$TB_HOME/other"
    TB_WORK=$TB_HOME/other TB_USER=nobody TB_USER_HOME=$TB_HOME/other TB_USER_SHELL=/bin/sh \
        TB_AS="nobody nogroup none" as_user "$@"
}

@test "the owner sees service, shards and models, and has it look at its repository" {
    wait_for 40 routed one=shard_1
    as_user sh -c "echo \$\$ >proxy.pid; exec selastic proxy $job" >"$TB_HOME/proxy.out" 3>&- &
    wait_for 10 test -s "$TB_HOME/proxy.out"
    read -r url <"$TB_HOME/proxy.out"
    run -0 asks GET /v1/services
    [[ ${lines[1]} == 200 ]]
    [[ $(json_value "*[[x['service'], x['shards'], x['models'], x['job']] for x in s['data']['services']][0]" <<<"${lines[0]}") == "$SERVICE 1 1 $job" ]]
    run -0 asks GET /v1/shards
    [[ ${lines[1]} == 200 ]]
    [[ $(json_value "*(m['name'] + ' ' + m['has'] for m in s['data']['models'])" <<<"${lines[0]}") == "one 000001" ]]

    # The repository is looked at when somebody says so, and what has changed waits until then, too.
    model two 1 3000000
    run -0 asks POST /v1/shards/apply
    [[ ${lines[0]} == *"service $SERVICE looks at its repository"* && ${lines[1]} == 200 ]]
    seen() { [[ $(as_user curl -s "$url/v1/shards" | json_value "*(m['name'] for m in s['data']['models'])") == "one two" ]]; }
    wait_for 20 seen
    routed one=shard_1
    run -0 asks POST /v1/shards/flush
    [[ ${lines[1]} == 200 ]]
    wait_for 40 routed one=shard_1 two=shard_1
}

@test "a model is withdrawn and served by HTTP, by its name or by its key" {
    run -0 asks DELETE /v1/models/two
    [[ ${lines[0]} == *"model two is withdrawn"* && ${lines[1]} == 200 ]]
    as_user selastic flush "$SERVICE"
    wait_for 40 routed one=shard_1
    why_has two "it has been withdrawn"
    # It stays so when the repository is looked at again, and its record says it.
    as_user selastic flush "$SERVICE"
    [[ $(as_user cat "$(shard_json | json_value 's["dir"]')/record.json" | json_value "s['withdrawn']['two']") == two ]]
    routed one=shard_1
    run -0 asks PUT /v1/routes/two
    [[ ${lines[0]} == *"model two is served"* && ${lines[1]} == 200 ]]
    as_user selastic flush "$SERVICE"
    wait_for 40 routed one=shard_1 two=shard_1
    run -0 as_user selastic withdraw "$SERVICE" two
    run -0 as_user selastic serve "$SERVICE" two
    wait_for 40 routed one=shard_1 two=shard_1
    run -1 as_user selastic withdraw "$SERVICE" three
    [[ $output == *"there is no model 'three'"* ]]
}

# measured MODEL BYTES: its owner has measured it, and says so.
measured() {
    as_user sh -c "echo '{\"bytes\": $2}' >$TB_WORK/models/$1/model.json"
    as_user selastic flush "$SERVICE"
}

bytes_of() { shard_json | json_value "*(x['bytes'] for x in s['shards'] if x['name'] == '$1')"; }

@test "a measured size takes the place of the predicted one; a model is moved by hand" {
    # Both have room in one shard, as far as was known.
    measured two 8000000
    wait_for 40 routed one=shard_1 two=shard_2
    [[ $(bytes_of shard_2) == 8000000 ]]
    has_no_room() {
        run -1 as_user selastic move "$SERVICE" two 1
        [[ $output == *"two needs 8000000 bytes, and shard_1 has room for 6485760"* ]]
    }
    wait_for 20 has_no_room # until then the shards change
    measured two 2000000
    moves() { as_user selastic move "$SERVICE" two shard_1; }
    wait_for 20 moves
    wait_for 40 routed one=shard_1 two=shard_1
    gone() { [[ $(shard_json | json_value "*(x['name'] for x in s['shards'])") == shard_1 ]]; }
    wait_for 20 gone
    [[ $(bytes_of shard_1) == 6000000 ]]
    # How many updates and changes of routes that took.
    (($(shard_json | json_value "s['counts']['updates']") >= 3))
    [[ $(as_user curl -s "$url/v1/shards" | json_value "s['data']['counts']['routes'] > 3") == True ]]
    run -1 as_user selastic move "$SERVICE" two 7
    [[ $output == *"there is no shard_7"* ]]
    run -2 as_user selastic move "$SERVICE" two shard_x
    [[ $output == *"'shard_x' is not a shard; write a number from 1 to 10000, or shard_1"* ]]
}

@test "the models of a shard are said as a whole list" {
    run -0 as_user selastic place "$SERVICE" shard_1 two one
    [[ $output == *"shard_1 has these models, and no others" ]]
    # One that is not named is withdrawn.
    run -0 asks PUT /v1/shards/shard_1/routes -d '{"keys": ["one"]}'
    [[ ${lines[0]} == *'1 model comes to shard_1, or leaves it'* && ${lines[1]} == 200 ]]
    as_user selastic flush "$SERVICE"
    wait_for 40 routed one=shard_1
    why_has two 'it has been withdrawn'
    run -1 as_user selastic place "$SERVICE" 1 two
    [[ $output == *"there is no model 'two'"* || $output == *"model two is not served, or moves already"* ]]
    routed one=shard_1
    as_user selastic serve "$SERVICE" two
    as_user selastic flush "$SERVICE"
    wait_for 40 routed one=shard_1 two=shard_1
    run -0 asks PUT /v1/shards/shard_1/models -d '{"models": ["one", "two"]}'
    [[ ${lines[0]} == *'shard_1 has these models, and no others'* && ${lines[1]} == 200 ]]
    run -0 asks PUT /v1/shards/shard_7/models -d '{"models": ["one"]}'
    [[ ${lines[0]} == *'there is no shard_7'* && ${lines[1]} == 409 ]]
}

@test "another program is applied, and none that is no command" {
    local program
    program=$(as_user cat "$(shard_json | json_value 's["dir"]')/record.json" | json_value "s['brain']['application']")
    run -0 asks PUT /v1/services/program -d "$program"
    [[ ${lines[0]} == *'has that program already'* && ${lines[1]} == 200 ]]
    run -0 asks PUT /v1/services/program -d '{"run": ["serve", "{nothing}"]}'
    [[ ${lines[0]} == *'roles.server.run'* && ${lines[1]} == 409 ]]
    program=${program/\[/'["/usr/bin/env","RELEASE=2",'}
    run -0 asks PUT /v1/services/program -d "$program"
    [[ ${lines[0]} == *'replaces its replicas by ones with that program'* && ${lines[1]} == 200 ]]
    as_user selastic flush "$SERVICE"
    # shellcheck disable=SC2317 # wait_for calls it
    has_it() { [[ $(shard_json | json_value '"RELEASE=2" in s["program"]["run"] and s["program"]["have"] == 1') == True ]]; }
    wait_for 60 has_it
    routed one=shard_1 two=shard_1
}

@test "what is no request of it is refused with one line, and changes nothing" {
    local epoch
    epoch=$(as_user curl -s "$url/v1/shards" | json_value "s['data']['epoch']")
    run -0 asks PUT /v1/shards
    [[ ${lines[0]} == *'"success":false'*'allowed is GET'* && ${lines[1]} == 405 ]]
    run -0 asks GET /v1/shards/flush
    [[ ${lines[1]} == 405 ]]
    run -0 asks GET '/v1/shards?shard=1'
    [[ ${lines[0]} == *'known here is none'* && ${lines[1]} == 400 ]]
    run -0 asks GET /v1/shards/shard_1
    [[ ${lines[1]} == 404 ]]
    run -0 asks POST /v1/models/one
    [[ ${lines[0]} == *'allowed are GET, PUT, DELETE'* && ${lines[1]} == 405 ]]
    run -0 asks DELETE /v1/models/three
    [[ ${lines[0]} == *"there is no model 'three'"* && ${lines[1]} == 404 ]]
    run -0 asks PUT /v1/models/one -d '{"version": "000001"}'
    [[ ${lines[0]} == *"known here is shard"* && ${lines[1]} == 400 ]]
    run -0 asks PUT /v1/models/one -d '{"shard": "shard_7"}'
    [[ ${lines[0]} == *"there is no shard_7"* && ${lines[1]} == 409 ]]
    [[ $(as_user curl -s "$url/v1/shards" | json_value "s['data']['epoch']") == "$epoch" ]]
}

@test "another user has nothing: no connection, no command, no file" {
    local command path
    for path in /v1/services /v1/shards; do
        run curl -s "$url$path" # an empty reply, or a reset
        [[ $status == 5[26] && -z $output ]]
        run as_other curl -s "$url$path"
        [[ $status == 5[26] && -z $output ]]
    done
    run as_other curl -s -X POST "$url/v1/shards/flush"
    [[ $status == 5[26] && -z $output ]]
    for command in shard apply flush repack "move one 1" "withdraw one" handover proxy; do
        read -r -a words <<<"$command"
        run -1 as_other timeout 20 selastic "${words[0]}" "$job" "${words[@]:1}"
        [[ ${#lines[@]} == 1 && $output == "selastic: error: not permitted: job $job belongs to $TB_USER" ]]
    done
    run -1 as_other selastic shard "$SERVICE"
    [[ $output == *"there is no service '$SERVICE' of yours"* ]]
    run -0 as_other selastic services --json
    [[ $(json_value "len(s['services'])" <<<"$output") == 0 ]]
    run -2 as_other ls "$(shard_json | json_value 's["dir"]')"
}

@test "a router with tokens: none, another, and one that begins like it get 401" {
    grep -q front: "$TB_WORK/serve.yaml" || skip "without haproxy"
    front() { endpoints "$job" | sed -n 's|^front-0 \([^ ]*\) \([0-9]*\)$|http://\1:\2|p'; }
    wait_for 40 ready_are "$job" front 1
    with() { curl -s -o /dev/null -w '%{http_code}' "${@:2}" "$(front)/$1"; }
    answers_with_token() { [[ $(with one -H "Authorization: Bearer $TOKEN") == 200 ]]; }
    wait_for 20 answers_with_token
    [[ $(with one) == 401 ]]
    [[ $(with one -H 'Authorization: Bearer ') == 401 ]]
    [[ $(with one -H "Authorization: Bearer ${TOKEN%?}") == 401 ]]
    [[ $(with one -H "Authorization: Basic $TOKEN") == 401 ]]
    [[ $(with nobody) == 401 ]]
    [[ $(with "one?token=$TOKEN") == 401 ]]
}
