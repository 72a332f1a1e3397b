#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What programs of a job with roles report to each other through the job, over a takeover, too.
# Takes 30 s

load helpers
load elastic
load roles

COUNT=60

setup_file() {
    testbed_up --stock --nodes 2 --cpus-per-node 4
    cp "$TREE/tests/system/reporter.py" "$TB_WORK/"
    cat >"$TB_WORK/reports.yaml" <<YAML
roles:
  coordinator: {leads: yes, run: [sleep, "3000"]}
  # On each node a task, whose interface the programs of the test use.
  door: {tasks: 2, per-node: 1, api: yes, run: [sh, -c, 'echo "\$ELASTIC_API" >"\$LOG/\$SLURMD_NODENAME.api"; sleep 3000']}
YAML
    chmod 0644 "$TB_WORK/reports.yaml"
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out "$TB_HOME"/*.out
    cancel_all
}

lines_are() { [[ $(wc -l <"$1") == "$2" ]]; }

told_more_than() { (($(wc -l <"$log/told") > $1)); }

# The lines "NUMBER PATH" of all reports, in order.
expected() { seq 0 $((COUNT - 1)) | awk '{ print $1 + 1, "/data/" $1 }'; }

# on_n2 COMMAND...: not on the node of the leader, as a task of door there.
on_n2() {
    as_user srun --overlap --jobid="$job" -N1 -n1 -w n2 --quiet env LOG="$log" ELASTIC_API="$(<"$log/n2.api")" \
        ELASTIC_ROLE=door ELASTIC_REPLICA=door-0 "$@"
}

# post NAME REPORT
post() { on_n2 curl -s -d "$2" "$(<"$log/n2.api")/v1/roles/$1/report"; }

@test "what is reported is heard of once, though the leader is killed meanwhile" {
    job=$(run_roles reports.yaml 2)
    log=$TB_WORK/log-$job
    wait_for 30 ready_are "$job" door 1
    wait_for 10 test -s "$log/n2.api"
    on_n2 /usr/bin/python3 "$TB_WORK/reporter.py" follow >"$TB_HOME/programs.out" 2>&1 3>&- &
    on_n2 /usr/bin/python3 "$TB_WORK/reporter.py" tell "$COUNT" >>"$TB_HOME/programs.out" 2>&1 3>&- &
    wait_for 10 test -s "$log/told"
    wait_for 10 test -s "$log/followed"
    state=$(as_user selastic show "$job" --json | json_value 's["state_dir"]')
    [[ $(as_user stat -c %a "$state/reports.json") == 600 ]]

    # What is no report, or of nobody.
    run -0 post door/replicas/door-7 '{"path": "/x"}'
    [[ $output == *'"code":404,"message":"role door has no replica '*door-7* ]]
    run -0 post none/replicas/none-0 '{"path": "/x"}'
    [[ $output == *"\"code\":404,\"message\":\"there is no role 'none'"* ]]
    run -0 post door/replicas/door-0 '{"size": 5}'
    [[ $output == *'"code":400,"message":"the body is no report: path: '* ]]

    as_user timeout 900 selastic reports "$job" --follow --json >"$TB_HOME/followed" 2>"$TB_HOME/follow.err" 3>&- &
    follower=$!
    wait_for 10 test -s "$TB_HOME/followed"
    touch "$log/go"
    wait_for 20 told_more_than 3
    as_user kill -KILL "$(agent_of "$job" n1)"
    touch "$log/killed"
    wait_for 60 lines_are "$log/told" "$COUNT"
    diff "$log/told" <(seq 1 "$COUNT")
    led_on() { [[ $(show_json "$job" | json_value 's["term"]') == 1 ]]; }
    wait_for 20 led_on

    # Who follows, selastic and the file agree: each is there once, in order.
    wait_for 10 lines_are "$log/followed" "$COUNT"
    diff "$log/followed" <(expected)
    as_user selastic reports "$job" --json >"$TB_HOME/all"
    diff <(json_value "'\n'.join(f'{r[\"number\"]} {r[\"report\"][\"path\"]}' for r in s['reports'])" <"$TB_HOME/all") <(expected)
    [[ $(json_value "s['first'], s['last'], s['missed'], s['reports'][9]['replica'], s['reports'][9]['report']" <"$TB_HOME/all") == \
        "1 $COUNT 0 door-0 {'path': '/data/9', 'size': 9, 'loss': 0.5, 'tags': ['a b', 9]}" ]]
    wait_for 10 lines_are "$TB_HOME/followed" "$COUNT"

    # A table; some of them; and more than there are.
    run -0 as_user selastic reports "$job" door --after $((COUNT - 2))
    [[ ${#lines[@]} == 3 && ${lines[0]} =~ ^NUMBER ]]
    [[ ${lines[2]} =~ ^\ *$COUNT\ .*\ door-0\ +$((COUNT - 1))\ +/data/$((COUNT - 1))\ +\{\"loss\":0.5 ]]
    run -0 as_user selastic reports "$job" coordinator-0
    [[ ${#lines[@]} == 1 ]]
    run -1 as_user selastic reports "$job" --after 1000
    [[ $output == *"job $job: the last report has number $COUNT, not 1000"* ]]

    # A file that cannot be written is no success.
    as_user mv "$state" "$state.away"
    run -0 post door/replicas/door-0 '{"path": "/lost"}'
    [[ $output == *'"success":false,"code":500,'*reports.json* ]]
    as_user mv "$state.away" "$state"
    run -0 post door/replicas/door-0 '{"path": "/kept"}'
    [[ $output == *"\"success\":true,\"code\":0,\"message\":\"report $((COUNT + 1))\""* ]]

    # The end of the job is that of who follows.
    wait_for 10 lines_are "$TB_HOME/followed" $((COUNT + 1))
    as_user scancel "$job"
    wait "$follower"
    [[ $(tail -n 1 "$TB_HOME/followed" | json_value "s['report']['path']") == /kept ]]
}

@test "a world reports by the name of its role, and a job that is requeued keeps the reports" {
    cat >"$TB_WORK/world.yaml" <<YAML
roles:
  # In the second run it ends once there is another report.
  coordinator: {leads: yes, run: [bash, -c, '[[ \$SLURM_RESTART_COUNT ]] || exec sleep 3000; until grep -q 2 "\$LOG/told"; do sleep 0.1; done']}
  model: {kind: world, nodes: 1, cpus: 1, run: [python3, $TB_WORK/reporter.py, tell, "1"], api: yes}
YAML
    chmod 0644 "$TB_WORK/world.yaml"
    job=$(submit --requeue -N1 --exclusive -t 60 --wrap "
        export LOG=$TB_WORK/log-\$SLURM_JOB_ID
        mkdir -p \$LOG
        srun elasticrun --roles=$TB_WORK/world.yaml")
    log=$TB_WORK/log-$job
    wait_for 30 test -s "$log/told"
    run -0 as_user selastic reports "$job" model --json
    [[ $(json_value "[(r['number'], r['role'], r['replica'], r['report']['path']) for r in s['reports']]" <<<"$output") == \
        "[(1, 'model', 'model', '/data/0')]" ]]
    state=$(as_user selastic show "$job" --json | json_value 's["state_dir"]')
    as_user scontrol requeue "$job"
    wait_for 45 starts_again "$job"
    wait_for 60 job_is "$job" COMPLETED
    # The second run has gone on with the numbers.
    diff "$log/told" <(seq 1 2)
    [[ $(json_value "[(r['number'], r['replica']) for r in s['reports']]" <"$state/reports.json") == "[(1, 'model'), (2, 'model')]" ]]
}
