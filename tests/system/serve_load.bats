#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A service that makes its servers load and unload models: the server of examples/serve by the Open
# Inference Protocol, with real models, and a server that speaks vLLM's API of adapters. The latter
# has a router in its job, which OpenAI's client asks, and Prometheus scrapes it.
# Takes 70 s

load helpers
load elastic
load roles
load serve

setup_file() {
    export SERVICE=l$$ OIP=l$$ LORA=v$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 2 --cpus-per-node 8
    # The whole job may take as long to end as its router and its servers.
    sed -i 's/^KillWait=.*/KillWait=40/' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    mkdir "$TB_WORK/examples"
    cp -r "$TREE/examples/digits" "$TREE/examples/serve" "$TB_WORK/examples/"
    cp "$TREE"/tests/system/{lora_server.py,openai_client.cjs} "$TB_WORK/"
    job_file "$OIP" oip /v2/health/ready examples/serve/serve.py '--port, "{port}", --repository, "{models}"'
    job_file "$LORA" vllm-lora /health lora_server.py '"{port}"' 15s
    if [[ -x $(PATH=$PATH:/usr/sbin command -v haproxy) ]]; then
        echo "  front: {kind: router, restart: {backoff: 200ms..1s}}" >>"$TB_WORK/$LORA.yaml"
    fi
    train_all "digit --task digit --steps 20" "parity --task parity --steps 20" "digit-2 --task digit --steps 60" \
        "large --task large --steps 60"
    read_images
    as_user selastic states push "$TB_WORK/$OIP/digit" "$TB_WORK/trained/digit"
    as_user selastic states push "$TB_WORK/$OIP/parity" "$TB_WORK/trained/parity"
    start "$OIP"
}

# job_file SERVICE LOAD READY PROGRAM ARGUMENTS [DRAIN]
job_file() {
    as_user mkdir "$TB_WORK/$1"
    cat >"$TB_WORK/$1.yaml" <<YAML
service: $1
models: {repository: $TB_WORK/$1, every: 1s}
roles:
  server:
    kind: shards
    replicas: 2
    run: [/usr/bin/python3, $TB_WORK/$4, $5]
    ports: [http]
    load: $2
    ready: {http: $3, within: 120s, every: 200ms}
    drain: {within: ${6:-5s}}
    restart: {backoff: 200ms..1s}
    capacity: 1G
    window: 0
YAML
    chmod 0644 "$TB_WORK/$1.yaml"
}

start() {
    submit -N2 --exclusive -t 60 --wrap "srun elasticrun --roles=$TB_WORK/$1.yaml" >"$TB_WORK/job"
}

# train_all WORDS...: by the program of the example, each as it is called with these words. It imports PyTorch once.
train_all() {
    as_user /usr/bin/python3 - "$TB_WORK/trained" "$@" <<'PY'
import sys

sys.path.append("examples/serve")
import train

top, *calls = sys.argv[1:]
for call in calls:
    name, *words = call.split()
    sys.argv = ["train.py", f"{top}/{name}", *words]
    train.main()
PY
}

# read_images: a request with some of the images that have been held out, as $TB_WORK/images.json, and what they show, in
# $TB_WORK/labels.
read_images() {
    as_user /usr/bin/python3 - "$TB_WORK/labels" <<'PY' >"$TB_WORK/images.json"
import json
import sys

sys.path.append("examples/serve")
import client

rows, digits = zip(*client.held_out()[:36])
with open(sys.argv[1], "w") as file:
    print(list(digits), file=file)
data = [value for row in rows for value in row]
image = {"name": "image", "datatype": "FP32", "shape": [len(rows), len(rows[0])], "data": data}
print(json.dumps({"inputs": [image]}))
PY
}

setup() { job=$(<"$TB_WORK/job"); }

teardown_file() {
    end_process "$TB_WORK/prometheus.pid" TERM
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$OIP ~/.slurm-elastic/services/$LORA"
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out; }

# all_say KEY COUNT COMMAND...: as many replicas have that key, and of each COMMAND ADDRESS succeeds.
all_say() {
    local at count=0
    for at in $(replicas_of "$1"); do
        "${@:3}" "$at" || return 1
        count=$((count + 1))
    done
    ((count == $2))
}

