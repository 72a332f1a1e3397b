#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# How replicas come to the state of a fit, besides `replace: rolling` (fit.bats): `all` and `load`.
# Takes 30 s

load helpers
load elastic
load roles
load serve
load fit

setup_file() {
    export SERVICE=fr$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 1 --cpus-per-node 8
}

teardown_file() {
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || { tail -n 60 "$TB_WORK"/*.out; as_user selastic fit list "$SERVICE"; }
    cancel_all
}

# begin_service REPLACE: its job, with three servers; $job.
begin_service() {
    fit_file "$1" 3 'within: {start: 600s, fit: 600s, target: 600s}' "replace: $1"
    job=$(submit -N1 --exclusive -t 30 --wrap "srun elasticrun --roles=$TB_WORK/$1.yaml")
    wait_for 40 runs_it
}

# Lines "PROCESS VERSION" of the replicas that are ready, by their answers.
answers() {
    local at
    for at in $(replicas_of m); do
        echo "$(curl -s -m 5 "http://$at/ready") $(curl -s -m 5 "http://$at/m")"
    done | sort
}

# serve_all VERSION: three replicas do.
serve_all() { [[ $(answers 2>/dev/null | cut -d ' ' -f 2 | tr '\n' ' ') == "$1 $1 $1 " ]]; }

# watch_table FILE OLD: how many replicas that are ready serve OLD, and another version, until FILE.end
# is there, and once more then: a line each time that it is another number. A look in which a replica
# has ended does not count.
watch_table() {
    local now last='' over=''
    until [[ $over ]]; do
        [[ ! -e $1.end ]] || over=yes
        now=$(answers 2>/dev/null | awk -v old="$2" '$2 == "" { torn = 1 } $2 == old { o++ } $2 != old { n++ }
            END { if (!torn) print o + 0, n + 0 }')
        [[ ! $now || $now == "$last" ]] || echo "$now"
        last=${now:-$last}
    done >"$1"
}

@test "replace: all: the first new replica serves alone, after all old ones have stayed until then" {
    begin_service all
    data first A
    fit first
    wait_for 20 serve_all 000001
    before=$(answers)
    data second B slow "$TB_WORK/turn"
    watch_table "$TB_WORK/seen" 000001 3>&- &
    wait_for 40 grep -qx '3 0' "$TB_WORK/seen"
    begin second --from=none
    go_on turn
    wait_for 60 grep -qx '0 1' "$TB_WORK/seen"
    go_on turn.all
    wait_for 60 ended_as SUCCESS
    touch "$TB_WORK/seen.end"
    wait $!
    cat "$TB_WORK/seen"
    wait_for 20 serve_all 000002
    [[ -z $(comm -12 <(cut -d ' ' -f 1 <<<"$before") <(answers | cut -d ' ' -f 1)) ]]
    [[ $(head -n 1 "$TB_WORK/seen") == "3 0" && $(tail -n 1 "$TB_WORK/seen") == "0 3" ]]
    grep -qx "0 1" "$TB_WORK/seen"
    # No old one goes before.
    run -1 grep -xE "[12] 0|0 0" "$TB_WORK/seen"
    [[ $(fit_json | json_value 's["count"]') == 3 ]]
    [[ $(as_user cat "$TB_WORK/models/m/000002/model") == B ]]
}

@test "replace: all: with a state that no server takes, there are as many replicas as before" {
    begin_service all
    wait_for 40 serve_all 000002
    data broken X broken
    run -1 fit broken
    [[ $output == *"2 new replicas in a row did not get ready" ]]
    wait_for 20 serve_all 000002
}

@test "replace: load: the same processes serve the new state" {
    begin_service load
    wait_for 40 serve_all 000002
    before=$(answers | cut -d ' ' -f 1)
    data third C
    fit third --from=000001
    latest=$(current)
    [[ $latest != 000002 ]]
    wait_for 20 serve_all "$latest"
    [[ $(answers | cut -d ' ' -f 1) == "$before" ]]
    [[ $(as_user cat "$TB_WORK/models/m/$latest/model") == "A C" ]]
}
