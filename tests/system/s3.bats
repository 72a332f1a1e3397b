#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# States on S3, with a real gateway of Ceph, a bad network before it, and boto3 as a second opinion.
# Takes 165 s

load helpers
load elastic
load roles
load serve
load fit
load s3

setup_file() {
    s3_up elastic-s3
    take_keys
    second bucket states
    head -c 17000000 /dev/urandom >"$RGW/random"
    # Nodes must reach this machine's 127.0.0.1.
    testbed_up --nodes 2 --grace 2
    cp "$TREE/tests/system/snapshots.py" "$TB_WORK/"
}

teardown_file() {
    testbed_down
    s3_down
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    HOME=$BATS_TEST_TMPDIR # no ~/.aws
    take_keys
    proxy=
    PLACE=s3://states/$BATS_TEST_NUMBER
}

teardown() {
    [[ -z $proxy ]] || { kill "$proxy" && wait "$proxy" || true; }
}

take_keys() {
    local line
    unset AWS_SESSION_TOKEN AWS_PROFILE
    while read -r line; do export "${line?}"; done < <(server_env)
}

states() { "${prefix:-$TREE/build/inst}/bin/selastic" states "$@" 3>&-; }

# through RULE...: from now on the server is behind a proxy with these rules.
through() {
    local rules=("$@")
    stop_proxy
    rm -f port log
    /usr/bin/python3 "$TREE/tests/system/s3_proxy.py" "$(cat "$RGW/server/endpoint")" port log "${rules[@]}" \
        3>&- 2>proxy.err &
    proxy=$!
    wait_for 20 test -e port
    export AWS_ENDPOINT_URL
    AWS_ENDPOINT_URL=http://127.0.0.1:$(cat port)
}

stop_proxy() {
    [[ -z $proxy ]] || { kill "$proxy" && wait "$proxy" || true; }
    proxy=
}

direct() {
    stop_proxy
    take_keys
}

# make_files DIR: a small state, with a file of three parts if that is asked for.
make_files() {
    mkdir -p "$1/sub"
    echo "${2:-one}" >"$1/a"
    : >"$1/empty"
    echo three >"$1/sub/b"
}

make_large() {
    make_files "$1"
    cp "$RGW/random" "$1/large"
}

# listed EXPRESSION: of the list of states, which is s.
listed() {
    states list "$PLACE" --json | json_value "$1"
}

complete() { listed "*[x['state'] for x in s['states'] if x['kind'] == 'complete']"; }
completes() { [[ $(complete) == "$1" ]]; }
kinds() { listed "*[x['state'] + '=' + x['kind'] for x in s['states']]"; }
current() { listed "s['current']"; }

