#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Fits at a trainer of another user whose data and states are on S3: it gets session credentials for
# these places, which end by themselves. The server is a real gateway of Ceph, behind a proxy that
# keeps the latest of these credentials: they are tried on every way out.
# Takes 235 s

load helpers
load elastic
load roles
load serve
load fit
load s3

ROLE=arn:aws:iam:::role/fit

setup_file() {
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    export SERVICE=h$$ TRAINER=k$$
    s3_up elastic-fit-s3
    testbed_up --nodes 1 --cpus-per-node 8
    sed -i '/^PrivateData=/d' "$TB_DIR/etc/slurm.conf"
    echo "FirstJobId=$((100000 + $$ % 100000))" >>"$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    cd "$RGW" || return 1
    /usr/bin/python3 "$TREE/tests/system/s3_proxy.py" "$(<server/endpoint)" port log "keep:0:POST:^/\$" \
        "wait:0:PUT:/p/m/0.*partNumber=2" 3>&- 2>proxy.err &
    echo $! >proxy.pid
    wait_for 20 test -e port
    take_keys
    second bucket data
    second bucket states
    fit_file fit 1 'within: {start: 600s, fit: 600s, target: 600s}' "states: s3://states/p" \
        "grant: $ROLE" "grant-time: 25s"
    mkdir -p "$TB_HOME/other/models"
    cp "$TREE"/tests/system/{light,serve_program,fit_program}.py "$TB_HOME/other/"
    sed -e "s|$TB_WORK|$TB_HOME/other|g; s|^service: .*|service: $TRAINER|" -e '/^  \(states\|grant\)/d' \
        -e "s|^  stage:|  allow: [$TB_USER]\n  stage:|" "$TB_WORK/fit.yaml" >"$TB_HOME/other/fit.yaml"
    sed -i -e "s|^  run: \[/usr/bin/python3, -S, $TB_WORK/fit.*|  trainer: $TRAINER@nobody|; /^  stage:/d" "$TB_WORK/fit.yaml"
    sed -i "s/capacity: 10M/capacity: 100M/" "$TB_WORK/fit.yaml"
    # Nothing of the first user is in a directory that the other one can pass.
    chmod 0700 "$TB_WORK" "$TB_HOME/other"
    chown -R nobody "$TB_HOME/other"
    chown "$TB_USER" "$TB_WORK" "$TB_WORK/fit.yaml"
    begin_trainer # it has no keys
    begin_job
}

setup() {
    job=$(<"$TB_WORK/job")
    take_keys
}

teardown_file() {
    on_testbed scancel --user=nobody || true
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE" || true
    testbed_down
    end_process "$RGW/proxy.pid" TERM
    s3_down
}

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || {
        tail -n 40 "$TB_WORK"/*.out "$TB_HOME"/other/*.out "$RGW/log" "$RGW/proxy.err"
        as_user selastic fit show "$SERVICE"

    }
}

take_keys() {
    local line
    while read -r line; do export "${line?}"; done < <(server_env)
    AWS_ENDPOINT_URL=http://127.0.0.1:$(<"$RGW/port")
}

# begin_trainer NAME=VALUE...: the trainer's job, with these variables.
begin_trainer() {
    as_other sbatch --parsable -N1 -n1 -c4 -t 60 --mem=200 -o "$TB_HOME/other/%j.out" \
        --wrap "export AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL $*; srun elasticrun --roles=$TB_HOME/other/fit.yaml" \
        >"$TB_HOME/other/job"
}

begin_job() {
    submit -N1 -n1 -c3 -t 60 --mem=200 --wrap "export AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL \
        AWS_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY; \
        srun elasticrun --roles=$TB_WORK/fit.yaml" >"$TB_WORK/job"
}

# data KEY WORDS...: what a model is trained on.
data() {
    echo "${*:2}" >"$BATS_TEST_TMPDIR/words"
    second put data "$1" "$BATS_TEST_TMPDIR/words"
}

# begin KEY OPTION...: a training on that data.
begin() { as_user selastic fit start "$SERVICE" --model=m --data="s3://data/$1" "${@:2}"; }

trains() { acts fit && as_user selastic fit log "$SERVICE" 2>/dev/null | grep -q '^trains'; }

# keep_session NAME: the latest credentials that were made for the trainer, and for nothing before.
keep_session() {
    local name value
    for name in AccessKeyId=ACCESS_KEY_ID SecretAccessKey=SECRET_ACCESS_KEY SessionToken=SESSION_TOKEN; do
        value=$(sed -n "s|.*<${name%=*}>\(.*\)</${name%=*}>.*|\1|p" "$RGW/kept")
        [[ $value ]] || return 1
        echo "AWS_${name#*=}=$value"
    done >"$RGW/new.session"
    for name in "$RGW"/*.session; do
        [[ $name == */new.session || $name == */"$1.session" ]] || ! cmp -s "$name" "$RGW/new.session" || return 1
    done
    mv "$RGW/new.session" "$RGW/$1.session"
    date -d "$(sed -n 's|.*<Expiration>\(.*\)</Expiration>.*|\1|p' "$RGW/kept")" +%s >"$RGW/$1.until"
}

