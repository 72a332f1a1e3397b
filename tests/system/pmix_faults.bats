#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# PMIx programs that do what they should not, and what befalls them: it harms nobody else.
# Takes 70 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 4
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/pmix/probe" "$TB_WORK/probe"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# probe_on_2 OPTION... MODE...: four of them on two nodes.
probe_on_2() {
    as_user timeout 300 srun -N2 --ntasks-per-node=2 --exclusive elasticrun --elastic=2:2 "$@"
}

# The pid of the PMIx server of a job on a node.
server_of() { pgrep -f "^elasticrun-pmix $2 $TB_DIR/snapshots/elastic-[0-9]*-$1\\." || true; }

has_new_server() { local pid; pid=$(server_of "$1" "$2"); [[ -n $pid && $pid != "$3" ]]; }

@test "a process that is killed inside a fence: the world is started again, and goes on" {
    run probe_on_2 --max-restarts=1 "$TB_WORK/probe" killed
    echo "$output"
    ((status == 0))
    for rank in 0 1 2 3; do
        [[ $'\n'"$output"$'\n' == *$'\n'"killed $rank: ok"$'\n'* ]]
    done
    [[ $output == *"generation 2"* && $output != *wrong* ]]
}

@test "malformed directives, fences that are too late, keys that nobody has, and a flood" {
    run probe_on_2 --max-restarts=0 "$TB_WORK/probe" malformed late never flood never
    echo "$output"
    ((status == 0))
    for mode in malformed late never flood; do
        for rank in 0 1 2 3; do
            [[ $output == *"$mode $rank: ok"* ]]
        done
    done
    # OpenPMIx 5 and 6 tell only one of a node's processes.
    [[ $output == *"late "[0-3]": told"* ]]
    [[ $output != *wrong* && $output != *"lost it"* ]]
}

@test "processes that end without a word to the server" {
    run probe_on_2 --max-restarts=0 "$TB_WORK/probe" leave
    echo "$output"
    ((status == 0))
    [[ $output == *"2 nodes, 4 workers"* && $output != *wrong* ]]
}

# strangers PORT [COMMAND...]: garbage for that port, and what it answers, for at most 10 s; by that command.
strangers() {
    local port=$1
    shift
    "$@" timeout 10 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; head -c 100000 /dev/urandom >&3; cat <&3 >/dev/null" || true
}

@test "what strangers and the user himself send to the server's port" {
    job=$(submit --elastic=2:2 -N2 --ntasks-per-node=2 --exclusive -t 30 --wrap \
        "srun elasticrun --max-restarts=0 bash -c 'until [[ -e $TB_WORK/begin ]]; do sleep 0.1; done; exec $TB_WORK/probe fences'")
    wait_for 30 size_is "$job" 2
    uri=$(head -n 1 "$TB_DIR"/snapshots/elastic-*-"$job".*-n1/pmix/pmix.n1.tool.elasticrun)
    port=${uri##*:}
    as_user touch "$TB_WORK/begin"
    if ((UID == 0)); then
        # Another user: garbage, and silence.
        strangers "$port" setpriv --reuid=nobody --regid=nogroup --clear-groups
        timeout 3 setpriv --reuid=nobody --regid=nogroup --clear-groups \
            bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; sleep 1; read -r -t 1 -u 3" || true
        [[ -n $(server_of "$job" n1) ]]
    fi
    # While they are there, the fences go on.
    wait_for 60 job_ended "$job"
    cat "$TB_WORK/$job.out"
    job_is "$job" COMPLETED
    (($(grep -c '^fences [0-3]: ok$' "$TB_WORK/$job.out") == 4))
}

@test "training without PMIx: the server is stopped, fed with garbage, killed, and nothing happens" {
    job=$(train 2:2 100000 0.2 -- -N2)
    goes_on "$job"
    generation=$(generation_of "$job")
    server=$(server_of "$job" n1)
    [[ -n $server ]]
    uri=$(head -n 1 "$TB_DIR"/snapshots/elastic-*-"$job".*-n1/pmix/pmix.n1.tool.elasticrun)
    strangers "${uri##*:}" as_user
    goes_on "$job"
    server=$(server_of "$job" n1)
    [[ -z $server ]] || kill -STOP "$server"
    goes_on "$job"
    [[ -z $server ]] || kill -KILL "$server"
    wait_for 30 says "$TB_WORK/$job.out" 'elasticrun-pmix was ended by signal 9'
    goes_on "$job"
    [[ $(generation_of "$job") == "$generation" ]]
    size_is "$job" 2
}

@test "elasticrun-pmix killed under a PMIx program: the next world has it again, tools find it" {
    script restart.sh <<EOF
#!/bin/bash
if ((TORCHELASTIC_RESTART_COUNT == 0)); then
    touch "$TB_WORK/first.\$RANK"
    until [[ -e $TB_WORK/go ]]; do sleep 0.1; done
    exit 1
fi
timeout 200 "$TB_WORK/probe" fences && exec sleep 1800
EOF
    job=$(submit --elastic=2:2 -N2 --ntasks-per-node=2 --exclusive -t 30 --wrap "srun elasticrun --max-restarts=3 $TB_WORK/restart.sh")
    wait_for 30 size_is "$job" 2
    wait_for 30 test -e "$TB_WORK/first.0"
    server=$(server_of "$job" n1)
    kill -KILL "$server"
    wait_for 30 says "$TB_WORK/$job.out" 'elasticrun-pmix was ended by signal 9'
    touch "$TB_WORK/go"
    wait_for 30 has_new_server "$job" n1 "$server"
    wait_for 60 says "$TB_WORK/$job.out" '^fences 0: ok$'
    run -0 as_user PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$TB_DIR/snapshots" timeout 200 pps
    grep -E "^(Active nspaces:|Namespace) $job\.0\." <<<"$output" # before and since PMIx 7
}

@test "elasticrun-pmix stands still: the next world starts without it, and the one after has it again" {
    script hung.sh <<EOF
#!/bin/bash
echo "start \$TORCHELASTIC_RESTART_COUNT \$RANK \${PMIX_NAMESPACE:-without}"
until [[ -e $TB_WORK/go.\$TORCHELASTIC_RESTART_COUNT ]]; do sleep 0.1; done
((TORCHELASTIC_RESTART_COUNT < 2)) && exit 1
exec timeout 200 "$TB_WORK/probe" never
EOF
    job=$(submit --elastic=2:2 -N2 --ntasks-per-node=2 --exclusive -t 30 --wrap "srun elasticrun --max-restarts=3 $TB_WORK/hung.sh")
    wait_for 30 says "$TB_WORK/$job.out" '^start 0 0 '
    kill -STOP "$(server_of "$job" n1)"
    touch "$TB_WORK/go.0"
    wait_for 60 says "$TB_WORK/$job.out" '^start 1 0 without$'
    wait_for 30 says "$TB_WORK/$job.out" 'n1: workers start without PMIx: elasticrun-pmix does not answer'
    touch "$TB_WORK/go.1"
    wait_for 60 says "$TB_WORK/$job.out" "^start 2 0 $job.0.3."
    touch "$TB_WORK/go.2"
    wait_for 60 job_ended "$job"
    cat "$TB_WORK/$job.out"
    job_is "$job" COMPLETED
}
