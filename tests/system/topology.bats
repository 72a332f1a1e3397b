#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# selastic topology, and what follows of the tree of switches. All nodes of a testbed are this one machine; what tells them apart here is
# the site's TaskProlog, which gives each node's task the hwloc topology that it is to find (HWLOC_XMLFILE).
# Takes 35 s

# shellcheck disable=SC2034
bats_require_minimum_version 1.5.0
load helpers
load elastic

GPU='0302 \[10de:20b0\]'

setup_file() {
    testbed_up --nodes 8 --tree
    cp "$TREE/tests/unit/machines/dual-socket-8gpu.xml" "$TB_WORK/usual.xml"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    script task_prolog <<SH >/dev/null
#!/bin/bash
# Slurm's signal may end sleep alone.
while [[ -e $TB_WORK/hang-\$SLURMD_NODENAME ]]; do sleep 100; done
echo "export HWLOC_XMLFILE=$TB_WORK/machine-\$SLURMD_NODENAME.xml"
SH
    echo "TaskProlog=$TB_WORK/task_prolog" >>"$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
}

teardown_file() { testbed_down; }

setup() {
    for node in n1 n2 n3 n4 n5 n6 n7 n8; do cp "$TB_WORK/usual.xml" "$TB_WORK/machine-$node.xml"; done
    rm -f "$TB_WORK"/hang-* "$TB_DIR/etc/elastic-shapes.json"
    wait_for 20 nodes_are 8 idle
}

teardown() {
    cancel_all
    for node in n2 n7 n8; do on_testbed scontrol update "nodename=$node" state=resume 2>/dev/null || true; done
}

# Its first GPU; a DIMM of its first NUMA domain.
lose_gpu() { sed -i "0,/$GPU/s/$GPU/ff00 [0000:0000]/" "$TB_WORK/machine-$1.xml"; }
lose_dimm() { sed -i '0,/local_memory="[0-9]*"/s//local_memory="236223201280"/' "$TB_WORK/machine-$1.xml"; }

collect() { on_testbed selastic topology collect "$@"; }

shapes() { json_value 's["nodes"]' <"${1:-$TB_DIR/etc/elastic-shapes.json}"; }

