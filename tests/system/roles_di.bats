#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Logic learners of DI-engine: aggregators with their gangs on several nodes, found by name, and
# over a takeover.
# Takes 20 s

load helpers
load elastic

setup_file() {
    testbed_up --stock --nodes 2 --cpus-per-node 6 --gpus-per-node 2
    cp "$TREE"/tests/system/di_{program,names}.py "$TB_WORK/"
    cat >"$TB_WORK/di.yaml" <<YAML
compat: di-engine
roles:
  coordinator: {leads: yes, run: [sleep, "3000"]}
  # Where clients ask: not on the node of the first leader.
  door: {run: [sh, -c, 'echo "\$ELASTIC_API" >"\$LOG/\$SLURMD_NODENAME.api"; exec sleep 3000'], tasks: 2, per-node: 1, api: yes}
  learner:
    run: [python3, $TB_WORK/di_program.py]
    replicas: 0:4
    ports: [http]
    grow: ask
  aggregator: {run: [python3, $TB_WORK/di_program.py], ports: [slave, master], ready: {tcp: yes}}
YAML
    chmod 0644 "$TB_WORK"/di*
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out
    cancel_all
}

# on_node COMMAND...: on the other node of the job.
on_node() { as_user srun --overlap --jobid="$job" -N1 -n1 -w n2 --quiet "$@"; }

# ask METHOD PATH BODY: the bytes of DI-engine's client.
ask() {
    on_node curl -s -m 300 -X "$1" -H 'Content-Type:' -d "$3" "$(<"$TB_WORK/log-$job/n2.api")/v1alpha1/replicas$2"
}

# seen WHO: the learners that a coordinator or an aggregator sees, "" for none.
seen() {
    ask GET "?namespace=$job&${1%-*}=$1" '{}' | json_value "' '.join(s['data']['learners'])" 2>/dev/null
}

# seen_are WHO NAMES: … are these, without their ports.
seen_are() { [[ $(seen "$1" | sed -E 's/:[0-9]+//g') == "$2" ]]; }

# starts: "NAME START" of all learners and aggregators.
starts() {
    as_user selastic replicas "$job" --json |
        json_value "' '.join('%s=%d' % (r['name'], r['start']) for r in s['replicas'] if r['role'] in ('aggregator', 'learner'))"
}

@test "an aggregator and its gang on two nodes: by name, reported, over a takeover, deleted" {
    local gang who start
    job=$(submit -N2 --exclusive --gpus-per-node=2 -t 60 --wrap "
        export LOG=$TB_WORK/log-\$SLURM_JOB_ID
        mkdir \$LOG
        srun elasticrun --roles=$TB_WORK/di.yaml")
    wait_for 30 test -s "$TB_WORK/log-$job/n2.api"
    gang="learner-0.$job learner-0.1.$job learner-0.2.$job"
    who="\"namespace\": \"$job\", \"coordinator\": \"coordinator-0\""

    run -0 ask POST "" "{\"learners\": {\"gpus\": \"3\", \"cpus\": 3, \"replicas\": 1}, $who}"
    [[ $output == '{"success":true,"code":0,"message":"successfully create replicas","data":'* ]]
    wait_for 30 seen_are coordinator-0 "aggregator-0.$job"
    wait_for 30 seen_are aggregator-0 "$gang"
    # Two of them on a node, as most nodes have two GPUs; their ports are in a row.
    run -0 seen aggregator-0
    [[ $output =~ learner-0\.$job:([0-9]+)\ learner-0\.1\.$job:([0-9]+)\  ]]
    ((BASH_REMATCH[2] == BASH_REMATCH[1] + 1))
    # Whichever node joined first has two of them.
    run -0 as_user selastic replicas "$job" learner --json
    run -0 json_value "[(t['node'], r['gpus'], r['owner']) for r in s['replicas'] for t in r['tasks']]" <<<"$output"
    echo "$output"
    [[ $output =~ ^\[\(\'(n[12])\',\ 1,\ \'aggregator-0\'\),\ \(\'(n[12])\',\ 1,\ .*,\ \(\'(n[12])\',\ 1,\ \'aggregator-0\'\)\]$ ]]
    [[ ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" && ${BASH_REMATCH[3]} != "${BASH_REMATCH[1]}" ]]

    # Clients find them by name.
    as_user selastic endpoints "$job" --format=hosts | awk -v job="$job" '{ print $0, $2 "." job }' >"$TB_WORK/hosts"
    # shellcheck disable=SC2046 # one word each
    run -0 on_node env LD_PRELOAD=libnss_wrapper.so NSS_WRAPPER_HOSTS="$TB_WORK/hosts" \
        /usr/bin/python3 "$TB_WORK/di_names.py" $(seen aggregator-0) $(seen coordinator-0)
    url=$(seen coordinator-0)
    [[ $output == "learner-0 0 3 2 0 $url"$'\n'"learner-0 1 3 2 0 $url"$'\n'"learner-0 2 3 1 2 $url"$'\n'"aggregator-0 0 1 1 0 $url" ]]

    # The aggregator reports a process: the gang starts anew, the aggregator does not.
    start=$(starts)
    run -0 ask POST /failed "{\"namespace\": \"$job\", \"coordinator\": \"aggregator-0\", \"collectors\": [], \"learners\": [\"learner-0.2\"]}"
    [[ $output == *'successfully recreate replicas'* ]]
    started_anew() { [[ $(starts) != "$start" && " $(starts) " == *" learner-0="* ]]; }
    wait_for 30 started_anew
    wait_for 30 seen_are coordinator-0 "aggregator-0.$job"
    [[ " $(starts) " == *" $(grep -o 'aggregator-0=[0-9]*' <<<"$start") "* ]]
    # The coordinator reports the aggregator: both do.
    start=$(starts)
    run -0 ask POST /failed "{$who, \"collectors\": [], \"learners\": [\"aggregator-0\"]}"
    wait_for 30 eval "[[ \$(seen coordinator-0) == aggregator-0.* && \" \$(starts) \" != *\" ${start% *} \"* && \" \$(starts) \" != *\" ${start#* } \"* ]]"

    # Another leader: the gang starts anew under its aggregator.
    as_user kill -KILL "$(agent_of "$job" n1)"
    run -0 ask GET "?namespace=$job&coordinator=coordinator-0" '{}'
    [[ $output == '{"success":true,'* ]]
    wait_for 60 eval "[[ \$(seen coordinator-0) == aggregator-* ]]"
    wait_for 30 eval '[[ $(seen "$(seen coordinator-0 | cut -d. -f1)" | wc -w) == 3 ]]'

    # A plain learner is deleted first, and alone.
    run -0 ask POST "" "{\"learners\": {\"gpus\": \"0\", \"replicas\": 1}, $who}"
    wait_for 30 eval "[[ \$(seen coordinator-0) == learner-*\ aggregator-* ]]"
    run -0 ask DELETE "" "{$who, \"learners\": {\"replicas\": 2}}"
    [[ $output == *'"successfully delete replicas: 1 of 2, as aggregators go last"'* ]]
    wait_for 30 eval "[[ \$(seen coordinator-0) == aggregator-*.$job:+([0-9]) ]]"
    run -0 ask DELETE "" "{$who, \"learners\": {\"replicas\": 1}}"
    [[ $output == *'"message":"successfully delete replicas","data":'* ]]
    wait_for 30 eval "[[ -z \$(starts) ]]"
}
