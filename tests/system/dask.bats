#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Dask's adaptive cluster: its workers are replicas, and a preemptor takes some of them.
# Takes 35 s

load helpers
load elastic
load roles

has_dask() { "$PYTHON" -c 'import distributed' 2>/dev/null; }

setup_file() {
    has_dask || return 0
    testbed_up --nodes 2 --cpus-per-node 4 --grace 60
    cp "$TREE/tests/system/dask_program.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

setup() { has_dask || skip "distributed is not installed: scripts/setup installs it"; }

teardown() {
    has_dask || return 0
    [[ $BATS_TEST_COMPLETED ]] || grep -hv "^worker" "$TB_WORK"/*.out
    cancel_all
}

@test "adapt, 2,000 tasks, and a preemptor: no task that has finished is computed again" {
    cat >"$TB_WORK/dask.yaml" <<YAML
shared: .
roles:
  program:
    run: [$PYTHON, dask_program.py]
    leads: yes
    api: yes
    ports: [scheduler]
    ready: told
  worker:
    run: [$PYTHON, -m, distributed.cli.dask_worker, --scheduler-file, dask-worker.json,
          --name, "{replica}", --nthreads, "1", --no-nanny, --local-directory, /tmp]
    replicas: 0:7
    grow: ask
    pool: elastic
    after: [program]
    drain: {signal: CONT, within: 50s}
YAML
    chmod 0644 "$TB_WORK/dask.yaml"
    job=$(submit_roles dask.yaml 1)
    wait_for 40 test -e "$TB_WORK/log-$job/begun"
    # Three workers are in the base, and four in an extension. This job takes the extension away.
    wait_for 60 cluster_is_full
    rival=$(submit -N1 -c4 -t 5 --wrap 'sleep 300')
    wait_for 30 job_is "$rival" RUNNING
    as_user touch "$TB_WORK/log-$job/go"
    wait_for 60 test -e "$TB_WORK/log-$job/result"
    cat "$TB_WORK/log-$job/result"
    result=$(<"$TB_WORK/log-$job/result")
    [[ $result == "right=True finished_again=0 computed_again=0 "* && $result != *" left=0" ]]
    # close() has given the workers back, and the program ends the job.
    wait_for 30 job_is "$job" COMPLETED
    run ! grep -E 'KilledWorker|distributed.slurm_elastic' "$TB_WORK/$job.out"
}
