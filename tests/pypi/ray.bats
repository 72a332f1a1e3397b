#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Ray's autoscaler: its nodes are replicas, and a preemptor takes some of them.
# Takes 70 s

load ../system/helpers
load ../system/elastic
load ../system/roles

RAY_PYTHON=$("$TREE/scripts/setup" --print-python 2>/dev/null) || true

has_ray() { [[ -n $RAY_PYTHON ]] && "$RAY_PYTHON" -c 'import ray' 2>/dev/null; }

setup_file() {
    has_ray || return 0
    testbed_up --nodes 2 --cpus-per-node 3 --grace 60
    patient
    cp "$TREE/tests/pypi/ray_program.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

setup() { has_ray || skip "ray is not installed: scripts/setup --python-env installs it"; }

teardown() {
    has_ray || return 0
    [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out
    cancel_all
}

@test "1, 4 and 2 workers, tasks and actors, and a preemptor: all results are right" {
    cat >"$TB_WORK/ray.yaml" <<YAML
shared: .
roles:
  program:
    run: [$RAY_PYTHON, ray_program.py]
    leads: yes
    api: yes
    ports: [head]
    ready: told
  worker:
    run: [$RAY_PYTHON, -m, slurm_elastic.ray, --finish, "5"]
    replicas: 1:4
    grow: ask
    pool: elastic
    after: [program]
    drain: {within: 30s}
YAML
    chmod 0644 "$TB_WORK/ray.yaml"
    job=$(submit_roles ray.yaml 1)
    # Tasks that wait have made the autoscaler ask for all of them.
    wait_for 90 test -e "$TB_WORK/log-$job/four"
    # Two workers are in the base, and the others in extensions. This job takes their node.
    as_user touch "$TB_WORK/log-$job/go"
    rival=$(lasting -N1 -c3)
    # The last tasks wait for this: so it was before the end.
    as_user touch "$TB_WORK/log-$job/taken"
    over "$rival"
    wait_for 100 test -e "$TB_WORK/log-$job/result"
    cat "$TB_WORK/log-$job/result"
    result=$(<"$TB_WORK/log-$job/result")
    [[ $result == "right=True computed=150 "* && $result != *" left=0" ]]
    # Nothing is to be done, and request_resources() keeps two.
    wait_for 60 grep -qx 2 "$TB_WORK/log-$job/alive"
    wait_for 20 ready_are "$job" worker 2
    as_user touch "$TB_WORK/log-$job/end"
    wait_for 40 job_is "$job" COMPLETED
    wait_for 10 nothing_is_left_of "$job"
}