# session NAME KEY STATUS: with them the server answers so.
session() {
    local line
    (
        while read -r line; do export "${line?}"; done <"$RGW/$1.session"
        [[ $(AWS_ENDPOINT_URL=$(<"$RGW/server/endpoint") second status data "$2") == "$3" ]]
    )
}

# has_ended NAME KEY: its time is over, and so it is for the server, which is not asked before.
has_ended() {
    ((EPOCHSECONDS >= $(<"$RGW/$1.until"))) && session "$1" "$2" 403
}

nothing_incoming() { [[ -z $(second keys states p/m/.incoming) ]]; }

@test "a trainer gets at data and states on S3 by a session for them, which ends" {
    wait_for 60 runs_it
    data first A until "$TB_HOME/first"
    data many/one x
    data many/two/three y
    begin first --targets=s3://data/many
    wait_for 90 trains
    keep_session first
    session first first 200
    [[ $(fit_json | json_value 's["granted"], s["sessionUntil"] > 0') == "True True" ]]
    # It goes on for longer than a session.
    wait_for 120 has_ended first first
    wait_for 60 keep_session SUCCESS
    session SUCCESS first 200
    touch "$TB_HOME/first"
    wait_for 90 ended_as SUCCESS
    keep_session SUCCESS
    [[ $(path_of) == "INITIAL > WAIT_FOR_TRAINING_CONTAINER > WAIT_FOR_FIT > WAIT_FOR_TARGET_CONTAINER > SUCCESS" ]]
    [[ $(second get states p/m/current) == 000001 && $(second get states p/m/000001/model) == A ]]
    second same states p/m/000001/ "$TB_WORK/models/m/000001"
    [[ -z $(find "$TB_WORK/models" ! -user "$TB_USER") && $(partials) == 0 ]]
    nothing_incoming
    wait_for 20 serves_all 000001 1
    # Neither the trainer's files nor anybody's command line has keys.
    run -1 grep -rFl -e "$AWS_SECRET_ACCESS_KEY" -e SecretAccessKey "$TB_HOME/other/.slurm-elastic"
    ps -eo args >"$BATS_TEST_TMPDIR/running"
    run -1 grep -F -- "$AWS_SECRET_ACCESS_KEY" "$BATS_TEST_TMPDIR/running"
}

# pushes NUMBER: the runner waits for S3, which takes a part of that state.
pushes() { grep -q "PUT /states/p/m/$1/large.*partNumber=2" "$RGW/log"; }

# Neither a state nor a part of one is left.
is_as_before() {
    [[ $(second get states p/m/current) == 000001 && $(partials) == 0 ]] &&
        [[ -z $(second keys states p/m/000002) && -z $(second uploads states) ]] && nothing_incoming
}

@test "a fit whose state goes to S3 is cancelled, or its time is over: it ends at once, and no part is left" {
    data large B large
    begin large
    wait_for 120 pushes 000002
    # A runner that is killed leaves an upload; the next one removes that first.
    : >"$RGW/log"
    kill -KILL "$(processes run)"
    wait_for 120 pushes 000002
    as_user selastic fit cancel "$SERVICE" --reason=enough
    wait_for 60 ended_as CANCELLED
    keep_session CANCELLED
    [[ $(fit_json | json_value 's["reason"]') == enough ]]
    is_as_before
    : >"$RGW/log"
    begin large --within=target=10s
    wait_for 120 pushes 000002
    wait_for 60 ended_as FAILED
    keep_session late
    [[ $(fit_json | json_value 's["reason"]') == "WAIT_FOR_TARGET_CONTAINER: not done in time, after 10 s (point)" ]]
    is_as_before
}

@test "a training that fails leaves no state" {
    data fails X fail
    begin fails
    wait_for 90 ended_as FAILED
    keep_session FAILED
    [[ $(fit_json | json_value 's["reason"]') == "the training: exit status 3;"* ]]
    is_as_before
}