# fails TEXT COMMAND...: with status 1 and one line, which has the text.
fails() {
    local text=$1
    shift
    run -1 "$@"
    echo "$output"
    [[ ${#lines[@]} == 1 && $output == *"$text"* ]]
}

# ends PID STATUS: waits for a process of this shell.
ends() {
    local ended=0
    wait "$1" || ended=$?
    echo "ended: $ended"
    ((ended == $2))
}

@test "odd names, an empty file and a file in parts: what was written is there, byte for byte" {
    make_large src
    echo x >"src/sub/a b+c ü%26&=.txt"
    echo y >"src/sub/~-_.'(1)!*"
    mkdir -p "src/a+b/ c"
    echo z >"src/a+b/ c/;,:@\$?#[]"
    run -0 states push "$PLACE" src --run "fit 1"
    [ "$output" = "$PLACE/000001" ]
    run -0 states show "$PLACE" --verify
    [[ $output == *"(current)"*"fit 1"*", as they were written"* ]]
    states pull "$PLACE" dst >out || { cat log && false; }
    output=$(cat out)
    [ "$output" = dst/000001 ]
    second same states "$BATS_TEST_NUMBER/000001/" dst/000001
    rm dst/000001/complete.json
    diff -r src dst/000001
    [ "$(second get states "$BATS_TEST_NUMBER/current")" = 000001 ]
}

@test "1,001 keys are listed, and those that another client has written" {
    mkdir src other
    (cd src && seq -f 'f%04g' 1001 | xargs touch)
    states push "$PLACE" src
    run -0 states show "$PLACE" --verify
    [[ $output == *"Files:    1001, 0 bytes"* ]]
    [ "$(second keys states "$BATS_TEST_NUMBER/000001/" | wc -l)" = 1002 ]
    second put-many states "$BATS_TEST_NUMBER/000002/x" 3
    echo '{"format": 1, "files": {"x0000": 1, "x0001": 1, "x0002": 1}}' >other/complete.json
    second put states "$BATS_TEST_NUMBER/000002/complete.json" other/complete.json
    [ "$(complete)" = "000001 000002" ]
    states use "$PLACE" 000002
    states rm "$PLACE" 000001
    [ -z "$(second keys states "$BATS_TEST_NUMBER/000001/")" ]
    [ "$(complete)" = 000002 ]
}

@test "each request that is refused with 503, cut, answered by nothing or by half is asked again" {
    local kind method
    make_large src
    for kind in 503 cut lost half; do
        through "$kind:1:GET:list-type" "$kind:1:PUT:partial" "$kind:1:PUT:000001/a" \
            "$kind:1:PUT:partNumber=2" "$kind:1:POST:uploads" "$kind:1:POST:uploadId" \
            "$kind:1:PUT:complete.json" "$kind:1:PUT:current" "$kind:1:HEAD:" "$kind:1:DELETE:" \
            "$kind:1:GET:large" "$kind:1:GET:complete.json"
        PLACE=s3://states/$BATS_TEST_NUMBER-$kind
        [ "$(states push "$PLACE" src)" = "$PLACE/000001" ]
        states pull "$PLACE" "dst-$kind"
        sed 's/.* //' log | sort | uniq -c
        [ "$(grep -c " $kind$" log)" -ge 11 ]
        direct
        second same states "$BATS_TEST_NUMBER-$kind/000001/" "dst-$kind/000001"
        [ "$(complete)" = 000001 ]
        # What is unknown to us, a server may have begun twice: but for that, nothing is left.
        [[ $kind == lost || $kind == half || $(second uploads states) != *"$BATS_TEST_NUMBER-$kind/"* ]]
    done
}

@test "a download that is cut goes on where it was cut" {
    make_large src
    states push "$PLACE" src
    through half:1:GET:large
    states pull "$PLACE" dst
    [ "$(grep -c 'GET .*large' log)" = 4 ] # it has three parts
    cmp src/large dst/000001/large
    through begun:1:GET:large # nothing is there to go on from
    states pull "$PLACE" dst2
    cmp src/large dst2/000001/large
    through bare:1:GET:000001/a # the rest could be of another version
    fails "(1 try)" states pull "$PLACE" dst3
    [ "$(grep -c 'GET .*000001/a' log)" = 1 ]
    through cut:0:GET:empty
    fails "(2 tries)" states pull "$PLACE" dst3 --tries=2
}

@test "a large object that somebody replaces while it is got is not put together of two" {
    local reader
    make_large src
    states push "$PLACE" src
    through wait:1:GET:large
    states pull "$PLACE" dst >out 2>&1 &
    reader=$!
    wait_for 30 grep -qs 'GET .*large wait' log
    head -c 17000000 /dev/zero >zeros
    second put states "$BATS_TEST_NUMBER/000001/large" zeros
    touch go
    ends "$reader" 1
    cat out
    grep "somebody else has changed it meanwhile" out
    [ -z "$(ls dst)" ]
}

@test "an upload whose parts the server could not put together, after status 200, is tried again" {
    make_large src
    echo '<Error><Code>InternalError</Code><Message>later</Message></Error>' >late
    through "$PWD/late:2:POST:uploadId"
    states push "$PLACE" src
    [ "$(grep -c 'POST .*uploadId' log)" = 3 ]
    states show "$PLACE" --verify
    through "$PWD/late:0:POST:uploadId"
    fails "answers 200 InternalError: later" states push "$PLACE" src --tries=2
    [ "$(grep -c 'POST .*uploadId' log)" = 2 ]
    [ "$(kinds)" = 000001=complete ]
}

@test "a fault that does not pass is one line, and leaves neither a state nor parts of one" {
    make_files src
    states push "$PLACE" src
    mkdir big
    cp "$RGW/random" big/large
    through "503:0:PUT:partNumber=2"
    fails "answers 503 SlowDown: later" states push "$PLACE" big --tries=2
    direct
    [[ $(second uploads states) != *"$BATS_TEST_NUMBER/"* ]]
    [ "$(kinds)" = 000001=complete ]
    [ "$(current)" = 000001 ]
    through "silent:0:GET:list-type"
    fails "is silent for 1 s (2 tries)" states list "$PLACE" --stall=1 --tries=2
    through "silent:0:GET:list-type"
    fails "stopped, or out of time" states list "$PLACE" --timeout=1
    AWS_ENDPOINT_URL=http://127.0.0.1:1 fails "127.0.0.1:1" states list "$PLACE" --tries=2
    through "half:0:GET:000001/a"
    fails "get s3://states/$BATS_TEST_NUMBER/000001/a" states pull "$PLACE" dst --tries=2
    [ -z "$(ls dst)" ]
}

@test "answers that are no S3 are one line each" {
    make_files src
    states push "$PLACE" src
    echo '<html><body>Sign in</body></html>' >portal
    echo '<!DOCTYPE x [<!ENTITY a "b">]><ListBucketResult>&a;</ListBucketResult>' >bomb
    head -c 9000000 /dev/zero >zeros
    for file in portal bomb zeros; do
        through "$PWD/$file:0:GET:list-type"
        fails "" states list "$PLACE"
    done
    [[ $output == *"longer than 8388608 bytes"* ]]
}

@test "wrong keys, a missing bucket, a foreign bucket, a wrong clock: one line each says what to do" {
    make_files src
    AWS_SECRET_ACCESS_KEY=wrong fails "refuses the keys of OWNERKEY (AWS_ACCESS_KEY_ID)" \
        states push "$PLACE" src
    AWS_ACCESS_KEY_ID=NOBODY fails "refuses the keys of NOBODY" states push "$PLACE" src
    fails "has no bucket nowhere" states push s3://nowhere/p src
    AWS_ACCESS_KEY_ID=OTHERKEY AWS_SECRET_ACCESS_KEY=other-secret \
        fails "refuses the keys of OTHERKEY" states push "$PLACE" src
    unset AWS_SECRET_ACCESS_KEY
    fails "AWS_SECRET_ACCESS_KEY is not" states push "$PLACE" src
    unset AWS_ACCESS_KEY_ID
    fails "or write profile default into $HOME/.aws/credentials" states push "$PLACE" src
    mkdir .aws
    printf '[default]\naws_access_key_id = x\n[fit]\naws_access_key_id = OWNERKEY\naws_secret_access_key=owner-secret\n' \
        >.aws/credentials
    AWS_PROFILE=fit states push "$PLACE" src
    take_keys
    command -v faketime >/dev/null || skip "faketime is not installed (scripts/setup --s3)"
    fails "is 36" faketime -f +1h "${prefix:-$TREE/build/inst}/libexec/slurm-elastic/elastic-state" list "$PLACE"
    [[ $output == *"ahead of that of 127.0.0.1:"*": set it" ]]
}

@test "writers at one time get a number each, and the last one counts" {
    local i pids=()
    for i in 1 2 3 4; do
        make_files "src$i" "$i"
        states push "$PLACE" "src$i" >"out$i" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || { cat out* && false; }; done
    [ "$(complete)" = "000001 000002 000003 000004" ]
    [ "$(current)" = 000004 ]
    for i in 1 2 3 4; do
        [ "$(second get states "$(sed 's|s3://states/||' "out$i")/a")" = "$i" ]
    done
}

@test "the pointer is not moved by who has not seen it" {
    make_files src
    states push "$PLACE" src
    states push "$PLACE" src
    states push "$PLACE" src
    echo 000001 >pointer
    through wait:1:PUT:current
    states use "$PLACE" 000002 >out 2>&1 &
    user=$!
    wait_for 30 grep -qs PUT log
    second put states "$BATS_TEST_NUMBER/current" pointer
    touch go
    ends "$user" 1
    grep "somebody else has changed it meanwhile" out
    direct
    [ "$(current)" = 000001 ]
    states use "$PLACE" 000002
    [ "$(current)" = 000002 ]
}

# killed RULE: a writer of a large state is killed when the server has that request.
killed() {
    local writer
    through "silent:0:PUT:$1"
    "${prefix:-$TREE/build/inst}/libexec/slurm-elastic/elastic-state" push "$PLACE" src 3>&- &
    writer=$!
    wait_for 30 grep -qs "PUT [^ ]*$1" log
    kill -KILL "$writer"
    wait "$writer" || true
    direct
}

@test "a writer that is killed leaves the state of before; the next one removes what is partial, and parts" {
    make_large src
    make_files small
    states push "$PLACE" small
    killed partNumber=2
    [ "$(kinds)" = "000001=complete 000002=partial" ]
    [[ $(second uploads states) == *"$BATS_TEST_NUMBER/000002/large"* ]]
    fails "its writer has died: --force" states rm "$PLACE" 000002
    fails "is not complete" states use "$PLACE" 000002
    killed 000003/complete.json
    [ "$(kinds)" = "000001=complete 000002=partial 000003=partial" ]
    [ "$(states pull "$PLACE" first)" = first/000001 ]
    # Complete, and nobody has made it the current one.
    killed current
    [ "$(kinds)" = "000001=complete 000002=partial 000003=partial 000004=complete" ]
    [ "$(current)" = 000001 ]
    [ "$(states pull "$PLACE" second)" = second/000001 ]
    diff small/a second/000001/a
    run -0 states push "$PLACE" small --keep=2
    [ "$output" = "$PLACE/000005" ]
    [ "$(kinds)" = "000004=complete 000005=complete" ]
    states show "$PLACE" --verify
    [[ -z $(second keys states "$BATS_TEST_NUMBER/000002") && -z $(second keys states "$BATS_TEST_NUMBER/000003") ]]
    [[ $(second uploads states) != *"$BATS_TEST_NUMBER/"* ]]
}

@test "a writer that is asked to end removes what it has put" {
    local writer
    make_large src
    through "silent:0:PUT:partNumber=2"
    "${prefix:-$TREE/build/inst}/libexec/slurm-elastic/elastic-state" push "$PLACE" src 3>&- 2>err &
    writer=$!
    wait_for 30 grep -qs 'partNumber=2' log
    kill -TERM "$writer"
    ends "$writer" 1
    cat err
    direct
    [ -z "$(second keys states "$BATS_TEST_NUMBER/")" ]
    [[ $(second uploads states) != *"$BATS_TEST_NUMBER/"* ]]
}

@test "a slow writer whose claim another one has removed ends with a line, and writes no state" {
    local writer
    make_large src
    make_files small
    through "wait:1:PUT:partNumber=2"
    "${prefix:-$TREE/build/inst}/libexec/slurm-elastic/elastic-state" push "$PLACE" src 3>&- 2>err &
    writer=$!
    wait_for 30 grep -qs 'partNumber=2' log
    states push "$PLACE" small --keep=1
    touch go
    ends "$writer" 1
    cat err
    [ "$(wc -l <err)" = 1 ]
    direct
    [ "$(complete)" = 000002 ]
    [ "$(current)" = 000002 ]
}

@test "a writer that is asked to end leaves alone what another one has written in its place" {
    local writer
    make_large src
    make_files small
    through "silent:0:PUT:partNumber=2"
    "${prefix:-$TREE/build/inst}/libexec/slurm-elastic/elastic-state" push "$PLACE" src 3>&- 2>err &
    writer=$!
    wait_for 30 grep -qs 'partNumber=2' log
    states rm "$PLACE" 000001 --force
    [ "$(states push "$PLACE" small)" = "$PLACE/000001" ]
    kill -TERM "$writer"
    ends "$writer" 1
    cat err
    states show "$PLACE" --verify
}

@test "torn and hostile states are one line each, and the one before is used" {
    local name
    make_files src
    states push "$PLACE" src
    printf '{"format": 1, "files": {"a": 4' >half
    echo '{"format": 1, "files": {"../a": 4}}' >out
    echo '{"format": 1, "files": {"a": 4, "a/b": 4}}' >both
    echo '{"format": 1, "files": {"none": 4}}' >none
    echo '{"format": 2, "files": {"a": 4}}' >future
    echo '[]' >list
    echo "nonsense" >pointer
    number=2
    puts=("$BATS_TEST_NUMBER/current" pointer "$BATS_TEST_NUMBER/0000001/a" src/a)
    for name in half out both none future list; do
        puts+=("$BATS_TEST_NUMBER/00000$number/a" src/a
            "$BATS_TEST_NUMBER/00000$((number++))/complete.json" "$name")
    done
    second put states "${puts[@]}"
    run -0 states list "$PLACE"
    echo "$output"
    [ "$(grep -c torn <<<"$output")" = 7 ]
    [[ $output == *"there are two names of this number"* ]]
    fails "has no complete state; 000007: complete.json" states pull "$PLACE" dst
    PLACE=s3://states/$BATS_TEST_NUMBER-b
    states push "$PLACE" src
    second put states "$BATS_TEST_NUMBER-b/000002/complete.json" half
    run -0 states pull "$PLACE" dst
    [ "$output" = dst/000001 ]
}

@test "a file that is not what was written is noticed, and nothing is left of the copy" {
    make_files src
    states push "$PLACE" src
    echo six >src/a
    second put states "$BATS_TEST_NUMBER/000001/a" src/a
    fails "a is not what was written" states show "$PLACE" --verify
    fails "a is not what was written" states pull "$PLACE" dst
    [ -z "$(ls dst)" ]
}

@test "session credentials for one prefix write there, and nowhere else" {
    local line
    make_files src
    states push "$PLACE" src
    while read -r line; do export "${line?}"; done < <(second session states "$BATS_TEST_NUMBER-fit")
    states push "s3://states/$BATS_TEST_NUMBER-fit" src
    states show "s3://states/$BATS_TEST_NUMBER-fit" --verify
    fails "refuses the keys" states push "$PLACE" src
    fails "refuses the keys" states pull "$PLACE" dst
    AWS_SESSION_TOKEN=wrong fails "" states list "s3://states/$BATS_TEST_NUMBER-fit"
    take_keys
    run -0 states pull "s3://states/$BATS_TEST_NUMBER-fit" dst
    diff src/a dst/000001/a
}

# refused COMMAND...: of s3_object.py.
refused() {
    run -1 second "$@"
    echo "$output"
    [[ $output == *AccessDenied* ]]
}

@test "session credentials of a trainer read in its places and put into one, and do nothing else" {
    local line at=$BATS_TEST_NUMBER
    make_files src
    second bucket beside
    second put beside "$at/data/a" src/a
    second put states "$at/data/a" src/a "$at/data-not/a" src/a
    while read -r line; do export "${line?}"; done < <("${top_builddir:-$TREE/build}/tests/system/s3_session" \
        arn:aws:iam:::role/fit 900 "s3://states/$at/data" "s3://states/$at/new")
    [ "$(second keys states "$at/data/")" = "$at/data/a" ]
    [ "$(second get states "$at/data/a")" = one ]
    second put states "$at/new/a" src/a
    [ "$(second get states "$at/new/a")" = one ]
    refused get states "$at/data-not/a"
    refused get beside "$at/data/a"
    refused keys states "$at/"
    refused put states "$at/data/b" src/a
    refused put states "$at/new-not/a" src/a
    refused put beside "$at/new/a" src/a
    refused publish states "$at/new/a"
    refused remove states "$at/data/"
    take_keys
    [ "$(second keys states "$at/" | xargs)" = "$at/data-not/a $at/data/a $at/new/a" ]
    second publish states "$at/new/a"
}

# keeper PLACE WORD...: submits snapshots.py with checkpoints there; prints the job id.
keeper() {
    local place=$1 keys
    shift
    keys=$(server_env | tr '\n' ' ')
    submit --elastic=1:1 --elastic-grow=ask --exclusive -t 60 --requeue --open-mode=append --wrap \
        "export $keys; srun --mpi=none elasticrun --checkpoint-dir=$place \
            /usr/bin/python3 $TB_WORK/snapshots.py $TB_WORK/log-\$SLURM_JOB_ID 10 $*"
}

made() { (($(awk '/^step/ { step = $2 } END { print step + 0 }' "$TB_WORK/log-$1" 2>/dev/null || echo 0) >= $2)); }

began_again() { awk '/^start/ && $2 ~ /\.1$/ { print $4; exit }' "$TB_WORK/log-$1"; }

has_begun_again() { [[ -n $(began_again "$1") ]]; }

@test "a job goes on from its checkpoint on S3, or from a newer snapshot in the memory of its nodes" {
    local saved lost
    saved=$(keeper "$PLACE-saved" save=25 deaf)
    lost=$(keeper "$PLACE-lost" save=5 again deaf)
    wait_for 60 made "$saved" 33
    wait_for 60 made "$lost" 33
    run -0 as_user selastic show "$saved"
    [[ $output == *"$PLACE-saved"* ]]
    as_user scontrol requeue "$saved,$lost"
    wait_for 90 starts_again "$saved"
    ASKED=
    wait_for 90 starts_again "$lost"
    wait_for 60 has_begun_again "$saved"
    wait_for 60 has_begun_again "$lost"
    echo "saved: $(began_again "$saved"), lost: $(began_again "$lost")"
    (($(began_again "$saved") == 25 && $(began_again "$lost") >= 30))
    as_user scancel "$saved" "$lost"
    PLACE=$PLACE-saved
    [[ $(complete) == 000001* ]]
    cancel_all
}

@test "a fit goes on from the state on S3, and writes the next one there; a failed one changes nothing" {
    local keys
    keys=$(server_env | tr '\n' ' ')
    export SERVICE=s3-$$
    fit_file s3 1 "states: $PLACE/" 'within: {start: 60s, fit: 60s, target: 60s}' 'keep: 2'
    submit -N1 --exclusive -t 10 --wrap "export $keys; srun elasticrun --roles=$TB_WORK/s3.yaml" >job
    PLACE=$PLACE/m
    wait_for 40 runs_it
    data first A
    fit first
    [ "$(current)" = 000001 ]
    second same states "$BATS_TEST_NUMBER/m/000001/" "$TB_WORK/models/m/000001"
    mkdir other
    echo X >other/model # of another cluster
    states push "$PLACE" other
    data second B
    fit second
    # What is too much goes when the next one is served.
    wait_for 20 completes "000002 000003"
    [ "$(second get states "$BATS_TEST_NUMBER/m/000003/model" | tr '\n' ' ')" = "X  B" ]
    wait_for 20 serves_all 000003 1
    data third C broken
    run -1 fit third
    [ "$(current)" = 000003 ]
    wait_for 20 serves_all 000003 1
    data fourth D until "$TB_WORK/never"
    begin fourth
    wait_for 40 acts fit
    [[ $(kinds) == *000005=partial ]]
    as_user selastic fit cancel "$SERVICE"
    wait_for 40 ended_as CANCELLED
    [ "$(kinds)" = "000002=complete 000003=complete 000004=complete" ]
    [ "$(current)" = 000003 ]
    cancel_all
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
}

# copied FILE...: these entries, and no others, are below the copies of models.
copied() { [[ $(cd copies && find . -mindepth 2 -maxdepth 2 ! -name '.*' ! -name model.json | sort | tr '\n' ' ') == "$* " ]]; }

@test "models on S3 have copies: what counts, what is used, and no more than there is room for" {
    make_files one
    make_large two
    states push "$PLACE/one" one
    states push "$PLACE/two" two
    second put states "$BATS_TEST_NUMBER/one/model.json" one/a
    second put states "$BATS_TEST_NUMBER/-no-name/a" one/a
    mirror=$TREE/build/inst/libexec/slurm-elastic/elastic-state
    run -0 "$mirror" mirror "$PLACE" copies --most=30
    copied ./one/000001 ./one/current ./two/000001 ./two/current
    diff one/a copies/one/model.json
    states push "$PLACE/one" one
    states push "$PLACE/two" two
    echo two/000001 >used
    fails "1 of 2 models could not be copied" "$mirror" mirror "$PLACE" copies --most=30 --used=used
    [[ $(<copies/two/.why) == "000002 has 16 MiB, and copies have 16 of at most 30 MiB"* ]]
    copied ./one/000001 ./one/000002 ./one/current ./two/000001 ./two/current
    [[ $(readlink copies/two/current) == 000001 ]]
    AWS_SECRET_ACCESS_KEY=wrong fails "refuses the keys" "$mirror" mirror "$PLACE" copies --used=used
    [[ $(<copies/.why) == *"refuses the keys"* ]]
    run -0 "$mirror" mirror "$PLACE" copies --used=used
    copied ./one/000002 ./one/current ./two/000001 ./two/000002 ./two/current
    [[ ! -e copies/.why && ! -e copies/two/.why ]]
    # Another one counts again; and then there is no such model.
    states use "$PLACE/two" 000001
    run -0 "$mirror" mirror "$PLACE" copies --used=used
    [[ $(readlink copies/two/current) == 000001 ]]
    second remove states "$BATS_TEST_NUMBER/two/"
    run -0 "$mirror" mirror "$PLACE" copies --used=used
    [[ -e copies/two/.gone && -e copies/two/000001/a ]]
    run -0 "$mirror" mirror "$PLACE" copies --used=/dev/null
    copied ./one/000002 ./one/current
    fails "nobody needs a copy of a directory" "$mirror" mirror one copies
}

@test "a service serves models of S3, and follows them" {
    local keys secret job written
    SERVICE=s3-$$
    cp "$TREE"/tests/system/{light,serve_program}.py "$TB_WORK/"
    cat >"$TB_WORK/s3.yaml" <<YAML
service: $SERVICE
models: {repository: $PLACE, every: 1s, copies: $TB_WORK/copies}
roles:
  server:
    kind: shards
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 20s, every: 200ms}
    drain: {within: 5s}
    capacity: 10M
    window: 0
YAML
    chmod 0644 "$TB_WORK/s3.yaml"
    make_files a
    states push "$PLACE/one" a
    keys=$(server_env | grep -v _KEY | tr '\n' ' ')
    secret=$AWS_SECRET_ACCESS_KEY
    write_keys "$secret"
    job=$(submit -N1 --exclusive -t 10 --wrap "export $keys AWS_SHARED_CREDENTIALS_FILE=$TB_WORK/keys; srun --mpi=none elasticrun --roles=$TB_WORK/s3.yaml")
    wait_for 60 routed one=shard_1
    [[ $(shard_json | json_value 's["repository"]') == "$PLACE" ]]
    states push "$PLACE/two" a
    as_user selastic apply "$SERVICE"
    wait_for 30 routed one=shard_1 two=shard_1
    states push "$PLACE/one" a
    wait_for 30 is_answered one 000002
    # What nobody has any more goes.
    wait_for 30 test ! -e "$TB_WORK/copies/$SERVICE/one/000001"
    second remove states "$BATS_TEST_NUMBER/two/"
    wait_for 30 routed one=shard_1
    wait_for 30 test ! -e "$TB_WORK/copies/$SERVICE/two"
    # It cannot be listed: all stays as it is, with one line.
    write_keys wrong
    wait_for 60 grep -q 'refuses the keys.*; its models stay as they are' "$TB_WORK/$job.out"
    states push "$PLACE/one" a
    # It is tried again, and fails again.
    written=$(as_user stat -c %y "$TB_WORK/copies/$SERVICE/.why")
    # shellcheck disable=SC2317 # wait_for calls it
    again() { [[ $(as_user stat -c %y "$TB_WORK/copies/$SERVICE/.why") != "$written" ]]; }
    wait_for 60 again
    is_answered one 000002
    routed one=shard_1
    write_keys "$secret"
    wait_for 60 is_answered one 000003
    (($(grep -c 'refuses the keys.*its models stay as they are' "$TB_WORK/$job.out") == 1))
    ps -eo args >running
    run -1 grep -F -- "$secret" running
    run -1 grep -F -- "$secret" "$TB_WORK/$job.out"
    end_service
}

# write_keys SECRET: for the job.
write_keys() {
    as_user sh -c "umask 077; cat >$TB_WORK/keys.new; mv $TB_WORK/keys.new $TB_WORK/keys" <<INI
[default]
aws_access_key_id = $AWS_ACCESS_KEY_ID
aws_secret_access_key = $1
INI
}

# is_answered KEY VERSION
is_answered() {
    local at
    at=$(replicas_of "$1") && [[ $at && $(as_user curl -sf "http://$at/$1") == "$2" ]]
}

@test "a wrong URL is refused when the job starts" {
    run -2 as_user srun -n1 elasticrun --checkpoint-dir=s3://x true
    echo "$output"
    [[ $output == *"the name of a bucket has"* ]]
}
