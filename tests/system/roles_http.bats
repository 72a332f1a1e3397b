#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The HTTP interface of a job with roles: on its nodes, by selastic proxy, for clients of
# DI-orchestrator, and over a takeover.
# Takes 25 s

load helpers
load elastic

setup_file() {
    testbed_up --stock --nodes 2 --cpus-per-node 6
    cp "$TREE/tests/system/di_client.py" "$TB_WORK/"
    cat >"$TB_WORK/http.yaml" <<YAML
compat: di-engine
roles:
  coordinator: {leads: yes, run: [sleep, "3000"]}
  # A task on each node, which says what it finds.
  door:
    run: [sh, -c, 'curl -s "\$ELASTIC_API/v1/roles" >"\$LOG/\$SLURMD_NODENAME.roles";
                   echo "\$ELASTIC_API \$KUBERNETES_POD_NAME.\$KUBERNETES_POD_NAMESPACE" >"\$LOG/\$SLURMD_NODENAME.api"; sleep 3000']
    tasks: 2
    per-node: 1
    api: yes
  server: {run: [sleep, "3000"], replicas: 1:4, grow: ask}
  collector: {run: [sleep, "3000"], replicas: 0:4, grow: ask, ports: [http]}
YAML
    chmod 0644 "$TB_WORK/http.yaml"
}

teardown_file() { testbed_down; }

teardown() {
    [[ ! -s $TB_WORK/proxy.pid ]] || as_user kill "$(<"$TB_WORK/proxy.pid")"
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out
    cancel_all
}

# on NODE ARGUMENT...: curl on that node of the job, at its interface.
on() {
    local node=$1 api
    shift
    read -r api _ <"$TB_WORK/log-$job/$node.api"
    as_user srun --overlap --jobid="$job" -N1 -n1 -w "$node" --quiet \
        curl -s -m 300 -w '\n%{http_code}' "${@:1:$#-1}" "$api${!#}"
}

ready_are() {
    [[ $(as_user selastic roles "$job" --json 2>/dev/null |
        json_value "[r['ready'] for r in s['roles'] if r['name'] == '$1'][0]" 2>/dev/null) == "$2" ]]
}

cpus_of() { as_user selastic replicas "$job" "$1" --json | json_value "sorted(r['cpus'] for r in s['replicas'])"; }
is_listed() { as_user selastic replicas "$job" server | grep -qw "$1"; }

@test "tasks, selastic proxy and a takeover" {
    job=$(submit -N2 --exclusive -t 60 --wrap "
        export LOG=$TB_WORK/log-\$SLURM_JOB_ID
        mkdir \$LOG
        srun elasticrun --roles=$TB_WORK/http.yaml")
    wait_for 30 ready_are server 1
    wait_for 10 test -s "$TB_WORK/log-$job/n2.api"
    wait_for 10 test -s "$TB_WORK/log-$job/n1.api"

    # What a task of each node has been told.
    for node in n1 n2; do
        [[ $(json_value "s['success'], s['data']['job'], [r['name'] for r in s['data']['roles']]" \
            <"$TB_WORK/log-$job/$node.roles") == "True $job ['coordinator', 'door', 'server', 'collector']" ]]
    done

    grep -qx 'http://127[^ ]* '"door-0.$job" "$TB_WORK/log-$job/n2.api"

    # It grows, a replica goes by name, and what cannot be is refused.
    run -0 on n2 -X PATCH -d '{"replicas": 3}' /v1/roles/server
    [[ $output == *"server: 3 replicas (was 1): 2 asked for, "*$'\n'200 ]]
    wait_for 15 ready_are server 3
    run -0 on n1 -X DELETE /v1/roles/server/replicas/server-1
    [[ $output == *"server-1 goes; server: 2 replicas (was 3)"*$'\n'200 ]]
    wait_for 15 eval "! is_listed server-1"
    is_listed server-0
    is_listed server-2
    # One that needs more than the job file says.
    run -0 on n2 -X POST -d '{"count": 1, "cpus": "1.5", "memory": "20Mi"}' /v1/roles/server/replicas
    [[ $output == *"server: 3 replicas (was 2): 1 asked for, "*$'\n'200 ]]
    wait_for 15 ready_are server 3
    [[ $(cpus_of server) == "[1, 1, 2]" ]]
    run -0 on n1 -X PATCH -d '{"replicas": 5}' /v1/roles/server
    [[ $output == *"5 replicas of server: allowed are 1 to 4"*$'\n'409 ]]

    # On this machine, for this user only.
    as_user sh -c "echo \$\$ >proxy.pid; exec selastic proxy $job" >"$TB_HOME/proxy.out" \
        2>"$TB_HOME/proxy.err" 3>&- &
    proxy=$!
    wait_for 10 test -s "$TB_HOME/proxy.out"
    read -r url <"$TB_HOME/proxy.out"
    run -0 as_user curl -s "$url/v1/endpoints?role=server"
    [[ $output == *'"success":true'*'"replica":"server-2"'* ]]
    run -0 as_user curl -s "$url/metrics"
    [[ $output == *"elastic_role_target{jobid=\"$job\",role=\"server\"} 3"* ]]
    # Only while nothing else has changed.
    run -0 as_user curl -s -X PATCH -H 'If-Match: "0"' -d '{"replicas": 3}' "$url/v1/roles/server"
    [[ $output == *'"code":412,"message":"the epoch is '*', not 0"'* ]]
    epoch=$(as_user curl -s -I "$url/v1/roles" | sed -nE 's/^ETag: "([0-9]+)".*/\1/p')
    run -0 as_user curl -s -X PATCH -H "If-Match: $epoch" -d '{"replicas": 3}' "$url/v1/roles/server"
    [[ $output == *"server: 3 replicas, as before"* ]]
    as_user curl -s -I "$url/v1/roles" | grep -q "^ETag: \"$epoch\""
    run -1 as_user selastic remove "$job" coordinator-0
    [[ $output == *"the size of coordinator cannot be set: it leads the job"* ]]
    if ((UID == 0)); then
        run curl -s "$url/v1/roles" # an empty reply, or a reset
        [[ $status == 5[26] && -z $output ]]
    fi

    # A client of DI-engine. Then it looks, and adds one, while the leader is killed.
    as_user srun --overlap --jobid="$job" -N1 -n1 -w n2 --quiet python3 "$TB_WORK/di_client.py" \
        "$(cut -d' ' -f1 "$TB_WORK/log-$job/n2.api")" "$job" "$TB_WORK/log-$job/di" \
        >"$TB_HOME/di.out" 2>&1 3>&- &
    di=$!
    wait_for 30 test -e "$TB_WORK/log-$job/di.ready"

    # The leader is killed: a request waits for the next one, and is carried out.
    epoch=$(as_user curl -s "$url/v1/endpoints" | json_value "s['data']['epoch']")
    as_user kill -KILL "$(agent_of "$job" n1)"
    run -0 as_user curl -s -m 300 -X POST -d '{"count": 1}' "$url/v1/roles/server/replicas"
    [[ $output == *"server: 4 replicas (was 3): 1 asked for"* ]]
    run -0 on n2 /v1/roles/server
    [[ $output == *'"target":4'*$'\n'200 ]]
    wait_for 30 ready_are server 4
    [[ $(cpus_of server) == "[1, 1, 1, 2]" ]]
    wait "$di" || { cat "$TB_HOME/di.out"; false; }
    [[ $(cpus_of collector) == "[1, 2]" ]]
    (($(as_user curl -s "$url/v1/watch?after=$epoch" | json_value "s['data']['epoch']") > epoch))

    # The end of selastic is that of the port.
    as_user sh -c "echo \$\$ >other.pid; exec selastic proxy $job" >"$TB_HOME/other.out" 3>&- &
    wait_for 10 test -s "$TB_HOME/other.out"
    read -r other <"$TB_HOME/other.out"
    as_user curl -s "$other/healthz"
    as_user kill "$(<"$TB_WORK/other.pid")"
    wait_for 10 eval "! as_user curl -s $other/healthz"

    # … and the end of the job is that of selastic.
    as_user scancel "$job"
    wait_for 30 eval "! kill -0 $proxy"
    rm "$TB_WORK/proxy.pid"
    wait "$proxy"
    [[ $(<"$TB_HOME/proxy.err") == "selastic: job $job has ended"* ]]
    run ! as_user curl -s "$url/healthz"
}
