#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Notices of clouds that take a node away, over HTTP, as metadata services give them.
# Takes 105 s

load helpers
load elastic
load hook
load cloud

setup_file() {
    testbed_up --nodes 3
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    patient
    metadata_up
    sed -i "s|^node_backoff = .*|node_backoff = 100\nreclaim = none\nreclaim_endpoint = $ENDPOINT|" "$TB_DIR/etc/elastic.conf"
}

teardown_file() {
    metadata_down
    testbed_down
}

teardown() {
    cancel_all
    sed -i '/^reclaim_\(drain\|advice\)/d' "$TB_DIR/etc/elastic.conf"
    # shellcheck disable=SC2153 # metadata_up sets it
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
    wait_for 30 was_asked "$node" || { cat "$CLOUD/log" "$TB_WORK/$job.out" >&2; return 1; }
}

# was_asked NODE [PATTERN]: the node's agent has got an answer other than a token.
was_asked() { grep -E "^$1 GET .*${2:-}" "$CLOUD/log" | grep -vq 'compute/name'; }

is_left() { ! as_user squeue -h -t R -o '%N' | grep -qx "$1"; }

# The node is free long before it is taken, and another one is in its place.
is_replaced() {
    wait_for 40 is_left "$node"
    echo "# $node was free after $(seconds_since "$given") s" >&3
    wait_for 60 size_is "$job" 2
    is_left "$node"
    wait_for 20 says "$TB_WORK/$job.out" "$node is about to be taken away in [0-9]+ s"
    [ "$(grep -c 'nobody will' "$TB_WORK/$job.out")" -eq 0 ]
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
}

@test "a client of Amazon takes the test's metadata service for the real one" {
    /usr/bin/python3 -c 'import botocore' 2>/dev/null || skip "python3-botocore is not installed"
    touch "$CLOUD/-.advice" # what is no agent is no node, "-"
    run -0 /usr/bin/python3 -c "
from botocore.utils import IMDSFetcher, InstanceMetadataFetcher
fetcher = InstanceMetadataFetcher(timeout=60, num_attempts=1, base_url='$ENDPOINT/', config={})
print(fetcher.retrieve_iam_role_credentials()['access_key'])
fetcher = IMDSFetcher(timeout=60, num_attempts=1, base_url='$ENDPOINT/', config={})
token = fetcher._fetch_metadata_token()
for path in 'spot/instance-action', 'events/recommendations/rebalance':
    answer = fetcher._get_request('latest/meta-data/' + path, lambda answer: False, token)
    print(answer.status_code, answer.text)"
    rm "$CLOUD/-.advice"
    [ "${lines[0]}" = a ]
    [[ ${lines[1]} == "404 "* ]]
    [[ ${lines[2]} == '200 {"noticeTime": "20'*'Z"}' ]]
}

# With NODE_PATH, where npm has installed them.
@test "clients of npm take the test's metadata service for the real one" {
    node -e 'require("gcp-metadata"); require("@aws-sdk/ec2-metadata-service")' 2>/dev/null ||
        skip "npm's gcp-metadata and @aws-sdk/ec2-metadata-service are not installed"
    run -0 env GCE_METADATA_HOST="${ENDPOINT#http://}" node -e "
const google = require('gcp-metadata');
const { MetadataService } = require('@aws-sdk/ec2-metadata-service');
const amazon = new MetadataService({ endpoint: '$ENDPOINT' });
(async () => {
    console.log(await google.instance('preempted'), await google.instance('maintenance-event'));
    console.log(await amazon.request('/latest/meta-data/iam/security-credentials/', {}));
})();"
    [ "${lines[0]}" = "FALSE NONE" ]
    [ "${lines[1]}" = role ]
}

# state_of NODE: in Slurm, in lower case.
state_of() { as_user sinfo -h -n "$1" -o %T; }

is_idle() { [[ $(state_of "$1") == idle ]]; }

is_drained() { [[ $(state_of "$1") == drain* ]]; }

# settings LINE: of reclaim_drain and reclaim_advice.
settings() {
    sed -i '/^reclaim_\(drain\|advice\)/d' "$TB_DIR/etc/elastic.conf"
    sed -i "s/^reclaim_endpoint.*/&\n$1/" "$TB_DIR/etc/elastic.conf"
}

# resumed NODE: it is as before.
resumed() {
    on_testbed scontrol update "NodeName=$1" State=RESUME
    wait_for 20 is_idle "$1"
}

