#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The main path: jobs grow, give nodes back, share a cluster and end well.
# Takes 90 s

load helpers
load elastic

# Much longer than what a job that takes nodes waits for.
GRACE=300

setup_file() {
    testbed_up --nodes 8 --grace "$GRACE"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# The leader has heard of a step that all have made in the present world.
a_step_is_known() { (($(history_json "$1" | json_value 's["generations"][-1]["steps"] or 0') > 0)); }

@test "2:6 starts with 2 and reaches 6" {
    job=$(train 2:6 100000 0.2)
    wait_for 60 size_is "$job" 6
    wait_for 30 a_step_is_known "$job"
    enough "$job"
    run sizes_of "$job"
    [[ $output == 2*6 ]]
    steps_were_made_once "$job"
    wait_for 20 nothing_is_left_of "$job"
    # What a picture is drawn from: whose the nodes are, and how far training had come.
    history_json "$job" >"$BATS_TEST_TMPDIR/history"
    json_value '[(len(g["nodes"]), g["pools"].count(""), g["pools"].count("elastic")) for g in s["generations"]][::len(s["generations"]) - 1]' \
        <"$BATS_TEST_TMPDIR/history" >"$BATS_TEST_TMPDIR/pools"
    [[ $(cat "$BATS_TEST_TMPDIR/pools") == "[(2, 2, 0), (6, 2, 4)]" ]]
    # Each world's steps are what its rank 0 has made.
    for generation in 1 $(json_value 's["generations"][-1]["generation"]' <"$BATS_TEST_TMPDIR/history"); do
        steps=$(json_value "[g['steps'] for g in s['generations'] if g['generation'] == $generation][0]" <"$BATS_TEST_TMPDIR/history")
        made=$(grep -c '^step' "$TB_WORK/log-$job/rank-$generation-0")
        echo "generation $generation: $steps steps, rank 0 made $made" >&3
        ((steps > 0 && steps <= made))
    done
}

@test "a job in the higher tier gets its nodes long before grace ends, and they come back" {
    # 2 rigid nodes keep the cluster full, so that the rival needs 3 of the extensions' nodes.
    filler=$(submit -N2 --exclusive -t 30 --wrap 'srun sleep 1800')
    wait_for 20 job_is "$filler" RUNNING
    job=$(train 2:6 100000 0.2)
    wait_for 60 size_is "$job" 6
    wait_for 30 steps_made_by "$job" "$(generation_of "$job")"
    rival=$(submit -p batch -N3 --exclusive -t 20 --wrap "until [ -e $TB_WORK/rival.enough ]; do sleep 0.1; done")
    wait_for 60 job_is "$rival" RUNNING
    waited_less "$rival" $((GRACE / 3))
    job_is "$job" RUNNING || { cat "$TB_WORK/$job.out"; return 1; }
    wait_for 20 size_is "$job" 3
    goes_on "$job"
    as_user touch "$TB_WORK/rival.enough"
    wait_for 30 job_is "$rival" COMPLETED
    wait_for 60 size_is "$job" 6
    steps_were_made_once "$job"
    as_user scancel "$filler" "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "two elastic jobs and a rigid one share 8 nodes and all end well" {
    first=$(train 2:6 100000 0.3)
    second=$(train 1:5 100000 0.3)
    wait_for 60 cluster_is_full
    rigid=$(submit -p batch -N3 --exclusive -t 10 --wrap 'srun sleep 1')
    wait_for 120 job_is "$rigid" COMPLETED
    wait_for 60 cluster_is_full
    as_user touch "$TB_WORK/log-$first.enough"
    enough "$second"
    enough "$first"
    steps_were_made_once "$first"
    steps_were_made_once "$second"
    no_node_was_shared "$first" "$second"
    wait_for 20 nothing_is_left_of "$first"
    wait_for 20 nothing_is_left_of "$second"
}

@test "a script that knows nothing of us is stopped by SIGTERM and goes on from its own checkpoint" {
    job=$(train 2:4 100000 0.3 unaware)
    wait_for 60 size_is "$job" 4
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    enough "$job"
    # Every rank has a checkpoint of its own and repeats at most the step in flight.
    repeated=$(cat "$TB_WORK/log-$job"/rank-*-0 | awk '/^step/ { print $3 }' | sort | uniq -d | wc -l)
    ((repeated <= $(generation_count "$job")))
}

@test "selastic resize shrinks to exactly that size and grows again" {
    job=$(train 2:6 100000 0.3)
    wait_for 60 size_is "$job" 6
    run as_user selastic resize "$job" 4
    ((status == 0))
    wait_for 40 size_is "$job" 4
    run as_user selastic show "$job"
    [[ $output == *"held at 4"* ]]
    run as_user selastic resize "$job" 7
    ((status == 1))
    [[ $output == *"7"*"2:6"* ]]
    run as_user selastic resize "$job" +2
    ((status == 0))
    wait_for 40 size_is "$job" 6
    as_user scancel "$job"
    wait_for 20 nothing_is_left_of "$job"
    steps_were_made_once "$job"
}

@test "a script finds its unit, in worlds of whole units" {
    job=$(submit --elastic=2:4 --elastic-replica=2 --elastic-grow=ask --exclusive -t 60 --wrap \
        "srun elasticrun sh -c 'echo unit \$ELASTIC_UNIT of \$ELASTIC_UNITS, rank \$ELASTIC_UNIT_RANK of \$ELASTIC_UNIT_SIZE in \$ELASTIC_GENERATION; [ \$ELASTIC_UNITS = 2 ] || sleep 3000'")
    have_said() { (($(grep -c ' of 2 in 1$' "$TB_WORK/$job.out") == 2)); }
    wait_for 60 have_said
    as_user selastic resize "$job" 4
    wait_for 60 job_is "$job" COMPLETED
    sort "$TB_WORK/$job.out" | grep '^unit' >"$TB_WORK/units"
    cat "$TB_WORK/units"
    diff - "$TB_WORK/units" <<'END'
unit 0 of 1, rank 0 of 2 in 1
unit 0 of 1, rank 1 of 2 in 1
unit 0 of 2, rank 0 of 2 in 2
unit 0 of 2, rank 1 of 2 in 2
unit 1 of 2, rank 0 of 2 in 2
unit 1 of 2, rank 1 of 2 in 2
END
}
