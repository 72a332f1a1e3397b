#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Some rows of the table of faults, and some of the soak. All of them: scripts/faults, scripts/soak.
# Time limit: 400 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=300
load helpers
load faults

setup_file() {
    if ((UID)) || ! unshare --net --mount --uts true; then
        skip "no network namespaces here"
    fi
    faults_up
}

teardown_file() { faults_down; }

teardown() { cancel_all; }

@test "live: a worker is stopped, one ends too early, one is killed while there is no slurmctld, a node is cut off" {
    on_nodes fault_table.py run --only "worker stopped, live, base" --only "worker exits with 0, live, base" --only "slurmctld down, worker killed, live" --only "node cut off, live, extension"
}

@test "random faults and changes of size end with the right model" {
    on_nodes soak.py --minutes 0.3 --seed 2
}