# The hook is called as slurmd calls it, for a job that says what it likes.
@test "the epilog drains a node if its cloud takes it, and not because a job says so" {
    find_hook
    sed -i 's/^reclaim = .*/reclaim = aws/' "$TB_DIR/etc/elastic.conf"
    settings 'reclaim_drain = drain'
    as_user mkdir -m 700 "$TB_DIR/snapshots/elastic-$(uid)-12.0-n3"
    : >"$CLOUD/log"
    hook epilog 12 0 n3 SPANK_ELASTIC_EXTEND=1 SPANK_RECLAIMED=yes
    wait_for 10 grep -q '^n3 GET .*instance-action 404' "$CLOUD/log"
    is_idle n3
    # Nor because of another node, nor when nobody answers, which takes no longer than it may.
    notice n2 120
    hook epilog 12 0 n3 SPANK_ELASTIC_EXTEND=1
    is_idle n3
    notice n3 1200
    touch "$CLOUD/hangs"
    began=$EPOCHREALTIME
    hook epilog 12 0 n3 SPANK_ELASTIC_EXTEND=1
    (($(seconds_since "$began") < 60))
    rm "$CLOUD/hangs"
    is_idle n3
    # The epilog of a rigid job asks nobody, nor does any where the site does not want it.
    : >"$CLOUD/log"
    hook epilog 13 0 n3
    settings 'reclaim_drain = none'
    hook epilog 12 0 n3 SPANK_ELASTIC_EXTEND=1
    [ ! -s "$CLOUD/log" ]
    is_idle n3
    settings 'reclaim_drain = drain'
    hook epilog 12 0 n3 SPANK_ELASTIC_EXTEND=1
    wait_for 20 is_drained n3
    as_user scontrol show node n3 | grep -q 'Reason=elastic: reclaimed by the cloud '
    resumed n3
    # Slurm does not power down nodes that it cannot power up.
    settings 'reclaim_drain = power_down'
    hook epilog 12 0 n3 SPANK_ELASTIC_EXTEND=1
    wait_for 20 is_drained n3
    resumed n3
    settings 'reclaim_drain = none'
}

@test "aws: an expired token is renewed, and a node is left at the notice" {
    settings 'reclaim_drain = drain\nreclaim_advice = replace'
    begin aws
    touch "$CLOUD/expired"
    wait_for 10 was_asked "$node" 401
    : >"$CLOUD/log"
    wait_for 10 was_asked "$node" 404
    # At its cloud's advice a node goes when another one has joined.
    touch "$CLOUD/$node.advice"
    wait_for 60 is_left "$node"
    wait_for 60 size_is "$job" 2
    wait_for 20 says "$TB_WORK/$job.out" "its cloud advises to replace $node"
    [[ $(sizes_of "$job") =~ ^1,2(,2)+$ ]]
    rm "$CLOUD/$node.advice"
    one_runs() { [[ $(running_extensions_of "$job" | wc -l) == 1 ]]; }
    wait_for 10 one_runs
    node=$(job_field "$(running_extensions_of "$job")" NodeList)
    wait_for 10 was_asked "$node" 404
    notice "$node" 120
    is_replaced
    # No other job starts there.
    wait_for 10 is_drained "$node"
    resumed "$node"
    settings 'reclaim_drain = none'
}

@test "gcp: a node is left as soon as its service answers" {
    begin gcp
    wait_for 10 was_asked "$node" 200
    notice "$node" 120
    is_replaced
}

@test "alibaba, tencent: a node is left at the notice" {
    for cloud in alibaba tencent; do
        begin "$cloud"
        wait_for 10 was_asked "$node" 404
        notice "$node" 120
        is_replaced
        rm "$CLOUD/$node"
    done
}

@test "azure: events of other machines do nothing, the machine's own event does" {
    begin azure
    notice "$other" 120
    : >"$CLOUD/log"
    # Both agents have read that, twice.
    wait_for 10 was_asked "$node" scheduledevents
    : >"$CLOUD/log"
    wait_for 10 was_asked "$node" scheduledevents
    size_is "$job" 2
    rm "$CLOUD/$other"
    notice "$node" 120
    is_replaced
}

# The last test, since power saving would take idle nodes.
@test "the epilog powers a node down, where Slurm can" {
    find_hook
    printf '%s\n' SuspendProgram=/bin/true ResumeProgram=/bin/true SuspendTime=3600 \
        SuspendTimeout=5 ResumeTimeout=5 >>"$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    sed -i 's/^reclaim = .*/reclaim = aws/' "$TB_DIR/etc/elastic.conf"
    settings 'reclaim_drain = power_down'
    notice n3 1200
    hook epilog 12 0 n3 SPANK_ELASTIC_EXTEND=1
    powers_down() { as_user scontrol show node n3 | grep 'State=.*POWER'; }
    wait_for 20 powers_down
}