# is_right MODEL TASK VERSION ADDRESS: real images, real labels, and that version of the model, by the program of the example.
is_right() {
    local said
    said=$(as_user /usr/bin/python3 examples/serve/client.py "http://$4" "$1" --task "$2" --requests 3) || return 1
    [[ $said == "$1 $3: "* ]] || return 1
    [[ $said =~ \ ([0-9]+)\ of\ 36\ right ]] && ((BASH_REMATCH[1] > 28))
}

declare -gA SHOWS=([digit]='n' [parity]='n % 2' [large]='int(n > 4)')

# predicts MODEL TASK VERSION ADDRESS: the same without that program, most of whose time goes into its start.
predicts() {
    [[ $(as_user curl -s --retry 30 --retry-delay 1 --retry-connrefused -H 'Content-Type: application/json' \
        -d @images.json "http://$4/v2/models/$1/infer" |
        json_value "s['model_version'], sum(said == ${SHOWS[$2]} for said, n in zip(s['outputs'][0]['data'], $(<"$TB_WORK/labels"))) > 28") == "$3 True" ]]
}

has_not() { [[ $(as_user curl -s -o /dev/null -w '%{http_code}' "http://$2/v2/models/$1") == 404 ]]; }

# servers PROGRAM: the numbers of their processes.
servers() { pgrep -u "$TB_USER" -f "^/usr/bin/python3 $TB_WORK/.*$1 " | sort; }

@test "oip: servers are ready once they have loaded their models" {
    wait_for 80 routed digit=shard_1 parity=shard_1
    wait_for 20 all_say digit 2 is_right digit digit 000001
    wait_for 20 all_say parity 2 is_right parity parity 000001
    all_say digit 2 predicts digit digit 000001
}

@test "oip: the size of a model is what its server says, and not what its files let expect" {
    size_of() { shard_json | json_value "*(m['size'] for m in s['models'] if m['name'] == '$1')"; }
    said=$(as_user curl -s -X POST -d '{}' "http://$(replicas_of digit | head -n 1)/v2/repository/index" |
        json_value "[m['memory_usage'][0]['byte_size'] for m in s if m['name'] == 'digit'][0]")
    ((said > 0))
    is_measured() { [[ $(size_of digit) == "$said" ]]; }
    wait_for 20 is_measured
}

@test "oip: a version and a model come, and a model goes, and no server is started anew" {
    before=$(servers serve.py)
    (($(wc -l <<<"$before") == 2))
    as_user selastic states push "$TB_WORK/$OIP/digit" "$TB_WORK/trained/digit-2"
    wait_for 30 all_say digit 2 predicts digit digit 000002
    as_user selastic states push "$TB_WORK/$OIP/large" "$TB_WORK/trained/large"
    wait_for 30 routed digit=shard_1 large=shard_1 parity=shard_1
    wait_for 20 all_say large 2 predicts large large 000001
    as_user rm -r "$TB_WORK/$OIP/parity"
    wait_for 30 routed digit=shard_1 large=shard_1
    wait_for 20 all_say digit 2 has_not parity
    [[ $(servers serve.py) == "$before" ]]
}

@test "oip: what cannot be loaded has its line, and the others go on" {
    before=$(servers serve.py)
    as_user mkdir "$TB_WORK/trained/torn"
    as_user sh -c "echo nothing >$TB_WORK/trained/torn/model.pt"
    as_user selastic states push "$TB_WORK/$OIP/torn" "$TB_WORK/trained/torn"
    wait_for 60 why_has torn 'a replica did not get its models: torn 000001: /v2/repository/models/torn/load: HTTP status 400'
    routed digit=shard_1 large=shard_1
    all_say digit 2 predicts digit digit 000002
    as_user rm -r "$TB_WORK/$OIP/torn"
    wait_for 20 all_say large 2 predicts large large 000001
    [[ $(servers serve.py) == "$before" ]]
}

