#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Notices of clouds that take a node away, over HTTP, as metadata services give them.
# Time limit: 200 s
# Takes 40 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=120
load helpers
load elastic

setup_file() {
    testbed_up --nodes 3
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    export CLOUD=$TB_HOME/cloud
    mkdir "$CLOUD"
    python3 "$TREE/tests/system/metadata.py" "$CLOUD" 3>&- >"$CLOUD/said" 2>&1 &
    export CLOUD_PID=$!
    wait_for 10 test -e "$CLOUD/port"
    ENDPOINT=http://127.0.0.1:$(<"$CLOUD/port")
    export ENDPOINT
    sed -i "s|^node_backoff = .*|node_backoff = 100\nreclaim = none\nreclaim_endpoint = $ENDPOINT|" "$TB_DIR/etc/elastic.conf"
}

teardown_file() {
    kill "$CLOUD_PID"
    testbed_down
}

teardown() {
    cancel_all
    find "$CLOUD" -name 'n[0-9]*' -delete
}

# begin CLOUD: a job on two nodes of that cloud; sets job, node (of the extension) and other (of nobody).
begin() {
    sed -i "s|^reclaim = .*|reclaim = $1|" "$TB_DIR/etc/elastic.conf"
    : >"$CLOUD/log"
    job=$(train 1:2 100000 0.2)
    wait_for 40 size_is "$job" 2
    node=$(job_field "$(extensions_of "$job")" NodeList)
    other=$(as_user sinfo -h -t idle -o %n | head -n 1)
    wait_for 10 was_asked "$node"
}

# was_asked NODE [PATTERN]: the node's agent has got an answer other than a token.
was_asked() { grep -E "^$1 GET .*${2:-}" "$CLOUD/log" | grep -vq 'compute/name'; }

# notice NODE SECONDS
notice() {
    echo "$2" >"$CLOUD/new"
    mv "$CLOUD/new" "$CLOUD/$1"
    given=$EPOCHREALTIME
}

is_left() { ! as_user squeue -h -t R -o '%N' | grep -qx "$1"; }

# The node is free long before it is taken, and another one is in its place.
is_replaced() {
    wait_for 10 is_left "$node"
    echo "# $node was free after $(seconds_since "$given") s" >&3
    wait_for 20 size_is "$job" 2
    is_left "$node"
    says "$TB_WORK/$job.out" "$node is about to be taken away in [0-9]+ s"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
}


@test "a client of Amazon takes the test's metadata service for the real one" {
    python3 -c 'import botocore' 2>/dev/null || skip "python3-botocore is not installed"
    run -0 python3 -c "
from botocore.utils import InstanceMetadataFetcher
fetcher = InstanceMetadataFetcher(num_attempts=1, base_url='$ENDPOINT/', config={})
print(fetcher.retrieve_iam_role_credentials()['access_key'])"
    [ "$output" = a ]
}

@test "aws: an expired token is renewed, and a node is left at the notice" {
    begin aws
    touch "$CLOUD/expired"
    wait_for 10 was_asked "$node" 401
    : >"$CLOUD/log"
    wait_for 10 was_asked "$node" 404
    notice "$node" 120
    is_replaced
}

@test "gcp: a node is left as soon as its service answers" {
    begin gcp
    wait_for 10 was_asked "$node" 200
    notice "$node" 30
    is_replaced
}

@test "azure: events of other machines do nothing, the machine's own event does" {
    begin azure
    notice "$other" 30
    : >"$CLOUD/log"
    # Both agents have read that, twice.
    wait_for 10 was_asked "$node" scheduledevents
    : >"$CLOUD/log"
    wait_for 10 was_asked "$node" scheduledevents
    size_is "$job" 2
    rm "$CLOUD/$other"
    notice "$node" 30
    is_replaced
}
