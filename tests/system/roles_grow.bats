#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Jobs of several programs: replicas in extension jobs, with what they need and where there is room.
# Takes 50 s

load helpers
load elastic
load roles

setup_file() {
    testbed_up --nodes 5 --cpus-per-node 4 --grace 60
    roles_up
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out
    cancel_all
}

# Pids of all replicas, by name.
pids() {
    local name
    for name in $(as_user selastic replicas "$1" --json | json_value "' '.join(r['name'] for r in s['replicas'] if r['state'] == 'ready')"); do
        echo "$name $(pid_of "$1" "$name")"
    done
}

# extension_nodes JOB ROLE: "JOB NODES CPUS" of each extension that runs.
extension_nodes() { as_user squeue -h -t RUNNING -n "wrap+$2" -o '%i %D %C'; }

@test "replicas run in extensions; a preempted one is drained, and no other pid changes" {
    job_file grow.yaml <<'YAML'
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 1:8
    cpus: 2
    pool: elastic
    ports: [http]
    ready: {http: /healthz, within: 120s, every: 200ms}
    drain: {within: 50s}
YAML
    job=$(submit_roles grow.yaml 1)
    wait_for 40 ready_are "$job" server 8
    each_answers "$job"
    # Each extension is on one node, with the CPUs of its replicas.
    [[ $(extension_nodes "$job" server | awk '{print $2, $3}' | sort | uniq -c | tr -s ' ') == *"3 1 4"* ]]
    before=$(pids "$job")
    # A job of the higher tier takes a node of it.
    rival=$(lasting -N1 -c4)
    drained=$(find "$TB_WORK/log-$job" -name "*.drained" | wc -l)
    ((drained >= 1 && drained <= 2))
    kept=$(pids "$job")
    [ "$(comm -12 <(sort <<<"$before") <(sort <<<"$kept") | wc -l)" = $((9 - drained)) ]
    # They come back when the node does.
    over "$rival"
    wait_for 40 ready_are "$job" server 8
    # A smaller role gives its extensions back.
    run -0 as_user selastic scale "$job" server=1
    wait_for 20 ready_are "$job" server 1
    wait_for 20 eval "[[ \$(as_user squeue -h -o %i -t RUNNING,COMPLETING,PENDING | grep -vc \"^$job\$\") == 0 ]]"
    # A replica with needs of its own gets an extension with these.
    as_user sh -c "echo \$\$ >proxy.pid; exec selastic proxy $job" >"$TB_HOME/proxy.out" 3>&- &
    wait_for 10 test -s "$TB_HOME/proxy.out"
    run -0 as_user curl -s -d '{"count": 1, "cpus": "3.5", "memory": "10Mi"}' \
        "$(head -n 1 "$TB_HOME/proxy.out")/v1/roles/server/replicas"
    [[ $output == *'"success":true'*"server: 2 replicas (was 1): 1 asked for, 0 started, 1 waits"* ]]
    wait_for 40 ready_are "$job" server 2
    [[ $(extension_nodes "$job" server | awk '{print $2, $3}') == "1 4" ]]
    as_user kill "$(<"$TB_WORK/proxy.pid")"
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 40 job_is "$job" COMPLETED
    wait_for 30 nothing_is_left_of "$job"
}

@test "a gang on several nodes has an extension of its own" {
    job_file gang.yaml <<'YAML'
  pair: {run: [PROGRAM, gang], replicas: 0:1, tasks: 4, per-node: 2, cpus: 2, pool: elastic, ready: told, grow: ask}
  server: {run: [PROGRAM, serve, "{port}"], replicas: 0:12, pool: elastic, ports: [http], grow: ask}
YAML
    job=$(submit_roles gang.yaml 2)
    wait_for 20 ready_are "$job" coordinator 1
    as_user selastic scale "$job" pair=1
    wait_for 20 ready_are "$job" pair 1
    [[ $(extension_nodes "$job" pair) == *" 2 8" ]]
    # The base has room for seven, and the only other node for four.
    as_user selastic scale "$job" server=12
    wait_for 20 ready_are "$job" server 11
    one_waits() { [[ $(roles_json "$job" | json_value "[r['more'] for r in s['roles'] if r['name'] == 'server'][0]") == "1 more asked for" ]]; }
    wait_for 20 one_waits
    # When the gang ends, its extension goes back at once, and another one comes.
    as_user selastic scale "$job" pair=0
    wait_for 30 ready_are "$job" server 12
    [[ -z $(extension_nodes "$job" pair) ]]
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 30 nothing_is_left_of "$job"
}

@test "another node leads: the extensions that run are used again" {
    job_file over.yaml <<'YAML'
  server: {run: [PROGRAM, serve, "{port}"], replicas: 0:9, cpus: 2, pool: elastic, ports: [http], grow: ask}
YAML
    job=$(submit_roles over.yaml 3)
    wait_for 20 ready_are "$job" coordinator 1
    as_user selastic scale "$job" server=7
    wait_for 20 ready_are "$job" server 7
    old=$(extension_nodes "$job" server)
    [[ $old == *" 1 4" ]]
    before=$(pids "$job")
    "$TESTBED" crash --dir "$TB_DIR" n1
    wait_for 40 eval "[[ \$(as_user selastic show $job --json | json_value 's[\"term\"]') == 1 ]]"
    # The extension goes on, and another one stands in for the lost node.
    wait_for 40 ready_are "$job" server 7
    grep -qx "$old" <(extension_nodes "$job" server)
    [[ $(extension_nodes "$job" server | wc -l) == 2 ]]
    # Replicas on the other nodes have gone on.
    [ "$(comm -12 <(sort <<<"$before") <(pids "$job" | sort) | wc -l)" -ge 6 ]
    # What the leader before has asked for goes back as well.
    as_user selastic scale "$job" server=1
    wait_for 20 eval "[[ -z \$(extension_nodes $job server) ]]"
    wait_for 10 ready_are "$job" server 1
    "$TESTBED" boot --dir "$TB_DIR" n1
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 40 nothing_is_left_of "$job"
}
