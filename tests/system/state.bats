#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The state directory: it may vanish while a job runs; whose it is; what piles up in it.

load helpers
load elastic

setup_file() {
    testbed_up --nodes 3
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }


# extension_script JOB: runs it as the batch script of that job, with an srun that says what it is told to say.
extension_script() {
    env PATH="$BATS_TEST_TMPDIR:$PATH" SLURM_JOB_ID="$1" SLURM_JOB_NUM_NODES=1 ELASTIC_RUN=/bin/true \
        ELASTIC_LOGS="$BATS_TEST_TMPDIR/state" "${@:2}" bash "$TREE/scripts/extension.sh"
}

@test "empty logs of extensions go, the last five stay, and those of live ones" {
    mkdir "$BATS_TEST_TMPDIR/state"
    # shellcheck disable=SC2016
    printf '#!/bin/bash\nprintf %%s "$SAY"\n' >"$BATS_TEST_TMPDIR/srun"
    chmod 0755 "$BATS_TEST_TMPDIR/srun"
    cd "$BATS_TEST_TMPDIR/state"
    for job in 3 4 5 6 7 8 9; do
        echo said >"extension-$job.log"
    done
    touch extension-10.log extension-11.log extension-13.log extension-x.log
    umask 022
    extension_script 12 ELASTIC_EXTENSIONS="3 11" SAY=hello
    run -0 ls
    [[ "${lines[*]}" == "extension-11.log extension-12.log extension-13.log extension-3.log extension-5.log \
extension-6.log extension-7.log extension-8.log extension-9.log extension-x.log" ]]
    [[ $(<extension-12.log) == hello ]]
    [[ $(stat -c %a extension-12.log) == 600 ]]
    # Nothing is written where a link in the place of its log leads.
    echo mine >"$BATS_TEST_TMPDIR/mine"
    ln -s ../mine extension-20.log
    extension_script 20 SAY=hello
    [[ $(<"$BATS_TEST_TMPDIR/mine") == mine && ! -L extension-20.log && $(<extension-20.log) == hello ]]
    # Without a place for its log it runs all the same.
    cd /
    rm -r "$BATS_TEST_TMPDIR/state"
    run -0 extension_script 14 SAY=hello
}

@test "a job whose state directory is removed grows; its files are its user's alone" {
    job=$(train 1:3 100000 0.2 -- --elastic-grow=ask)
    wait_for 60 steps_exceed "$job" 0
    wait_for 20 test -e "$TB_DIR/jobs/$TB_USER-$job"/hostfile.openmpi
    [[ $(stat -c %a "$TB_DIR/jobs/$TB_USER-$job"/hostfile.openmpi) == 600 ]]
    for pid in $(job_processes "$job"); do
        # One that ends meanwhile has none.
        umask=$(awk '/^Name:/ { own = $2 == "elasticrun" } own && /^Umask:/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || true
        [[ ${umask:-0077} == 0077 ]]
    done
    rm -r "$TB_DIR/jobs/$TB_USER-$job"
    as_user selastic resize "$job" 2
    wait_for 60 size_is "$job" 2
    # The script's checkpoint has made it again. Now only that can be written.
    chmod 0500 "$TB_DIR/jobs/$TB_USER-$job"
    as_user selastic resize "$job" 3
    # The files are those of the world before.
    is_large() { [[ $(show_json "$1" | json_value 's["size"]') == 3 ]]; }
    wait_for 60 is_large "$job"
    goes_on "$job"
    wait_for 20 says "$TB_WORK/$job.out" 'goes on without files in its state directory'
    [[ $(grep -c 'goes on without files in its state directory' "$TB_WORK/$job.out") == 1 ]]
    chmod 0700 "$TB_DIR/jobs/$TB_USER-$job"
}

@test "a job does not go on with the checkpoints of an older job of its number" {
    last=$(submit -t 1 --wrap true)
    next=$((last + 1))
    dir=$TB_DIR/jobs/$TB_USER-$next
    as_user mkdir -p "$dir/checkpoint"
    as_user tee "$dir/job.json" >/dev/null <<<'{"cluster": "'"$(on_testbed scontrol show config | sed -n 's/^ClusterName *= //p')"'",
        "job": '"$next"', "user": "'"$TB_USER"'", "restarts": 0, "submit": 1772366400, "first_submit": 1772366400}'
    # shellcheck disable=SC2016
    job=$(submit --elastic=1:1 -t 5 --wrap \
        'srun elasticrun sh -c "touch \$ELASTIC_CHECKPOINT_DIR/x"')
    [[ $job == "$next" ]]
    wait_for 30 says "$TB_WORK/$job.out" "$dir was of job $job of $TB_USER, submitted"
    [[ -d $(echo "$dir".old-*/checkpoint) ]]
    wait_for 30 test -e "$dir/checkpoint/x"
    as_user /usr/bin/python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["submit"] == r["first_submit"] > 1772366400' \
        "$dir/job.json"
}
