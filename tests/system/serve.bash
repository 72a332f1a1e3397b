# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For tests of a service, SERVICE, with its models in shards (doc/user/serve.md).

# end_process FILE SIGNAL: of which FILE has the number, if it is there.
end_process() {
    local pid
    [[ -s $1 ]] || return 0
    pid=$(<"$1")
    rm "$1"
    kill -"$2" "$pid" 2>/dev/null || return 0
    # shellcheck disable=SC2317 # wait_for calls it
    gone() { [[ ! -d /proc/$pid ]]; }
    wait_for 40 gone
}

# model NAME NUMBER BYTES [broken]: a version of it, as a state.
model() {
    local dir=$TB_WORK/models/$1/00000$2
    as_user mkdir -p "$dir"
    as_user sh -c "echo data >$dir/data; echo '{\"bytes\": $3}' >$dir/../model.json"
    [[ ! ${4:-} ]] || as_user touch "$dir/broken"
    as_user sh -c "echo '{\"format\": 1, \"files\": {\"data\": 5}}' >$dir/complete.json"
}

# begin_router [PORT]: of the service, in the background; $port is its port, and $TB_WORK/port has it.
begin_router() {
    port=${1:-$(free_port)}
    rm -f "$TB_WORK/router.own"
    echo "$port" >"$TB_WORK/port"
    as_user sh -c 'echo $$ >"$1/router.own"; exec selastic router "$2" --listen "127.0.0.1:$3" --no-tokens \
        --route-by=path:/ --run-dir="$1/router"' sh "$TB_WORK" "$SERVICE" "$port" >"$TB_WORK/router.out" 2>&1 3>&- &
    wait_for 20 test -s "$TB_WORK/router.own"
    cp "$TB_WORK/router.own" "$TB_WORK/router.pid"
}

# leader_file EXPRESSION: of leader.json of the service.
leader_file() {
    as_user sh -c "cat ~/.slurm-elastic/services/$SERVICE/leader.json" 2>/dev/null | json_value "$1" 2>/dev/null
}

# serves JOB: that job has the service, and its table is out.
serves() { [[ $(leader_file '(s["job"], s["serves"], s["ended"])') == "($1, True, False)" ]]; }

# Another job than that one does.
another_serves() { local job; job=$(leader_file 's["job"]') && [[ $job != "$1" ]] && serves "$job"; }

# Ends all jobs, and then forgets the service: a job that still runs would make its directory again.
end_service() {
    as_user scancel -u "$TB_USER" || true
    # shellcheck disable=SC2317 # wait_for calls it
    nobody_runs() { [[ ! $(as_user squeue -h -u "$TB_USER") ]]; }
    wait_for 30 nobody_runs
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
}

shard_json() { as_user selastic shard "$SERVICE" --json 2>/dev/null; }

table() { as_user cat "$(shard_json | json_value 's["dir"]')/routes.json"; }

# routed KEY=SHARD... : these routes there are, and no others.
routed() {
    [[ $(table | json_value '*sorted(r["key"] + "=" + r["shard"] for r in s["routes"])' 2>/dev/null) == "$*" ]]
}

# Lines "ADDRESS:PORT" of the replicas that requests with that key may go to.
replicas_of() {
    table | json_value "'\\n'.join(f'{r[\"address\"]}:{r[\"port\"]}' for s1 in s['shards'] for r in s1['replicas']
        if r['state'] == 'ready' and [s1['name']] == [x['shard'] for x in s['routes'] if x['key'] == '$1'])"
}

why() { shard_json | json_value "[m['why'] for m in s['models'] + s['refused'] if m['name'] == '$1'][-1]"; }
why_has() { [[ $(why "$1" 2>/dev/null) == *"$2"* ]]; }
