#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# States in directories: selastic states, what it writes and what it refuses. Those on S3: s3.bats.

load helpers

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -p src/sub
    echo one >src/a
    : >src/empty
    echo three >"src/sub/b c"
}

states() { "${prefix:-$TREE/build/inst}/bin/selastic" states "$@" 3>&-; }

# fails TEXT COMMAND...: with status 1 and one line, which has the text.
fails() {
    local text=$1
    shift
    run -1 "$@"
    echo "$output"
    [[ ${#lines[@]} == 1 && $output == *"$text"* ]]
}

kinds() {
    states list p --json | /usr/bin/python3 -c 'import json, sys
print(*[s["state"] + "=" + s["kind"] + "*" * s["current"] for s in json.load(sys.stdin)["states"]])'
}

@test "states follow each other, keep their number, and the current one is a link" {
    run -0 states list p
    [ "$output" = "no states in p" ]
    run -0 states push p src --run "fit 1"
    [ "$output" = p/000001 ]
    states push p/ src --run "fit 2"
    [ "$(readlink p/current)" = 000002 ]
    [ "$(kinds)" = "000001=complete 000002=complete*" ]
    run -0 states list p
    [[ ${lines[2]} == "* 000002    complete         3              10  000001    fit 2" ]]
    run -0 states show p 000001 --verify
    [[ $output == *"Run:      fit 1"*"Files:    3, 10 bytes, as they were written"*"sub/b c"* ]]
    [[ $output != *current* ]]
    states use p 000001
    [ "$(kinds)" = "000001=complete* 000002=complete" ]
    run -0 states push p src --keep=1
    [ "$output" = p/000003 ]
    [ "$(kinds)" = "000003=complete*" ]
    states show p --json | /usr/bin/python3 -c 'import json, sys
state = json.load(sys.stdin)
assert state["previous"] == "000001", state
assert [f["name"] for f in state["files"]] == ["a", "empty", "sub/b c"], state'
    [ "$(stat -c %a p/000003 p/000003/a | tr '\n' ' ')" = "700 600 " ]
}

@test "a checkpoint of the Python package becomes a state, by its own list of files" {
    PYTHONPATH=$TREE/client/python /usr/bin/python3 -c 'import slurm_elastic as e
e.save({"step": 7}, "checkpoints", rank=0)'
    touch checkpoints/00000001/later
    states push p checkpoints/00000001
    run -0 states show p --verify
    [[ $output == *"Files:    1, "*"state.pickle"* ]]
    echo >>checkpoints/00000001/state.pickle
    fails "state.pickle has not the size" states push p checkpoints/00000001
}

@test "a copy is made once, and again where it was changed" {
    states push p src
    run -0 states pull p dst
    [ "$output" = dst/000001 ]
    diff -r p/000001 dst/000001
    before=$(stat -c %i dst/000001)
    states pull p dst
    [ "$(stat -c %i dst/000001)" = "$before" ]
    echo >>dst/000001/a
    states pull p dst
    diff -r p/000001 dst/000001
    mkdir dst/000002.partial
    states push p src
    states pull p dst --keep=1
    [ "$(ls dst)" = 000002 ]
    states pull p dst --state=000001
    [ "$(cd dst && echo *)" = "000001 000002" ]
}

@test "copies at one time: one is made, all find it" {
    local i pids=()
    head -c 3000000 /dev/urandom >src/large
    states push p src
    for i in 1 2 3 4; do
        states pull p dst >"out$i" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    [ "$(cat out? | sort -u)" = dst/000001 ]
    [ "$(cd dst && echo .[!.]* *)" = ".lock 000001" ]
    diff -r p/000001 dst/000001
}

@test "what a dead writer has left is partial, and goes when a newer state is complete" {
    states push p src
    mkdir p/000002.partial
    echo half >p/000002.partial/a
    [ "$(kinds)" = "000001=complete* 000002=partial" ]
    fails "000002 is being written, or its writer has died" states rm p 000002
    fails "000002 is not complete" states use p 000002
    run -0 states push p src --keep=3
    [ "$output" = p/000003 ]
    [ "$(kinds)" = "000001=complete 000003=complete*" ]
    mkdir p/000004.partial
    states rm p 000004 --force
    [ ! -e p/000004.partial ]
}

@test "a writer that is asked to end leaves alone what another one has begun in its place" {
    local writer ended=0
    truncate -s 1T src/large # no writer gets to its end
    "${prefix:-$TREE/build/inst}/libexec/slurm-elastic/elastic-state" push p src 3>&- 2>err &
    writer=$!
    wait_for 30 test -e p/000001.partial/large
    kill -STOP "$writer"
    states rm p 000001 --force
    mkdir p/000001.partial
    echo theirs >p/000001.partial/a
    kill -TERM "$writer"
    kill -CONT "$writer"
    wait "$writer" || ended=$?
    cat err
    ((ended == 1))
    grep "stopped, or out of time" err
    [ "$(cat p/000001.partial/a)" = theirs ]
}

@test "the end of the time is one line" {
    mkdir -p p/000001 dst
    truncate -s 1T p/000001/large
    echo '{"format": 1, "files": {"large": 1099511627776}}' >p/000001/complete.json
    fails "stopped, or out of time" states show p --verify --timeout=1
    exec 9>dst/.lock
    flock 9
    fails "stopped, or out of time" states pull p dst --timeout=1
    exec 9>&-
}

@test "keys that may not be read are named, but where the environment has keys" {
    local mortal=()
    ((UID != 0)) || mortal=(setpriv --bounding-set=-all --inh-caps=-all)
    unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
    export AWS_SHARED_CREDENTIALS_FILE=$PWD/keys AWS_ENDPOINT_URL=http://127.0.0.1:1
    echo "[default]" >keys
    chmod 0 keys
    selastic=${prefix:-$TREE/build/inst}/bin/selastic
    fails "cannot read $PWD/keys: Permission denied" "${mortal[@]}" "$selastic" states list s3://bucket
    AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b fails "127.0.0.1:1" \
        "${mortal[@]}" "$selastic" states list s3://bucket --tries=1
}

@test "each wrong state, directory and argument is one line" {
    local home=$PWD
    run -3 states show p
    [[ $output == *"p has no states" ]]
    fails "none: No such file" states push p none
    mkdir nothing
    fails "nothing: there are no files" states push p nothing
    ln -s /etc/passwd src/link
    fails "link is no regular file" states push p src
    rm src/link
    mkfifo src/pipe
    fails "pipe is no regular file" states push p src
    rm src/pipe
    [ ! -e p ] || [ -z "$(ls p)" ]
    states push p src
    fails "000001 is the current state" states rm p 000001
    fails "there is no state 000009" states use p 000009
    mkdir p/000002
    ln -s "$home/src" p/000003
    echo '{"format": 1, "files": {"../../../../etc/passwd": 1}}' >src/complete.json
    run -1 states push p src
    [[ $output == *"complete.json"*"cannot have a file of the name"* ]]
    rm src/complete.json
    run -0 states list p
    [ "$(grep -c torn <<<"$output")" = 2 ]
    states rm p 000002
    fails "000003" states rm p 000003
    [ -e src/a ]
    run -2 states
    run -2 states lst p
    [[ $output == *"the commands are list, show, use, rm, push, pull and mirror"* ]]
    run -2 states use p
    run -2 states use p 7
    [[ $output == *'"7" is no state'* ]]
    run -2 states push p src --keep=0
    [[ $output == *"--keep=0: must be a number from 1"* ]]
    run -2 states push p src --run=$'a\nb'
    run -2 states list p --nothing
    run -2 states pull s3://bucket
    fails "the name of a bucket" states list s3://x
}

@test "a full disk is one line, and leaves the states as they were" {
    ((UID == 0)) && unshare -m true 2>/dev/null || skip "needs root, and a mount of its own"
    unshare -m bash -c '
        set -e
        mkdir small && mount -t tmpfs -o size=200k none small
        "$1" states push small/p src
        head -c 500000 /dev/zero >src/large
        ! "$1" states push small/p src 2>err
        grep "large: No space left on device" err
        [ "$(wc -l <err)" = 1 ]
        [ "$(ls small/p | tr "\n" " ")" = "000001 current " ]' _ "${prefix:-$TREE/build/inst}/bin/selastic"
}
