#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Fits in mode multi: a model of one user is trained by the service of another one, who can open
# what it needs for as long as it needs it.
# Takes 110 s

load helpers
load elastic
load roles
load serve
load fit

setup_file() {
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    export SERVICE=f$$ TRAINER=t$$ STRANGER=s$$
    testbed_up --nodes 2 --cpus-per-node 8
    fit_file fit 3 'within: {start: 600s, fit: 600s, target: 600s}'
    begin_trainer -N2 -n2 -c2 --requeue
    sed -i -e "s|^  run: \[/usr/bin/python3, -S, $TB_WORK/fit.*|  trainer: $TRAINER@nobody|; /^  stage:/d" "$TB_WORK/fit.yaml"
    # How many are replaced at a time is that of a fit in mode multi.
    sed -i "s/update: .*/update: {fail-fast: 2}/" "$TB_WORK/fit.yaml"
    begin_stranger
    chmod 0600 "$TB_WORK/fit.yaml"
    chown "$TB_USER" "$TB_WORK/fit.yaml"
    begin_job
}

setup() {
    job=$(<"$TB_WORK/job")
    trainer=$(<"$TB_HOME/other/job")
}

teardown_file() {
    end_process "$TB_WORK/hey.pid" INT
    end_process "$TB_WORK/router.pid" TERM
    on_testbed scancel --user=nobody,daemon || true
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || {
        find "$TB_HOME/other/.slurm-elastic/services/$TRAINER/guests" -type f -exec tail -v -n 5 {} + 2>/dev/null
        tail -n 40 "$TB_WORK"/*.out "$TB_HOME"/other/*.out
        as_user selastic fit show "$SERVICE"
        as_user selastic fit log "$SERVICE" | tail -n 5
        on_testbed squeue --all
    }
}

begin_job() {
    submit -N1 -n1 -c5 -t 60 --mem=200 --requeue --wrap "srun elasticrun --roles=$TB_WORK/fit.yaml" >"$TB_WORK/job"
}

data() { secret_data "$@"; }

# begin_stranger: the same service of a user whom the trainer does not allow. Its files are below $TB_HOME/stranger.
begin_stranger() {
    mkdir -p "$TB_HOME/stranger/models" "$TB_HOME/stranger/data"
    cp "$TREE"/tests/system/{light,serve_program}.py "$TB_HOME/stranger/"
    sed -e "s|$TB_WORK|$TB_HOME/stranger|g; s|^service: .*|service: $STRANGER|" "$TB_WORK/fit.yaml" \
        >"$TB_HOME/stranger/fit.yaml"
    (umask 077 && echo A >"$TB_HOME/stranger/data/first")
    chmod 0711 "$TB_HOME/stranger"
    chown -R daemon "$TB_HOME/stranger"
    as_stranger sbatch -N1 -n1 -c1 -t 60 --mem=100 -o "$TB_HOME/stranger/job.out" \
        --wrap "srun elasticrun --roles=$TB_HOME/stranger/fit.yaml"
}

as_stranger() { as_another daemon daemon "$TB_HOME/stranger" "$@"; }

comment_of_trainer() { on_testbed squeue -h -j "$trainer" -o %k; }

trains() { acts fit && as_user selastic fit log "$SERVICE" 2>/dev/null | grep -q '^trains'; }

trained_times() { [[ $(as_user selastic fit log "$SERVICE" 2>/dev/null | grep -c ^trains) == "$1" ]]; }

# kill_each USER WORDS: the processes of elastic-fit with that command line. Fails if none of them was there.
kill_each() {
    local pid killed=
    for pid in $(pgrep -u "$1" -f "^[^ ]*elastic-fit $2"); do
        if kill -KILL "$pid" 2>/dev/null; then killed=yes; fi
    done
    [[ $killed ]]
}

PATH_OF_MULTI="INITIAL > WAIT_FOR_TRAINING_CONTAINER > WAIT_FOR_FIT > WAIT_FOR_TARGET_CONTAINER"

@test "a trainer of another user makes the first state; then it has no access, and nothing of it stays" {
    wait_for 60 runs_it
    offers() { [[ $(comment_of_trainer) == "mine elastic-trainer=$TRAINER" ]]; }
    wait_for 60 offers
    # What comes of it takes 90 s, which are not waited for here.
    stranger_runs() { as_stranger selastic shard "$STRANGER" >/dev/null 2>&1; }
    wait_for 60 stranger_runs
    as_stranger selastic fit start "$STRANGER" --model=m --data="$TB_HOME/stranger/data/first"
    data first A
    all_closed
    run -0 fit first
    [[ $output == "fit 1 of $SERVICE: model m has been trained, and is served" ]]
    [[ $(path_of 1) == "$PATH_OF_MULTI > SUCCESS" ]]
    wait_for 20 serves_all 000001 3
    [[ $(as_user cat "$TB_WORK/models/m/000001/model") == A ]]
    [[ -z $(find "$TB_WORK/models" ! -user "$TB_USER") && $(partials) == 0 ]]
    [[ $(as_user selastic fit log "$SERVICE" 1) == *"trains None from None"* ]]
    run -0 as_user selastic states show "$TB_WORK/models/m" --verify
    all_closed
    wait_for 30 trainer_is_free
    wait_for 30 offers
}

@test "a router takes the address of the service, and requests come all the time" { begin_load 000001; }

# watch_table FILE: how many replicas are ready, and how many there are, until there is FILE.end: a line each time that it is another
# number.
watch_table() {
    /usr/bin/python3 -I -S - "$(shard_json | json_value 's["dir"]')/routes.json" "$1" <<'PY'
import json, os, sys, time
last, over = None, False
with open(sys.argv[2], "w", buffering=1) as lines:
    while not over:
        over = os.path.exists(sys.argv[2] + ".end")
        with open(sys.argv[1]) as table:
            replicas = [r["state"] for s in json.load(table)["shards"] for r in s["replicas"]]
        if last != replicas:
            print(replicas.count("ready"), len(replicas), file=lines)
        last = replicas
        time.sleep(0.01)
PY
}

@test "it can open what the training needs, and nothing else, while it trains; the comment says who pays" {
    data second B until "$TB_HOME/second"
    begin second --config='{"rate": 0.1}'
    wait_for 60 trains
    opens "$TB_WORK/data/second" && opens "$TB_WORK/models/m/000001/model"
    run ! opens "$TB_WORK/data/first"
    run ! opens "$TB_WORK/fit.yaml"
    run ! as_other touch "$TB_WORK/models/m/000001/new" "$TB_WORK/data/new"
    [[ $(fit_json | json_value 's["granted"], s["mode"], s["run"]["payer"], s["run"]["runner"]') == "True multi $TB_USER nobody" ]]
    [[ $(comment_of_trainer) == "mine elastic-trainer=$TRAINER payer=$TB_USER runner=nobody" ]]
    # It names one fit of all services of the user, and other tests have fits, too.
    as_user sh -c "mkdir -p home/.slurm-elastic/services && ln -s ~/.slurm-elastic/services/$SERVICE home/.slurm-elastic/services/"
    run as_user env HOME="$TB_WORK/home" selastic doctor --here
    [[ $output == *"fit 2 of $SERVICE has given nobody access to $TB_WORK/data/second"* ]]
    watch_table "$TB_HOME/seen" 3>&- &
    wait_for 20 grep -qx "3 3" "$TB_HOME/seen"
    touch "$TB_HOME/second"
    wait_for 60 ended_as SUCCESS
    touch "$TB_HOME/seen.end"
    wait $!
    # A new replica first, then an old one goes.
    cat "$TB_HOME/seen"
    [[ $(head -n 1 "$TB_HOME/seen") == "3 3" && $(tail -n 1 "$TB_HOME/seen") == "3 3" ]]
    grep -qx "[34] 4" "$TB_HOME/seen"
    run -1 grep -vxE "3 3|[34] 4" "$TB_HOME/seen"
    wait_for 20 serves_all 000002 3
    [[ $(as_user cat "$TB_WORK/models/m/000002/model") == "A B" ]]
    [[ $(as_user selastic fit log "$SERVICE") == *"'rate': 0.1"* ]]
    all_closed
}

@test "no request has failed meanwhile" {
    [[ ! -s $TB_WORK/port ]] || wait_for 20 serves "127.0.0.1:$(<"$TB_WORK/port")" 000002
    end_load 100
}

@test "whoever is allowed may have a model trained, and nothing else" {
    for command in "shard $trainer" "scale $trainer fit=1"; do
        # shellcheck disable=SC2086 # words
        run -1 as_user selastic $command
        [[ $output == "selastic: error: not permitted: job $trainer belongs to nobody" ]]
    done
    run -3 as_user selastic fit cancel "$TRAINER" 1 --guests
    [[ $output == *"there is no guest 1;"* ]]
    run as_user scancel "$trainer"
    [[ $output == *"Access/permission denied"* ]]
    # A client that does not look whose job it is.
    echo "unsigned int geteuid(void) { return $(id -u nobody); }" |
        gcc -shared -fPIC -x c -o "$TB_HOME/any.so" -
    for command in "shard $trainer" "roles $trainer" "scale $trainer fit=1" "resize $trainer 1"; do
        # shellcheck disable=SC2086
        run as_user LD_PRELOAD="$TB_HOME/any.so" selastic $command
        echo "$output"
        [[ $status != 0 && $output == *"not permitted: the service trains for you, and nothing else"* ]]
    done
    job_is "$trainer" RUNNING
    trainer_is_free
}

@test "a training that fails leaves no access and no state" {
    data fails X fail
    run -1 fit fails
    [[ $output == *"has ended as FAILED: the training: exit status 3;"* ]]
    [[ $(path_of) == "INITIAL > WAIT_FOR_TRAINING_CONTAINER > WAIT_FOR_FIT > FAILED" ]]
    [[ $(current) == 000002 && $(partials) == 0 ]]
    all_closed
    as_user mkdir "$TB_WORK/data/linked"
    as_user ln -s /etc/hostname "$TB_WORK/data/linked/data"
    run -1 as_user selastic fit start "$SERVICE" --model=m --data="$TB_WORK/data/linked" --wait
    [[ $output == *"data is no regular file"* ]]
    all_closed
}

@test "the owner leaves a directory in the place of the result: the fit fails, and later ones do not" {
    local left
    data leaves X until "$TB_HOME/leaves"
    begin leaves
    wait_for 60 trains
    left=$(find "$TB_WORK/models/m" -name .incoming)
    as_other sh -c 'mkdir "$1/d" && echo X >"$1/d/x" && chmod 700 "$1/d"' sh "$left"
    touch "$TB_HOME/leaves"
    wait_for 60 ended_as FAILED
    [[ $(fit_json | json_value 's["reason"]') == *"/.incoming-"*"/d: Directory not empty" ]]
    [[ $(current) == 000002 && $(partials) == 0 ]]
    left=$(find "$TB_WORK/models/m" -name '.incoming-*')
    run ! opens "$left/d/x"
    rm -r "$left"
    all_closed
}

@test "a fit that is cancelled, or takes too long, leaves no access and no state" {
    data long X until "$TB_HOME/never"
    begin long
    wait_for 60 trains
    as_user selastic fit cancel "$SERVICE"
    wait_for 60 ended_as CANCELLED
    all_closed
    wait_for 30 trainer_is_free
    run -1 fit long --within=fit=3s
    [[ $output == *"FAILED: WAIT_FOR_FIT: not done in time, after 3 s (fit)" ]]
    [[ $(current) == 000002 && $(partials) == 0 ]]
    all_closed
}

@test "both runners are killed at each step, and the trainer once: the fit goes on, and access ends" {
    # Two of its actions last until both runners have been killed.
    data killed C until "$TB_HOME/killed" slow "$TB_HOME/served"
    begin killed
    while [[ ${status:=} != SUCCESS ]]; do
        read -r status action < <(fit_json | json_value 's["status"], s["action"]')
        [[ $status != FAILED ]]
        if [[ $action != "${last:-}" ]]; then
            wait_for 20 kill_each "$TB_USER" "run $SERVICE"
            wait_for 20 kill_each nobody "run $TRAINER"
            case $action in
            fit)
                wait_for 60 trains
                wait_for 20 kill_each nobody "train $TRAINER"
                touch "$TB_HOME/killed"
                ;;
            replace) touch "$TB_HOME/served.all" ;;
            esac
            last=$action
            kills=$((${kills:-0} + 1))
        fi
        sleep 0.1
    done
    ((kills >= 2))
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C" && $(partials) == 0 ]]
    all_closed
}

@test "the owner sees whom the service trains for, and can end that" {
    data owner X until "$TB_HOME/never"
    begin owner
    wait_for 60 trains
    run -0 as_other selastic fit list "$TRAINER" --guests
    guest=$(awk '/trains$/ {print $1}' <<<"$output")
    [[ $output == *"$TB_USER  $SERVICE"* ]]
    as_other selastic fit cancel "$TRAINER" "$guest" --guests --reason="other work"
    wait_for 60 ended_as FAILED
    [[ $(fit_json | json_value 's["reason"]') == "the training: the owner of the trainer has ended it: other work" ]]
    all_closed
    run -4 as_other selastic fit cancel "$TRAINER" 1 --guests
}

# refused STATUS TEXT ARGUMENT...: one line says why.
refused() {
    run -"$1" as_user selastic fit start "$SERVICE" --model=m "${@:3}"
    echo "$output"
    ((${#lines[@]} == 1))
    [[ $output == *"$2"* ]]
}

@test "what is wrong has one line" {
    refused 1 "--trainer=../x: write the name of a service" --data="$TB_WORK/data/first" --trainer=../x
    refused 1 "there is no user nosuchuser" --data="$TB_WORK/data/first" --trainer=x@nosuchuser
    refused 1 "it is not yours; a trainer of another user opens only what is" --data=/etc/hostname
    refused 1 "for a trainer of another user the job file needs grant in fit" --data=s3://bucket/key
    as_user sh -c 'umask 077 && mkdir mine && echo E >mine/data'
    run -1 as_user selastic fit start "$SERVICE" --model=m --data="$TB_WORK/mine/data" --wait
    [[ $output == *"mine: others cannot pass this directory, so nobody would not reach what is below; let others pass it"* ]]
    run -1 fit first --trainer="x@nobody" --within=start=3s
    [[ $output == *"FAILED: WAIT_FOR_TRAINING_CONTAINER: not done in time, after 3 s (ensure)" ]]
}

@test "access that is over is taken back by whatever the user does next with fits" {
    # In a home of its own: whatever else this user has running could take it back, too.
    local home=$TB_WORK/home grants
    grants=$home/.slurm-elastic/services/$SERVICE-over/fits/000001
    data over X
    as_user /usr/bin/python3 - "$grants" "$TB_WORK/data/over" "$(id -u nobody)" <<'PY'
import json, os, struct, sys
grants, path, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.makedirs(grants)
with open(grants + "/grant.json", "w") as file:
    json.dump({"uid": uid, "user": "nobody", "until": 1, "job": 1, "cluster": "other",
               "paths": [{"path": path, "reach": "read"}]}, file)
entries = [(1, 6, -1), (2, 4, uid), (4, 0, -1), (16, 4, -1), (32, 0, -1)]
os.setxattr(path, "system.posix_acl_access",
            struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, may, who & 0xffffffff) for tag, may, who in entries))
PY
    opens "$TB_WORK/data/over"
    run as_user HOME="$home" selastic doctor --here
    [[ $output == *"its time is over"* ]]
    run as_user HOME="$home" selastic fit list "$SERVICE"
    run ! opens "$TB_WORK/data/over"
    [[ ! -e $grants/grant.json ]]
    all_closed
}

@test "the trainer's leader is killed, or its job is requeued: the training is made once more, and access ends" {
    local leader node term times=1
    data leader D until "$TB_HOME/leader"
    begin leader
    wait_for 60 trains
    trainer_json() { as_other selastic "$1" "$trainer" --json | json_value "$2"; }
    read -r leader term < <(trainer_json show 's["leader"], s["term"]')
    node=$(trainer_json replicas '*[t["node"] for r in s["replicas"] if r["role"] == "fit" for t in r["tasks"]]')
    echo "$leader leads, and $node trains"
    # What runs on another node than the leader goes on.
    [[ $node != "$leader" ]] || times=2
    kill -KILL "$(agent_of "$trainer" "$leader")"
    led_on() { (($(trainer_json show 's["term"]') > term)); }
    wait_for 60 led_on
    wait_for 60 trained_times "$times"
    touch "$TB_HOME/leader"
    wait_for 60 ended_as SUCCESS
    trained_times "$times"
    all_closed
    wait_for 30 trainer_is_free
    data again E until "$TB_HOME/again"
    begin again
    wait_for 60 trains
    as_other scontrol requeue "$trainer"
    wait_for 60 starts_again "$trainer"
    wait_for 60 trained_times 2
    touch "$TB_HOME/again"
    wait_for 60 ended_as SUCCESS
    trained_times 2
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C D E" && $(partials) == 0 ]]
    all_closed
}

@test "the job is requeued in the middle of a fit: it goes on, and access ends" {
    data requeued F until "$TB_HOME/requeued"
    begin requeued
    wait_for 60 trains
    as_user scontrol requeue "$job"
    wait_for 60 all_closed
    # The training ends when the trainer has no access, and before the next run gives it again.
    touch "$TB_HOME/requeued"
    wait_for 60 starts_again "$job"
    wait_for 120 ended_as SUCCESS
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "A B C D E F" ]]
    all_closed
}

@test "a trainer that does not allow a user says so, and opens nothing" {
    stranger_json() { as_stranger selastic fit show "$STRANGER" --json; }
    stranger_failed() { [[ $(stranger_json | json_value 's["status"]') == FAILED ]]; }
    wait_for 90 stranger_failed
    [[ $(stranger_json | json_value 's["reason"]') == "nobody does not allow this user to use service $TRAINER (allow in its fit)" ]]
    [[ $(stranger_json | json_value '" > ".join(h["status"] for h in s["history"])') == "INITIAL > WAIT_FOR_TRAINING_CONTAINER > FAILED" ]]
    run ! opens "$TB_HOME/stranger/data/first"
    [[ -z $(find "$TB_HOME/stranger" -name '*.partial' -o -name '*grant*.json') ]]
    run -0 as_other selastic fit list "$TRAINER" --guests
    [[ $output != *"$STRANGER"* ]]
    on_testbed scancel --user=daemon
}

@test "the job ends in the middle of a fit: its epilog takes access back" {
    data last X until "$TB_HOME/never"
    begin last
    wait_for 60 trains
    run ! all_closed
    # Nothing of the job can do it.
    kill -KILL "$(agent_of "$job")" "$(pgrep -u "$TB_USER" -f "^[^ ]*elastic-fit run $SERVICE")"
    wait_for 60 job_ended "$job"
    wait_for 60 all_closed
    begin_job
    as_user selastic fit cancel "$SERVICE"
    wait_for 90 ended_as CANCELLED
    [[ $(partials) == 0 ]]
    all_closed
}
