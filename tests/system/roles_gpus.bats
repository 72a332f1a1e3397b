#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Replicas on nodes with GPUs: each has its own, and no other one's.
# Takes 20 s

load helpers
load elastic
load roles

setup_file() {
    ((UID == 0)) || skip "only root makes device nodes"
    testbed_up --nodes 4 --gpus-per-node 4 --cpus-per-node 8
    patient
    roles_up
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out
    cancel_all
}

# gpus_of JOB: lines "NAME TASK NODE GPUS" of all tasks that run, as their environment says.
gpus_of() {
    as_user selastic replicas "$1" --json | json_value "'\n'.join(f'{r[\"name\"]} {t[\"task\"]} {r[\"start\"]} {t[\"node\"]}'
        for r in s['replicas'] if r['state'] == 'ready' for t in r['tasks'])" | while read -r name task start node; do
        printf '%s %s %s %s\n' "$name" "$task" "$node" \
            "$(tr '\0' '\n' <"/proc/$(<"$TB_WORK/log-$1/$name.$task.$start")/environ" | sed -n 's/^CUDA_VISIBLE_DEVICES=//p')"
    done
}

# each_has_its_own LINES: no two tasks of a node have the same GPU; a task of server has one, one of pair two, others none.
each_has_its_own() {
    /usr/bin/python3 - "$1" <<'PY'
import sys

seen, wanted = set(), {"server": 1, "pair": 2, "coordinator": 0, "tool": 0}
for line in sys.argv[1].splitlines():
    name, _task, node, *gpus = line.split(" ")
    gpus = [gpu for gpu in gpus[0].split(",") if gpu] if gpus else []
    assert len(gpus) == wanted[name.rpartition("-")[0]], line
    for gpu in gpus:
        assert (node, gpu) not in seen and 0 <= int(gpu) < 4, line
        seen.add((node, gpu))
PY
}

# start_of JOB NAME: the number of its present start.
start_of() {
    as_user selastic replicas "$1" --json |
        json_value "[r['start'] for r in s['replicas'] if r['name'] == '$2'][0]"
}

@test "replicas of two roles, and a gang on two nodes" {
    job_file gpus.yaml <<'YAML'
  pair:
    run: [PROGRAM, gang]
    replicas: 1:2
    grow: ask
    tasks: 2
    per-node: 1
    gpus: 2
    pool: elastic
    ready: told
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 2:8
    grow: ask
    gpus: 1
    ports: [http]
    pool: elastic
    ready: {tcp: yes, every: 200ms}
    restart: {backoff: 200ms..1s}
  tool: {run: [PROGRAM, serve, "{port}"], ports: [http], ready: {tcp: yes, every: 200ms}}
YAML
    # GPU 0 of n1 is somebody else's.
    submit -w n1 -N1 -n1 -c1 --gres=gpu:1 -t 60 --wrap 'sleep 3000'
    wait_for 30 nodes_are 1 mixed
    job=$(submit --elastic-roles="$TB_WORK/gpus.yaml" -w n1,n2 -N2 --ntasks-per-node=1 -c 6 --gres=gpu:3 -t 60 --wrap "
        export LOG=$TB_WORK/log-\$SLURM_JOB_ID
        mkdir \$LOG
        srun elasticrun")
    wait_for 30 ready_are "$job" server 2
    wait_for 20 ready_are "$job" pair 1
    wait_for 20 ready_are "$job" tool 1
    before=$(gpus_of "$job")
    echo "$before"
    each_has_its_own "$before"
    [[ $(wc -l <<<"$before") == 6 ]] # the coordinator, two servers, two tasks of the gang, the tool
    run ! grep -E ' n1 ([0-9],)*0(,|$)' <<<"$before"

    # The base is full: one that is replaced gets the GPU that is free again.
    start=$(start_of "$job" server-0)
    as_user kill -KILL "$(pid_of "$job" server-0)"
    wait_for 20 eval "[[ \$(start_of $job server-0) != $start ]]"
    wait_for 20 ready_are "$job" server 2
    after=$(gpus_of "$job")
    each_has_its_own "$after"
    [[ $(sort <<<"$after") == "$(sort <<<"$before")" ]]

    # More are for extensions, which ask for GPUs: two on each of two nodes for the gang, two for the servers.
    run -0 as_user selastic scale "$job" pair=2
    wait_for 40 ready_are "$job" pair 2
    run -0 as_user selastic scale "$job" server=4
    wait_for 40 ready_are "$job" server 4
    after=$(gpus_of "$job")
    echo "$after"
    each_has_its_own "$after"
    # The base has GPUs 0 to 2 of n2. Slurm 26.05 gives the extension of a server GPU 3 of n2.
    [[ $(wc -l <<<"$after") == 10 && $(grep -cE '^(pair-1 . n[34] |server-[23] . (n[34] |n2 3$))' <<<"$after") == 4 ]]
    for extension in $(extensions_of "$job"); do
        job_field "$extension" TresPerTask
    done >"$TB_HOME/asked"
    cat "$TB_HOME/asked" # gres:gpu:2 or, since 24.11, cpu=2,gres/gpu=2
    [[ $(grep -oE 'gpu[:=][0-9]+' "$TB_HOME/asked" | sed 's/.*[:=]//' | sort -u | xargs) == '1 2' ]]
}