@test "collect writes who has which shape, check finds the odd nodes, show draws the tree" {
    run ! on_testbed selastic topology show
    echo "$output"
    [[ $output == *"'selastic topology collect' makes it"* ]]
    run -0 collect
    echo "$output"
    [[ $output == "8 of 8 nodes have answered; 1 shape in $TB_DIR/etc/elastic-shapes.json" ]]
    [[ $(stat -c %a "$TB_DIR/etc/elastic-shapes.json") == 644 ]]
    [[ $(shapes) =~ ^\{\'n\[1-8\]\':\ \'2x16c-512g-8gpu-[0-9a-f]{6}\'\}$ ]]
    run -0 as_user selastic topology check
    echo "$output"
    [[ $output == 'nodes that should be alike are' ]]

    lose_gpu n5
    lose_dimm n6
    run -0 collect
    echo "$output"
    [[ $output == '8 of 8 nodes have answered; 3 shapes'* ]]
    run -1 as_user selastic topology check
    echo "$output"
    ((${#lines[@]} == 4))
    [[ ${lines[0]} == 'n5: 2x16c-512g-7gpu-'*', unlike 6 of 8 nodes (partitions batch,whole,elastic,spare), which are 2x16c-512g-8gpu-'* ]]
    [[ ${lines[1]} == '    3 GPUs (10de:20b0) near NUMA domain 0 instead of 4' ]]
    [[ ${lines[2]} == 'n6: 2x16c-484g-8gpu-'* ]]
    [[ ${lines[3]} == '    about 228 GiB of memory instead of 256 GiB in NUMA domain 0' ]]
    odd=$(as_user selastic topology check --json) || true
    [[ $(json_value '([o["node"] for o in s["odd"]], s["undecided"], s["not_collected"])' <<<"$odd") == "(['n5', 'n6'], [], None)" ]]

    run -0 as_user selastic topology show
    echo "$output"
    [[ $output == *"2 packages, 2 NUMA domains, 32 cores, 32 threads, 512 GiB, 8 GPUs, 9 NICs"* ]]
    [[ ${lines[-8]} == Switches: && ${lines[-7]} == s0 && ${lines[-6]} == '  s1' ]]
    [[ ${lines[-5]} == '    n[1-4]: 2x16c-512g-8gpu-'* && ${lines[-4]} == '  s2' ]]
    [[ ${lines[-3]} == '    n[7-8]: 2x16c-512g-8gpu-'* && ${lines[-2]} == '    n5: 2x16c-512g-7gpu-'* ]]
    shown=$(as_user selastic topology show --json)
    [[ $(json_value '[(w["switch"], w["level"], len(w["shapes"] or [])) for w in s["switches"]]' <<<"$shown") == \
        "[('s0', 1, 0), ('s1', 0, 1), ('s2', 0, 3)]" ]]
    [[ $(json_value '(s["shapes"][0]["description"]["gpus"][0]["count"], s["without_shape"])' <<<"$shown") == '(4, None)' ]]
}

@test "nodes that do not answer are listed with the reason, and keep the shape that they had" {
    run -0 collect --json
    echo "$output"
    on_testbed scontrol update nodename=n2 state=drain reason=test
    busy=$(submit -w n3 --exclusive --wrap 'sleep 3000')
    wait_for 20 job_is "$busy" RUNNING
    touch "$TB_WORK/hang-n4"
    lose_gpu n1
    lose_gpu n4
    rm "$TB_WORK/machine-n5.xml"
    echo nonsense >"$TB_WORK/machine-n6.xml"
    run -0 on_testbed selastic topology collect --timeout=20
    echo "$output"
    [[ $output == *'n2: drained (its shape of before is kept)'* ]]
    [[ $output == *'n3: all of it in use (its shape of before is kept)'* ]]
    [[ $output == *'n4: '*' (its shape of before is kept)'* ]]
    [[ $output == *"5 of 8 nodes have answered; 3 shapes in "* ]]
    # A topology that hwloc cannot read is the machine's own.
    [[ $(shapes) == *"'n1': '2x16c-512g-7gpu-"*"'n[2-4,7-8]': '2x16c-512g-8gpu-"*"'n[5-6]': '"* ]]
    rm "$TB_WORK/hang-n4"
    cancel_all

    before=$(<"$TB_DIR/etc/elastic-shapes.json")
    run -1 on_testbed selastic topology collect --nodes=n2
    echo "$output"
    [[ $output == *'n2: drained'*"no node has answered: $TB_DIR/etc/elastic-shapes.json is as it was" ]]
    [[ $(<"$TB_DIR/etc/elastic-shapes.json") == "$before" ]]
    run -1 on_testbed selastic topology collect --nodes=n9
    echo "$output"
    [[ $output == *"Slurm has no node 'n9'"* ]]
    run -1 on_testbed selastic topology collect --partition=none
    echo "$output"
    [[ $output == *'no nodes to ask'* ]]
}

@test "a user may collect for himself; bad files are refused" {
    run -1 as_user selastic topology collect --nodes=n1
    echo "$output"
    [[ $output == *"cannot write $TB_DIR/etc/elastic-shapes.json"* ]]
    run -0 as_user selastic topology collect --nodes='n[1,4]' --partition=spare --output="$TB_WORK/own.json"
    echo "$output"
    [[ $(shapes "$TB_WORK/own.json") == "{'n[1,4]': '"* ]]
    run -0 as_user selastic topology check --file="$TB_WORK/own.json"
    echo "$output"
    [[ ${lines[1]} == 'not collected yet: n[2-3,5-8]' ]]
    echo '{"format":2}' >"$TB_WORK/own.json"
    run -1 as_user selastic topology show --file="$TB_WORK/own.json"
    echo "$output"
    [[ $output == *"own.json: not a file of shapes: 'format' is not 1" ]]
    run -1 as_user selastic topology collect --nodes=n1 --output="$TB_WORK/own.json"
    echo "$output"
    [[ $output == *"own.json: not a file of shapes"* ]]
}

@test "newcomers have their ranks along the tree, beginning at the leaf of the last that stays" {
    on_testbed scontrol update nodename='n[7-8]' state=drain reason=test
    job=$(submit --elastic=2,6 --elastic-grow-delay=2 -w 'n[4-5]' --exclusive -t 60 --wrap \
        "srun elasticrun /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.1")
    wait_for 60 size_is "$job" 6
    run -0 json_value '[m["node"] for m in sorted(s["members"], key=lambda m: m["first_rank"])]' < <(show_json "$job")
    echo "$output"
    # Of n1 to n3 and n6, which have joined, n6 is below n5's switch.
    [[ $output == "['n4', 'n5', 'n6', 'n1', 'n2', 'n3']" ]]
    goes_on "$job"
    steps_were_made_once "$job"
}
