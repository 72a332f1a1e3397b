#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Agents, workers and daemons that die, stall or come back at the wrong moment.
# Takes 40 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 4
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

@test "one elasticrun after another in a job; what an earlier one has left in the queue is cancelled" {
    batch=$(script batch.sh <<SH
#!/bin/bash
srun elasticrun /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-first-\$SLURM_JOB_ID 5 0.2
# Refused as one too many until the extension of the first has gone.
until sbatch --parsable --begin=now+600 --comment=elastic-extension-of=\$SLURM_JOB_ID.0 --wrap true >$TB_WORK/left; do
    sleep 0.2
done
exec srun elasticrun --checkpoint-dir=$TB_WORK/second-\$SLURM_JOB_ID /usr/bin/python3 $TB_WORK/steps.py \
    $TB_WORK/log-\$SLURM_JOB_ID 100000 0.2
SH
    )
    job=$(submit --elastic=2:3 --elastic-grow-delay=2 --exclusive -t 20 "$batch")
    wait_for 30 left_is_cancelled
    wait_for 60 size_is "$job" 3
    enough "$job"
    steps_were_made_once "$job"
    [[ $(sizes_of "$job") == *3 ]]
    wait_for 20 nothing_is_left_of "$job"
}

left_is_cancelled() { [[ -s $TB_WORK/left ]] && job_is "$(cat "$TB_WORK/left")" CANCELLED; }

@test "output of extension nodes waits for who reads it, in bounded memory, and none is lost" {
    flood=$(script flood.py <<'PY'
#!/usr/bin/python3
import os, time
import slurm_elastic
slurm_elastic.init()
slurm_elastic.load_latest()
while os.environ["WORLD_SIZE"] == "2" and not slurm_elastic.elastic_event_detected():
    time.sleep(0.1)
last = os.environ["RANK"] == "2"
for block in range(1000 if last else 100):
    if last:
        os.write(1, (b"x" * 1023 + b"\n") * 64)
    else:
        time.sleep(0.1)
    if slurm_elastic.elastic_event_detected():
        break
PY
    )
    job=$(submit --elastic=2:3 --exclusive -t 20 --wrap \
        "srun elasticrun $flood | (until [ -e $TB_WORK/read ]; do sleep 0.1; done; grep -c xxxx >$TB_WORK/lines)")
    wait_for 40 size_is "$job" 3
    leader=$(agent_of "$job" n1)
    sleep 3 # in which nothing is read, and 64 MB could come
    resident=$(awk '/VmRSS/ { print $2 }' "/proc/$leader/status")
    as_user touch "$TB_WORK/read"
    wait_for 40 job_is "$job" COMPLETED
    echo "$resident KiB resident, $(cat "$TB_WORK/lines") lines"
    ((resident < 32768))
    [[ $(cat "$TB_WORK/lines") == 64000 ]]
}

# Slurm would start it again when the node answers or is DOWN. Until then it is COMPLETING, and counts against MAX.
@test "an idle node has crashed, and Slurm does not know it yet: its extension is cancelled, and another node joins" {
    "$TESTBED" crash --dir "$TB_DIR" n3
    job=$(train 2:3 100000 0.2)
    wait_for 60 size_is "$job" 3
    cat "$TB_WORK/$job.out"
    says "$TB_WORK/$job.out" 'extension job [0-9]+ ended before it could join \(Slurm could not start it on its nodes\)'
    as_user squeue -t all -o '%i %T %N %k'
    as_user squeue -h -t CG -o '%k' | grep -q "elastic-extension-of=$job\."
    enough "$job"
    on_testbed scontrol update nodename=n3 state=down reason=crashed
    wait_for 30 no_jobs
}