@test "oip: another program: each server is replaced, though its models are loaded in place" {
    before=$(servers serve.py)
    sed 's|run: \[|&/usr/bin/env, RELEASE=2, |' "$TB_WORK/$OIP.yaml" >"$TB_WORK/release.yaml"
    chmod 0644 "$TB_WORK/release.yaml"
    as_user selastic apply "$OIP" --file "$TB_WORK/release.yaml"
    # shellcheck disable=SC2317 # wait_for calls it
    replaced() { [[ $(servers serve.py | wc -l) == 2 && ! $(comm -12 <(servers serve.py) <(echo "$before")) ]]; }
    wait_for 90 replaced
    wait_for 40 all_say digit 2 predicts digit digit 000002
    for pid in $(servers serve.py); do as_user cat "/proc/$pid/environ" | tr '\0' '\n' | grep -qx RELEASE=2; done
}

@test "oip: a server that was killed comes back, and is ready with all models" {
    read -r victim <<<"$(servers serve.py)"
    as_user kill -KILL "$victim"
    back() { [[ $(servers serve.py | wc -l) == 2 ]] && ! servers serve.py | grep -qx "$victim"; }
    wait_for 60 back
    wait_for 60 all_say digit 2 predicts digit digit 000002
    all_say large 2 predicts large large 000001
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
}

# adapter NAME NUMBER: a version of it, as a state.
adapter() {
    as_user mkdir -p "$TB_WORK/trained/lora"
    as_user sh -c "echo '{\"peft_type\": \"LORA\", \"r\": $2}' >$TB_WORK/trained/lora/adapter_config.json"
    as_user selastic states push "$TB_WORK/$LORA/$1" "$TB_WORK/trained/lora"
}

# completes MODEL VERSION ADDRESS
completes() {
    [[ $(as_user curl -s "http://$3/v1/completions" -d "{\"model\": \"$1\", \"prompt\": \"x\"}" |
        json_value 's["choices"][0]["text"]') == "$2" ]]
}

has_models() { [[ $(as_user curl -s "http://$2/v1/models" | json_value '*(m["id"] for m in s["data"])') == "$1" ]]; }

@test "vllm-lora: adapters come, are replaced in place, and go, and no server is started anew" {
    export SERVICE=$LORA
    adapter ada 1
    adapter bob 1
    start "$LORA"
    wait_for 80 routed ada=shard_1 bob=shard_1
    wait_for 20 all_say ada 2 completes ada 000001
    before=$(servers lora_server.py)
    (($(wc -l <<<"$before") == 2))
    adapter ada 2
    wait_for 30 all_say ada 2 completes ada 000002
    adapter eve 1
    wait_for 30 routed ada=shard_1 bob=shard_1 eve=shard_1
    wait_for 20 all_say eve 2 completes eve 000001
    as_user rm -r "$TB_WORK/$LORA/bob"
    wait_for 30 routed ada=shard_1 eve=shard_1
    wait_for 20 all_say ada 2 has_models "base ada eve"
    [[ $(servers lora_server.py) == "$before" ]]
}

@test "vllm-lora: what is no adapter has its line" {
    export SERVICE=$LORA
    as_user mkdir "$TB_WORK/trained/none"
    as_user touch "$TB_WORK/trained/none/x"
    as_user selastic states push "$TB_WORK/$LORA/none" "$TB_WORK/trained/none"
    wait_for 60 why_has none '/v1/load_lora_adapter: HTTP status 404: No adapter found for /'
    all_say eve 2 completes eve 000001
}

# ---- the router of the job ----

need_router() { grep -q front: "$TB_WORK/$LORA.yaml" || skip "without haproxy"; }

# Prints http://ADDRESS:PORT.
router_at() { endpoints "$job" | sed -n 's|^front-0 \([^ ]*\) \([0-9]*\)$|http://\1:\2|p'; }