# refused TEXT ARGUMENT...: one line says why.
refused() {
    run -1 as_user selastic fit start "$SERVICE" --model=m "${@:2}"
    echo "$output"
    ((${#lines[@]} == 1))
    [[ $output == *"$1"* ]]
}

@test "what is wrong has one line" {
    refused "--data=web://x: a trainer of another user opens files, and s3://" --data=web://x
    refused "a '*', '?' or '\$' in it would open more than that" --data='s3://data/a*'
    refused "look at s3://data/absent: there is no such object" --data=s3://data/absent --wait
    nothing_incoming
}

@test "everything of the starter is killed: what the trainer has had ends by itself" {
    data first C until "$TB_HOME/never"
    begin first
    wait_for 90 trains
    keep_session killed
    session killed first 200
    as_user scancel --signal=KILL "$job"
    wait_for 60 job_ended "$job"
    keep_session killed
    wait_for 120 has_ended killed first
    begin_job
    as_user selastic fit cancel "$SERVICE"
    wait_for 90 ended_as CANCELLED
    is_as_before
}

@test "the session of each fit has ended, however the fit has" {
    wait_for 60 has_ended SUCCESS first
    wait_for 60 has_ended CANCELLED large
    wait_for 60 has_ended late large
    wait_for 60 has_ended FAILED fails
}

as_third() { AWS_ACCESS_KEY_ID=OTHERKEY AWS_SECRET_ACCESS_KEY=other-secret "$@"; }

third_opens() { as_third second get data "$1" >/dev/null 2>&1; }
third_is_out() { ! third_opens first; }

# The policies are those of before, and nothing lies beside the data.
is_taken_back() {
    [[ $(second policy data) == "$(<"$RGW/policy")" && -z $(second keys data .elastic-fit) ]] &&
        [[ -z $(second keys states p/m/.elastic-fit) ]] &&
        run -1 second policy states && third_is_out
}

@test "a trainer that has keys gets at data and states by policies of the buckets, which are taken back" {
    as_user scancel "$job"
    as_other scancel "$(<"$TB_HOME/other/job")"
    wait_for 60 job_ended "$job"
    wait_for 60 job_ended "$(<"$TB_HOME/other/job")"
    begin_trainer AWS_ACCESS_KEY_ID=OTHERKEY AWS_SECRET_ACCESS_KEY=other-secret
    sed -i "s|grant: .*|grant: arn:aws:iam:::user/other|" "$TB_WORK/fit.yaml"
    begin_job
    echo '{"Version":"2012-10-17","Statement":{"Sid":"mine","Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/nobody"]},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::data"}}' >"$RGW/policy"
    second policy data "$RGW/policy"
    sed -i 's|"Statement":\(.*\)}|"Statement":[\1]}|' "$RGW/policy" # what becomes of it
    wait_for 60 runs_it
    data first D until "$TB_HOME/by-policy" large
    data secret S
    begin first --targets=s3://data/many
    wait_for 120 trains
    third_opens first
    run ! third_opens secret
    touch "$TB_HOME/by-policy" "$RGW/go"
    wait_for 120 ended_as SUCCESS
    [[ $(second get states "p/m/$(current)/model") == "A D" ]]
    second same states "p/m/$(current)/" "$TB_WORK/models/m/$(current)"
    nothing_incoming
    is_taken_back
    [[ $(fit_json | json_value 's["granted"]') == False ]]
    # The owner's own buckets stay closed.
    as_third second bucket theirs
    as_third second put theirs key "$RGW/policy"
    run -1 as_user selastic fit start "$SERVICE" --model=m --data=s3://theirs/key --wait
    [[ $output == *"FAILED: put s3://theirs/.elastic-fit-"*"refuses the keys of OWNERKEY"* ]]
    is_taken_back
    # Nobody is left who takes it back.
    data first E until "$TB_HOME/never"
    begin first
    wait_for 90 trains
    third_opens first
    job=$(<"$TB_WORK/job")
    as_user scancel --signal=KILL "$job"
    wait_for 60 job_ended "$job"
    wait_for 120 third_is_out
    # A job that ends in good order takes it back, and the next one gives it again.
    begin_job
    wait_for 120 third_opens first
    as_user scancel "$(<"$TB_WORK/job")"
    wait_for 60 job_ended "$(<"$TB_WORK/job")"
    is_taken_back
    begin_job
    as_user selastic fit cancel "$SERVICE"
    wait_for 90 ended_as CANCELLED
    is_taken_back
}
