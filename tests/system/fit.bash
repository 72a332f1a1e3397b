# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For tests of fits of the service SERVICE, whose model is m. Load after serve.

# fit_file NAME REPLICAS [KEY...]: the programs of a service that trains, and its job file
# $TB_WORK/NAME.yaml. Each KEY is a line of `fit`.
fit_file() {
    cp "$TREE"/tests/system/{light,serve_program,fit_program}.py "$TB_WORK/"
    as_user mkdir -p "$TB_WORK/models" "$TB_WORK/data"
    cat >"$TB_WORK/$1.yaml" <<YAML
service: $SERVICE
models: {repository: $TB_WORK/models, every: 1s}
fit:
  run: [/usr/bin/python3, -S, $TB_WORK/fit_program.py]
  stage: [/usr/bin/python3, -S, $TB_WORK/fit_program.py, stage]
$(printf '  %s\n' "${@:3}")
roles:
  server:
    kind: shards
    replicas: $2
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
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

# begin_load VERSION: requests for the model all the time, by a router, once it serves that. Skips the test where it cannot be.
begin_load() {
    if [[ ! -x $(command -v haproxy) || ! -x $(command -v hey) ]]; then skip "without haproxy and hey"; fi
    begin_router
    wait_for 40 serves "127.0.0.1:$(<"$TB_WORK/port")" "$1"
    hey -z 60m -c 4 -q 15 -t 120 "http://127.0.0.1:$(<"$TB_WORK/port")/m" >"$TB_WORK/hey.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/hey.pid"
}

# end_load COUNT: of more requests than that none has failed.
end_load() {
    [[ -s $TB_WORK/hey.pid ]] || skip "without haproxy and hey"
    end_process "$TB_WORK/hey.pid" INT
    cat "$TB_WORK/hey.log"
    grep -q 'Error distribution' "$TB_WORK/hey.log" && return 1
    [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/hey.log") == 1 ]]
    (($(sed -n 's/.*\[200\][[:space:]]*\([0-9]*\) responses/\1/p' "$TB_WORK/hey.log") > $1))
    end_process "$TB_WORK/router.pid" TERM
}

# Processes of elastic-fit that run fits, or train, of this service.
processes() { pgrep -u "$TB_USER" -f "^[^ ]*elastic-fit $1 $SERVICE" || true; }

trains_nobody() { [[ -z $(processes train) ]]; }

# have_written_down JOB: Slurm writes down after some seconds what it knows. A job that it has not written down as running when it is
# killed is started twice, or forgotten.
have_written_down() {
    touch "$TB_WORK/asked"
    as_user scontrol update jobid="$1" comment="runs $SECONDS"
    wait_for 60 written_down
}

written_down() { [[ $TB_DIR/state/job_state -nt $TB_WORK/asked ]]; }

# ---- with a trainer of another user: TRAINER of nobody, whose files are below $TB_HOME/other --------

# begin_trainer SBATCH-OPTION...: a job of it, with the programs of fit_file fit, before which this comes. Its number is in
# $TB_HOME/other/job. No other job may have begun on the testbed.
begin_trainer() {
    # A cluster on which everybody sees the jobs of all.
    sed -i '/^PrivateData=/d' "$TB_DIR/etc/slurm.conf"
    # Access is told apart by the job's number: the epilogs of other testbeds of this user run beside this one.
    echo "FirstJobId=$((100000 + $$ % 100000))" >>"$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    mkdir -p "$TB_HOME/other/models"
    cp "$TREE"/tests/system/{light,serve_program,fit_program}.py "$TB_HOME/other/"
    sed -e "s|$TB_WORK|$TB_HOME/other|g; s|^service: .*|service: $TRAINER|" \
        -e "s|^  stage:|  allow: [$TB_USER]\n  stage:|" "$TB_WORK/fit.yaml" >"$TB_HOME/other/fit.yaml"
    # The other user passes the one directory, and does not read what is in it.
    chown "$TB_USER" "$TB_WORK"
    chmod 0711 "$TB_WORK"
    chmod 0700 "$TB_HOME/other" "$TB_WORK/models"
    chown -R nobody "$TB_HOME/other"
    as_other sbatch --parsable -N1 -n1 -c4 -t 60 --mem=200 --comment=mine -o "$TB_HOME/other/%j.out" "$@" \
        --wrap "srun elasticrun --roles=$TB_HOME/other/fit.yaml" >"$TB_HOME/other/job"
}

# as_another USER GROUP DIRECTORY COMMAND...: as_user for that user, whose files are in that directory.
as_another() {
    TB_WORK=$3 TB_USER=$1 TB_USER_HOME=$3 TB_USER_SHELL=/bin/sh \
        TB_AS="$1 $2 none" as_user "${@:4}"
}

as_other() { as_another nobody nogroup "$TB_HOME/other" "$@"; }

# What a model is trained on is nobody else's to read.
secret_data() {
    as_user sh -c 'umask 077; echo "$2" >"$1"' sh "$TB_WORK/data/$1" "${*:2}"
}

opens() { as_other cat "$1" >/dev/null 2>&1; }

# No path of the first user has an ACL, and the other user opens none of them.
all_closed() {
    ! opens "$TB_WORK/data/first" && ! opens "$TB_WORK/models/m/000001/model" &&
        [[ -z $(/usr/bin/python3 - "$TB_WORK" <<'PY'
import os, sys
for top, dirs, files in os.walk(sys.argv[1]):
    for path in [top, *(os.path.join(top, name) for name in files)]:
        if not os.path.islink(path) and any("posix_acl" in name for name in os.listxattr(path)):
            print(path)
PY
) ]]
}

trainer_is_free() { [[ -z $(pgrep -u nobody -f "^[^ ]*elastic-fit train $TRAINER") ]]; }
