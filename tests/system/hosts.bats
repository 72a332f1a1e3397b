#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What other launchers read while a job changes its size: Horovod's discover_hosts.sh, host files of MPI; and scale_config.

load helpers
load elastic

READERS=(horovod mpirun files)
pids=()

setup_file() {
    command -v mpirun >/dev/null || { echo "mpirun is not installed: scripts/setup installs it" && return 1; }
    testbed_up --nodes 4
    patient
    cp "$TREE/tests/system/hosts.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() {
    touch "$TB_WORK/stop"
    cancel_all
    ((${#pids[@]} == 0)) || wait "${pids[@]}"
}

hosts() { as_user /usr/bin/python3 hosts.py "$@"; }

# read_right JOB FIRST: whether the readers have read what they should.
read_right() { history_json "$1" | hosts compare 2 "$2" "${READERS[@]/#/read-}" >"$TB_WORK/compared" 2>&1; }

# all_work JOB SIZE: whether all workers of the present generation have begun.
all_work() {
    size_is "$1" "$2" && [[ $(compgen -G "$TB_WORK/seen/worker-$(generation_of "$1")-*[0-9]" | wc -l) == $((2 * $2)) ]]
}

@test "Horovod's driver and Open MPI's mpirun see each generation whole; workers get the overrides for their number" {
    local reader first state size
    as_user mkdir seen
    as_user tee policy.json <<<'{"scale_config": {"2": {"lr": 0.1, "note": "half \"as\" large; $HOME"}, "8": {"lr": [4, {"x": null}]}}}'
    job=$(submit --elastic=1,2,4 --elastic-grow-delay=1 --elastic-config=policy.json --exclusive -t 30 --wrap \
        "srun elasticrun --nproc-per-node=2 /usr/bin/python3 hosts.py work seen")
    state=$TB_DIR/jobs/$TB_USER-$job
    wait_for 60 test -e "$state/hostfile.mpich" # the last one to be written
    for reader in "${READERS[@]}"; do
        hosts watch "$reader" "$state" "read-$reader" 3>&- &
        pids+=($!)
    done
    # How many generations there are until then depends on how fast extensions start.
    wait_for 90 all_work "$job" 4
    first=$(generation_of "$job")
    for size in 2 1 4; do
        wait_for 60 read_right "$job" "$first" || { cat "$TB_WORK/compared" && false; }
        as_user selastic resize "$job" "$size"
        wait_for 90 all_work "$job" "$size"
    done
    wait_for 60 read_right "$job" "$first" || { cat "$TB_WORK/compared" && false; }
    cat "$TB_WORK/compared"
    (($(generation_count "$job") >= first + 3))
    hosts scaled policy.json "$first" seen
}
