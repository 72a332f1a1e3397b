# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For tests of fits of the service SERVICE, whose model is m. Load after serve.

# fit_file NAME REPLICAS [KEY...]: the programs of a service that trains, and its job file
# $TB_WORK/NAME.yaml. Each KEY is a line of `fit`.
fit_file() {
    cp "$TREE"/tests/system/{serve_program,fit_program}.py "$TB_WORK/"
    as_user mkdir -p "$TB_WORK/models" "$TB_WORK/data"
    cat >"$TB_WORK/$1.yaml" <<YAML
service: $SERVICE
models: {repository: $TB_WORK/models, every: 1s}
fit:
  run: [/usr/bin/python3, $TB_WORK/fit_program.py]
  stage: [/usr/bin/python3, $TB_WORK/fit_program.py, stage]
$(printf '  %s\n' "${@:3}")
roles:
  server:
    kind: shards
    replicas: $2
    run: [/usr/bin/python3, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 300s, every: 200ms}
    drain: {within: 5s}
    restart: {backoff: 200ms..1s}
    update: {max-surge: 1, max-unavailable: 0, fail-fast: 2}
    capacity: 10M
    window: 0
YAML
    chmod 0644 "$TB_WORK/$1.yaml"
}

# A job runs the service.
runs_it() { as_user selastic shard "$SERVICE" >/dev/null 2>&1; }

# data NAME WORDS...: what a model is trained on.
data() { as_user sh -c 'echo "$2" >"$1"' sh "$TB_WORK/data/$1" "${*:2}"; }

# go_on FILE...: what waits for these files goes on.
go_on() { as_user touch "${@/#/$TB_WORK/}"; }

# fit NAME OPTION...: a training on that data, which waits for its end.
fit() { as_user selastic fit start "$SERVICE" --model=m --data="$TB_WORK/data/$1" --wait "${@:2}"; }

# begin NAME OPTION...: the same, without.
begin() { as_user selastic fit start "$SERVICE" --model=m --data="$TB_WORK/data/$1" "${@:2}"; }

fit_json() { as_user selastic fit show "$SERVICE" "$@" --json; }

path_of() { fit_json "$@" | json_value '" > ".join(h["status"] for h in s["history"])'; }

ended_as() { [[ $(fit_json 2>/dev/null | json_value 's["status"]') == "$1" ]]; }
acts() { [[ $(fit_json 2>/dev/null | json_value 's["action"]') == "$1" ]]; }

current() { as_user readlink "$TB_WORK/models/m/current"; }

partials() { find "$TB_WORK/models" -name '*.partial' | wc -l; }

serves() { [[ $(as_user curl -s "http://$1/m") == "$2" ]]; }

# Lines "ADDRESS:PORT" of the replicas that are ready.
servers() {
    table |
        json_value "'\\n'.join(f'{r[\"address\"]}:{r[\"port\"]}' for x in s['shards'] for r in x['replicas'] if r['state'] == 'ready')"
}

# serves_all VERSION COUNT
serves_all() {
    local at count=0
    for at in $(servers); do
        serves "$at" "$1" || return 1
        count=$((count + 1))
    done
    ((count == $2))
}

# Processes of elastic-fit that run fits, or train, of this service.
processes() { pgrep -u "$TB_USER" -f "^[^ ]*elastic-fit $1 $SERVICE" || true; }

trains_nobody() { [[ -z $(processes train) ]]; }