# asked TOKEN MODEL: the status.
asked() {
    as_user curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $1" \
        -d "{\"model\": \"$2\", \"prompt\": \"${3:-x}\"}" "$(router_at)/v1/completions"
}

TOKEN=0123456789abcdef0123

answers_at_router() { [[ $(asked $TOKEN "$1") == 200 ]]; }

@test "a router of the job waits for tokens, and then answers at its endpoint" {
    need_router
    export SERVICE=$LORA
    as_user sh -c "umask 077; echo $TOKEN >~/.slurm-elastic/services/$LORA/tokens"
    wait_for 40 ready_are "$job" front 1
    wait_for 20 answers_at_router ada
    [[ $(asked wrong-token-wrong-token ada) == 401 ]]
    [[ $(asked $TOKEN nobody) == 503 ]]
    run -0 as_user selastic roles "$job"
    [[ $output =~ front\ +router ]]
}

@test "OpenAI's client asks it by the body, and waits for an adapter that is being loaded" {
    need_router
    export SERVICE=$LORA
    npm=$("$TREE/scripts/setup" --print-npm) || skip "without openai from npm (scripts/setup --npm)"
    ask() { as_user node openai_client.cjs "$npm" "$(router_at)" "$1" "$2"; }
    [[ $(ask $TOKEN ada) == 000002 ]]
    [[ $(ask wrong-token-wrong-token ada) == "error 401" ]]
    ask $TOKEN new >"$TB_WORK/openai.log" 3>&- &
    client=$!
    adapter new 1
    wait "$client"
    [[ $(<"$TB_WORK/openai.log") == 000001 ]]
}

@test "Prometheus finds the servers by selastic endpoints" {
    prometheus=$(command -v prometheus) || skip "without prometheus"
    export SERVICE=$LORA
    as_user sh -c "selastic endpoints $job --role server-1 --format=prometheus >targets.json"
    cat >"$TB_WORK/prometheus.yml" <<YAML
global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: roles, file_sd_configs: [{files: [$TB_WORK/targets.json]}]}
YAML
    chmod 0644 "$TB_WORK/prometheus.yml"
    port=$(free_port)
    as_user sh -c "echo \$\$ >prometheus.own; exec $prometheus --config.file=prometheus.yml \
        --storage.tsdb.path=prometheus.data --web.listen-address=127.0.0.1:$port" >"$TB_WORK/prometheus.out" 2>&1 3>&- &
    wait_for 20 test -s "$TB_WORK/prometheus.own"
    cp "$TB_WORK/prometheus.own" "$TB_WORK/prometheus.pid"
    scraped() {
        [[ $(curl -s "http://127.0.0.1:$port/api/v1/query?query=lora_server_adapters" | json_value \
            '*sorted(r["metric"]["replica"] + "=" + r["value"][1] for r in s["data"]["result"])' 2>/dev/null) == "$1" ]]
    }
    count=$(table | json_value 'len(s["routes"])')
    wait_for 40 scraped "server-1-0=$count server-1-1=$count"
    end_process "$TB_WORK/prometheus.pid" TERM
}

@test "a router that is killed comes back, and so does its haproxy" {
    need_router
    export SERVICE=$LORA
    victim=$(pgrep -u "$TB_USER" -f "^[^ ]*/elastic-router $LORA ")
    as_user kill -KILL "$victim"
    another() { pgrep -u "$TB_USER" -f "^[^ ]*/elastic-router $LORA " | grep -vqx "$victim"; }
    wait_for 40 another
    wait_for 40 answers_at_router ada
    (($(pgrep -u "$TB_USER" -c -f "^[^ ]*haproxy .*elastic-router-[^ ]*$LORA/") <= 2))
}

@test "at the end of the job the router and its servers end what they have" {
    need_router
    export SERVICE=$LORA
    wait_for 20 answers_at_router ada
    asked $TOKEN ada slow >"$TB_WORK/slow.log" 3>&- &
    slow=$!
    begun() { for at in $(replicas_of ada); do as_user curl -s "http://$at/health"; done | grep -q '"busy": 1'; }
    wait_for 40 begun
    as_user scancel "$job"
    is_ending() { ! job_is "$job" RUNNING; }
    wait_for 20 is_ending
    as_user touch "$TB_WORK/answer"
    wait "$slow"
    [[ $(<"$TB_WORK/slow.log") == 200 ]]
    wait_for 60 job_ended "$job"
    run -1 pgrep -u "$TB_USER" -f "elastic-router-[^ ]*$LORA/"
}
