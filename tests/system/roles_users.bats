#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Two jobs with roles, of two users, on one node: neither gets at the other one.

load helpers
load elastic
load roles

setup_file() {
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    testbed_up --stock --nodes 1 --cpus-per-node 8
    patient
    # A cluster on which everybody sees the jobs of all.
    sed -i '/^PrivateData=/d' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    for directory in "$TB_WORK" "$TB_HOME/other"; do
        mkdir -p "$directory"
        cp "$TREE"/tests/system/{light,replica}.py "$directory/"
        sed "s|PROGRAM|/usr/bin/python3, -S, $directory/replica.py|" >"$directory/users.yaml" <<'YAML'
roles:
  coordinator: {leads: yes, run: [PROGRAM, lead]}
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 1:4
    grow: ask
    ports: [http, data, more]
    api: yes
    ready: {http: /healthz, within: 120s, every: 200ms}
YAML
    done
    chmod 0700 "$TB_WORK" "$TB_HOME/other"
    chown -R "$TB_USER" "$TB_WORK"
    chown -R nobody "$TB_HOME/other"
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out "$TB_HOME"/other/*.out
    on_testbed scancel --user=nobody
    cancel_all
}

# as_other COMMAND...: as_user for the other user.
as_other() {
    TB_WORK=$TB_HOME/other TB_USER=nobody TB_USER_HOME=$TB_HOME/other TB_USER_SHELL=/bin/sh \
        TB_AS="nobody nogroup none" as_user "$@"
}

# begin WHO DIRECTORY: prints the job. Each has half of the node.
begin() {
    "$1" sbatch --parsable -N1 -n1 -c4 --mem=100 -t 60 -o "$2/%j.out" --wrap "
        export LOG=$2/log-\$SLURM_JOB_ID
        mkdir \$LOG
        srun elasticrun --roles=$2/users.yaml"
}

# servers WHO JOB: lines "NAME ADDRESS PORT..." of those that are ready.
servers() {
    "$1" selastic replicas "$2" server --json 2>/dev/null | json_value "'\n'.join(
        ' '.join([r['name'], t['address'], *map(str, t['ports'].values())])
        for r in s['replicas'] if r['state'] == 'ready' for t in r['tasks'])" 2>/dev/null
}

has_servers() { [[ $(servers "$1" "$2" | wc -l) == "$3" ]]; }

# variable DIRECTORY JOB NAME: what a server of the job finds in its environment.
variable() {
    local pid
    pid=$(cat "$(find "$1/log-$2" -name 'server-0.0.*' ! -name '*.*.*.*' | head -n 1)")
    tr '\0' '\n' <"/proc/$pid/environ" | sed -n "s/^$3=//p"
}

# refused_of WHO JOB OWNER: each command for the job of the other user is refused with one line.
refused_of() {
    local command
    for command in roles replicas "scale server=2" "fail server-0" "remove server-0" endpoints reports proxy show \
        shard apply flush repack handover; do
        # shellcheck disable=SC2086 # a list of words
        set -- "$1" "$2" "$3" $command
        run -1 "$1" timeout 300 selastic "$4" "$2" "${@:5}"
        [[ ${#lines[@]} == 1 && $output == "selastic: error: not permitted: job $2 belongs to $3" ]] ||
            { echo "$command: $output"; return 1; }
    done
    run -1 "$1" selastic logs "$2"
    [[ ${#lines[@]} == 1 && $output == *"$2.out: Permission denied" ]]
}

@test "their ports differ, and each is closed to the other" {
    mine=$(begin as_user "$TB_WORK")
    theirs=$(begin as_other "$TB_HOME/other")
    wait_for 30 has_servers as_user "$mine" 1
    wait_for 30 has_servers as_other "$theirs" 1
    # Both grow at the same time.
    as_user selastic scale "$mine" server=3 &
    as_other selastic scale "$theirs" server=3
    wait $!
    wait_for 30 has_servers as_user "$mine" 3
    wait_for 30 has_servers as_other "$theirs" 3

    # 18 ports, each of one task, which is whose it says.
    { servers as_user "$mine" && servers as_other "$theirs"; } >"$TB_HOME/servers"
    [[ $(cut -d' ' -f3- "$TB_HOME/servers" | tr ' ' '\n' | sort -u | wc -l) == 18 ]]
    for who in "as_user $mine" "as_other $theirs"; do
        # shellcheck disable=SC2086 # two words
        servers $who >"$TB_HOME/mine"
        while read -r name address port _; do
            [[ $(as_user curl -sf "http://$address:$port/") == "$name.0."* ]]
        done <"$TB_HOME/mine"
    done
    run ! grep -h 'Address already in use' "$TB_WORK"/*.out "$TB_HOME"/other/*.out

    # The interface: each of its own, neither of the other, by TCP and by the socket.
    for whose in "as_user $TB_WORK $mine as_other $theirs" "as_other $TB_HOME/other $theirs as_user $mine"; do
        read -r owner directory job stranger other <<<"$whose"
        api=$(variable "$directory" "$job" ELASTIC_API)
        socket=$(variable "$directory" "$job" ELASTIC_API_SOCKET)
        inside() { "$1" srun --overlap --jobid="$2" -N1 -n1 --quiet curl -s -m 300 -o /dev/null -w '%{http_code}' "${@:3}"; }
        [[ $(inside "$owner" "$job" "$api/v1/roles") == 200 ]]
        [[ $(inside "$owner" "$job" --unix-socket "$socket" http://job/v1/roles) == 200 ]]
        run inside "$stranger" "$other" "$api/v1/roles"
        [[ $status != 0 && $output == *000* && $output != *200* ]]
        run inside "$stranger" "$other" --unix-socket "$socket" http://job/v1/roles
        [[ $status != 0 && $output == *000* && $output != *200* ]]
        # Files are of the owner alone, on the node and in the state directory; PMIx has modes of its own, inside.
        state=$("$owner" selastic show "$job" --json | json_value 's["state_dir"]')
        run -0 "$owner" srun --overlap --jobid="$job" -N1 -n1 --quiet find "$state" "${socket%/*}" \
            -name pmix -prune -o -perm /077 -print
        [[ -z $output ]]
        [[ $(stat -c %a "$state") == 700 ]]
        run -2 "$stranger" ls "$state"
    done

    refused_of as_other "$mine" "$TB_USER"
    refused_of as_user "$theirs" nobody
    # Nothing of it has changed anything.
    diff <(servers as_user "$mine" && servers as_other "$theirs") "$TB_HOME/servers"

    # The end of one is not that of the other.
    as_user scancel "$mine"
    wait_for 30 nothing_is_left_of "$mine"
    has_servers as_other "$theirs" 3
}
