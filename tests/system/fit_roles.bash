# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For tests of fits whose training is a role of the job file, which runs fit_role.py. Load after fit.

roles_train_up() { cp "$TREE"/tests/system/{light,serve_program,fit_role}.py "$TB_WORK/"; }

# begin_service REPLICAS CPUS FIT LEARNER [SBATCH-OPTION...]: its job; the learner is fit_role.py MODE...; $job. Before srun it does
# $PRELOAD.
begin_service() {
    as_user mkdir -p "$TB_WORK/models" "$TB_WORK/data"
    cat >"$TB_WORK/$SERVICE.yaml" <<YAML
service: $SERVICE
models: {repository: $TB_WORK/models, every: 1s}
fit: {role: learner, within: {start: 600s, fit: 600s, target: 600s}$3}
roles:
  server:
    kind: shards
    replicas: $1
    cpus: $2
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 300s, every: 200ms}
    drain: {within: 5s}
    update: {max-surge: $((2 - $1)), max-unavailable: $(($1 - 1))}
    capacity: 10M
    window: 0
  learner: {run: [/usr/bin/python3, -S, $TB_WORK/fit_role.py, $4}
YAML
    # shellcheck disable=SC2034 # of the test
    job=$(submit -N2 --exclusive -t 30 "${@:5}" --wrap "${PRELOAD:-}srun elasticrun --roles=$TB_WORK/$SERVICE.yaml")
    wait_for 40 runs_it
}

# Tasks of the training that there are.
tasks() { pgrep -u "$TB_USER" -f "^/usr/bin/python3 -S $TB_WORK/fit_role.py" || true; }
are_tasks() { [[ $(tasks | wc -l) == "$1" ]]; }

# failed TEXT: the latest fit has.
failed() {
    wait_for 60 ended_as FAILED
    [[ $(fit_json | json_value 's["reason"]') == *"$1"* ]] || { fit_json && return 1; }
    [[ $(partials) == 0 ]]
}

latest() { as_user cat "$TB_WORK/models/m/current/model"; }
