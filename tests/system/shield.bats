#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# libelastic-shield.so and the SIGTERM that Slurm itself sends. Other senders and programs: tests/unit/test_shield.c

load helpers
load elastic

# With linuxproc slurmstepd signals every process of the step.
setup_file() {
    testbed_up --stock --nodes 2 --proctrack linuxproc --grace 600
    # The programs end when they are told, and not before.
    sed -i 's/^KillWait=.*/KillWait=600/' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    script signalled.py <<'PY'
import os, signal, sys

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
with open(sys.argv[1], "a", buffering=1) as log:
    print("ready", file=log)
    while True:
        info = signal.sigwaitinfo([signal.SIGTERM])
        print(info.si_signo, info.si_code, info.si_pid, info.si_uid, file=log)
PY
    # A task of a step: its parent is slurmstepd. What it starts is what elasticrun would start for a replica.
    script step.sh <<SH
#!/bin/bash
log=$TB_WORK/log-\$SLURM_JOB_ID
mkdir "\$log"
trap : TERM
echo \$PPID >"\$log/stepd"
python3 $TB_WORK/signalled.py "\$log/signals" &
if unshare -Ur --pid --fork --kill-child true; then
    touch "\$log/elsewhere"
    unshare -Ur --pid --fork --kill-child python3 $TB_WORK/signalled.py "\$log/signals-elsewhere" &
fi
sleep 1000 &
echo \$! >"\$log/bare"
export ELASTIC_SHIELD=\$PPID LD_PRELOAD=$(find "$prefix" -name libelastic-shield.so)
sleep 1000 &
echo \$! >"\$log/sleep"
python3 -c 'import time; print("ready", flush=True); time.sleep(1000)' >"\$log/server" &
echo \$! >"\$log/python"
bash -c 'trap "exit 7" TERM; echo ready; while :; do sleep 0.2; done' >"\$log/trapped" &
echo \$! >"\$log/bash"
unset LD_PRELOAD
until [[ -e \$log/drain ]]; do sleep 0.1; done
for name in sleep python bash; do
    read -r pid <"\$log/\$name"
    kill "\$pid"
    wait "\$pid"
    echo "\$name \$?" >>"\$log/ends"
done
kill -KILL \$(jobs -p)
SH
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# start OPTION...: sets job and log.
start() {
    job=$(submit -N1 --exclusive "$@" --wrap "srun --overlap $TB_WORK/step.sh")
    log=$TB_WORK/log-$job
    wait_for 30 test -s "$log/bash"
    for name in signals server trapped; do wait_for 30 says "$log/$name" ready; done
    [[ ! -e $log/elsewhere ]] || wait_for 30 says "$log/signals-elsewhere" ready
}

pid_of() { cat "$log/$1"; }
has_ended() { [[ $(ps -o stat= -p "$(pid_of "$1")") == [ZX]* ]] || ! ps -p "$(pid_of "$1")" >/dev/null; }

all_have_ended() { [[ $(cat "$log/ends" 2>/dev/null) == $'sleep 143\npython 143\nbash 7' ]]; }

# Each has had the signal: the one without the library has ended by it. The others end when they are told.
only_the_bare_one_ends() {
    wait_for 60 has_ended bare
    wait_for 20 grep -qx "15 0 $(pid_of stepd) 0" "$log/signals"
    # In a pid namespace the sender has no pid, in a user namespace it is nobody. Not every machine allows users these.
    [[ ! -e $log/elsewhere ]] || wait_for 20 grep -qx '15 0 0 65534' "$log/signals-elsewhere"
    for name in sleep python bash; do
        run ! has_ended "$name"
    done
    as_user touch "$log/drain"
    wait_for 20 all_have_ended
}

@test "preempted: programs go on until they are told to end" {
    start -w n1 -p elastic
    rival=$(submit -w n1 --exclusive --wrap true)
    only_the_bare_one_ends
    wait_for 30 job_is "$rival" COMPLETED
}

@test "scancel: programs go on until they are told to end" {
    start -w n2
    as_user scancel "$job"
    only_the_bare_one_ends
}
