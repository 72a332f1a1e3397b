#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# examples/fit, by the commands of its README: a model of digits is trained, served, and trained
# further. Its server, of which there is one here, is replaced under load.
# Takes 30 s

load helpers
load elastic
load roles
load serve
load fit

setup_file() {
    local name
    for name in torch sklearn; do
        /usr/bin/python3 -c "import importlib.util as u; exit(not u.find_spec('$name'))" || skip "without $name"
    done
    for name in haproxy hey; do
        [[ -x $(PATH=$PATH:/usr/sbin command -v "$name") ]] || skip "without $name"
    done
    export SERVICE=e$$ # services outlive jobs and testbeds
    testbed_up --nodes 1 --cpus-per-node 8
    mkdir "$TB_WORK/examples"
    cp -r "$TREE"/examples/{digits,serve,fit} "$TB_WORK/examples/"
    chown -R "$TB_USER" "$TB_WORK/examples"
    sed -i "s/digits-fit/$SERVICE/; s/replicas: 2/replicas: 1/" "$TB_WORK/examples/fit/fit.yaml"
    free_port >"$TB_WORK/port"
}

teardown_file() {
    end_process "$TB_WORK/hey.pid" INT
    end_process "$TB_WORK/router.pid" TERM
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || { tail -n 60 "$TB_WORK"/examples/fit/*.{out,log}; as_user selastic fit list "$SERVICE"; }; }

# command_of PATTERN: the first command of the README that matches, for this service and port.
command_of() {
    sed -e '/^mkdir/,/^```/!d' -e ':more; /\\$/ {N; s/\\\n *//; b more}' -e 's/  *#.*//' \
        -e "s/digits-fit/$SERVICE/; s/8080/$(<"$TB_WORK/port")/" "$TB_WORK/examples/fit/README.md" | grep -m 1 -e "$1"
}

# does PATTERN: runs it.
does() {
    local command
    command=$(command_of "$1") && as_user sh -c "cd examples/fit && $command"
}

is_listed() { [[ $(does '^selastic services' 2>/dev/null) == *"$SERVICE"* ]]; }

# right STATE: prints how many images the client has right, if that state has answered.
right() {
    local said
    said=$(does '^python3 .*client.py')
    [[ $said =~ ^digit\ $1:\ ([0-9]+)\ of\ 360\ right$ ]] && echo "${BASH_REMATCH[1]}"
}

@test "a model is trained, served, and trained further; no request fails" {
    does '^mkdir'
    does '^echo'
    does '^sbatch'
    wait_for 60 is_listed
    run -0 does '^selastic fit start .*few'
    [[ $output == "fit 1 of $SERVICE: model digit has been trained, and is served" ]]
    router=$(command_of '^selastic router')
    as_user sh -c "cd examples/fit; echo \$\$ >router.pid; exec ${router%&}" 3>&- &
    wait_for 20 test -s "$TB_WORK/examples/fit/router.pid"
    cp "$TB_WORK/examples/fit/router.pid" "$TB_WORK/"
    few=$(right 000001)
    hey -z 60m -c 2 -q 10 -t 60 "http://127.0.0.1:$(<"$TB_WORK/port")/v2/models/digit" >"$TB_WORK/hey.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/hey.pid"
    run -0 does '^selastic fit start .*more'
    [[ $output == "fit 2 of $SERVICE: model digit has been trained, and is served" ]]
    run -0 does '^selastic fit log'
    # PyTorch warns of torch.jit.script with Python 3.14.
    [[ ${lines[-1]} =~ ^images\ 0\ to\ 1400:\ [0-9.]+%\ of\ 360\ images$ ]]
    more=$(right 000002)
    echo "$few, then $more right"
    ((more > few))
    run -0 as_user selastic states show examples/fit/repository/digit
    [[ $output == *"/000002 (current)"*"Previous: 000001"* ]]
    end_process "$TB_WORK/hey.pid" INT
    cat "$TB_WORK/hey.log"
    run -1 grep 'Error distribution' "$TB_WORK/hey.log"
    [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/hey.log") == 1 ]]
    (($(sed -n 's/.*\[200\][[:space:]]*\([0-9]*\) responses/\1/p' "$TB_WORK/hey.log") > 50))
    end_process "$TB_WORK/router.pid" TERM
    does '^scancel'
    wait_for 40 no_jobs
}
