#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Elastic jobs in a pool with wake=no: they grow onto nodes that are up, and Slurm powers no node up for them.
# Takes 45 s


load helpers
load elastic
load select
load cloud

# up OPTION...: each test has a testbed of its own, since they differ in the plugins of all daemons.
up() {
    testbed_up --nodes 1 --cloud spot=3 --resume-timeout 300 "$@"
    sed -i '/^\[pool spot\]/,$s/^wake = yes/wake = no/' "$TB_DIR/etc/elastic.conf"
    patient
    # What is up stays up until the test switches it off: it is idle for a moment, before the extension has it.
    sed -i 's/^SuspendTime=.*/SuspendTime=3600/' "$TB_DIR/etc/slurm.conf"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/slurm_client_probe" "$TB_WORK/probe"
    zone spot boot=1 pause=1
}

teardown() { testbed_down; }

boots() { grep -c ' boots' "$TB_DIR/log/cloud.out" || true; }

# How often the plugin has kept an extension off nodes; whether that was more often than COUNT.
times_kept_off() { log | grep -c 'keeps off [0-9]* nodes that would have to power up' || true; }
keeps_off() { (($(times_kept_off) > $1)); }

# A node that is up, and in use by a rigid job; a job that wants to grow by two nodes, and has an extension in the queue.
begin() {
    wait_for 60 all_off
    rigid=$(allocate -p spot -N1 --wait-all-nodes=1)
    booted=$(boots)
    id=$(train 1:3 100000 0.2 -- -p batch --elastic-pool=spot)
    wait_for 40 has_pending_extension "$id"
}

# It gets that node, and no other.
has_what_is_up() {
    as_user scancel "$rigid"
    wait_for 60 size_is "$id" 2
}

power() { as_user "$TB_WORK/probe" power spot obeyed; }

@test "with select/elastic_cons_tres: extensions wait for nodes that are up" {
    need_plugin select_elastic_cons_tres
    up --select
    on_testbed scontrol reconfigure # elastic.conf and slurm.conf are others
    on_testbed scontrol setdebug debug
    begin
    # Slurm's plugin sees to it: the leader has not asked.
    run -0 power
    [ "${lines[0]}" = saves=0 ]
    has_what_is_up
    wait_for 40 has_pending_extension "$id"
    wait_for 60 keeps_off $(($(times_kept_off) + 2))
    [ "$(boots)" -eq "$booted" ]
    enough "$id"
}

@test "without a plugin in slurmctld: extensions exclude nodes, hidden or not" {
    up
    sed -i '/^JobSubmitPlugins=/d' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    begin
    extension=$(extensions_of "$id")
    [ "$(job_field "$extension" ExcNodeList)" = 'n[3-4]' ]
    run -0 power
    [ "$output" = $'saves=1\nup=n2\nasleep=n[3-4]' ]
    # Never without n3 or n4: Slurm would power it up at once.
    as_user "$TB_WORK/probe" stay-off "$extension" n1,n3 n2
    [[ $(job_field "$extension" ExcNodeList) =~ ^n\[(1,3-4|3-4,1)\]$ ]]
    as_user "$TB_WORK/probe" stay-off "$extension" n3,n4 n1
    [ "$(job_field "$extension" ExcNodeList)" = 'n[3-4]' ]
    has_what_is_up
    wait_for 40 says_of_growth "$id" 'pool spot: all its other nodes are powered down and wake=no'
    [ "$(extensions_of "$id")" = "$extension" ]
    enough "$id"
    on_testbed scontrol update nodename=n2 state=power_down
    wait_for 60 all_off
    # Everybody sees them.
    sed -i '1aPrivateData=cloud' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    run -0 power
    [ "$output" = $'saves=1\nup=\nasleep=n[2-4]' ]
    id=$(train 1:3 100000 0.2 -- -p batch --elastic-pool=spot)
    wait_for 40 says_of_growth "$id" 'pool spot: all its other nodes are powered down and wake=no'
    [ -z "$(extensions_of "$id")" ]
    [ "$(boots)" -eq "$booted" ]
    enough "$id"
}
