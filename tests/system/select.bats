#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# select/elastic_cons_tres on a testbed of 16 nodes: leaf switches s1 to s4 of four nodes, of which the
# first two are of shape a, the others of shape b. All jobs have whole nodes, and nothing runs in them: the
# form is simple, since in the realistic one each allocation starts a slurmstepd on each of its nodes.
# Takes 65 s

load helpers
load select

# Only root makes device nodes. GPUS: of the testbed, ALL_GPUS: of a job that wants all of a node.
GPUS=() ALL_GPUS=()
((UID)) || GPUS=(--gpus-per-node 2) ALL_GPUS=(--gres=gpu:2)

setup_file() {
    has_plugin select_elastic_cons_tres || return 0
    testbed_up --simple --nodes 16 --select --grace 0 "${GPUS[@]}"
    # They have nothing to do here, and take time.
    sed -i -E '/^(Prolog|Epilog)=/d' "$TB_DIR/etc/slurm.conf"
    reconfigure
    on_testbed scontrol setdebug debug
}

teardown_file() { testbed_down; }

setup() { need_plugin select_elastic_cons_tres; }

teardown() {
    has_plugin select_elastic_cons_tres || return 0
    cancel_all
}

@test "a base begins where MAX will have room, and its extensions come to it" {
    # s1 has one node left, s2 two, s3 three.
    for nodes in 'n[1-3]' 'n[5-6]' n9; do
        allocate -w "$nodes" >/dev/null
    done
    base=$(allocate --elastic=1:3)
    is_at "$base" n10
    log | grep -q "JobId=$base: 3 nodes of shape b below switch s3, level 0: n10"
    # Not on s3, where the first one is to grow: a leaf with room for its own MAX.
    other=$(allocate --elastic=1:3)
    is_at "$other" n13
    # On s2 there is no more than MAX.
    third=$(allocate --elastic=1:2)
    is_at "$third" n7
    is_at "$(extend "$base" 2)" 'n[11-12]'
    is_at "$(extend "$third" 1)" n8
    is_at "$(extend "$other" 1)" n14
}

@test "an extension goes to its base's leaf, then to its shape elsewhere, then anywhere" {
    allocate -w 'n[2,3]' >/dev/null
    base=$(allocate -w n1 --elastic=1:12)
    is_at "$(extend "$base" 1)" n4
    is_at "$(extend "$base" 1)" n5
    # Where the job is by now, though the base is not.
    is_at "$(extend "$base" 2)" 'n[6-7]'
    # What is left there, and no more of the other shape than need be.
    is_at "$(extend "$base" 2)" 'n[8-9]'
    log | grep -q "2 nodes of shape any nearest to the job's: n\[8-9\]"
    is_at "$(extend "$base" 1)" n10
    is_at "$(extend "$base" 2)" 'n[11-12]'
}

@test "an extension for replicas is where Slurm itself puts it" {
    echo 'roles: {a: {leads: yes, run: [a]}}' >"$TB_WORK/rl.yaml"
    chmod a+r "$TB_WORK/rl.yaml"
    allocate -w 'n[1-3]' >/dev/null
    base=$(allocate -N1 -w n9 --elastic-roles="$TB_WORK/rl.yaml")
    # The smallest leaf with room. One for a world would be on n10.
    is_at "$(allocate -n1 -p elastic --elastic-extend="$base" --comment="elastic-extension-of=$base.0")" n4
}

@test "where jobs may share cores, an extension goes to idle nodes all the same" {
    on_testbed scontrol update partitionname=elastic oversubscribe=FORCE:2
    base=$(allocate -w n1 --elastic=1:4)
    allocate -w 'n[2-4]' -p elastic >/dev/null
    is_at "$(extend "$base" 2)" 'n[5-6]'
    on_testbed scontrol update partitionname=elastic oversubscribe=NO
}

@test "who names nodes has them" {
    base=$(allocate --elastic=1:4 -w n16)
    is_at "$base" n16
    is_at "$(allocate -N1 -p elastic -w n1 --elastic-extend="$base" --comment="elastic-extension-of=$base.0")" n1
    is_at "$(allocate --elastic=1:4 --exclude='n[1-14]')" n15
}

@test "the smallest possible number of nodes leaves" {
    local -A size
    for wanted in 1 2 3 4 5 6; do
        base=$(allocate --elastic=1:11)
        allocate -N5 >/dev/null
        size=()
        for nodes in 1 2 3 4; do
            size[$(extend "$base" $nodes)]=$nodes
        done
        preemptor=$(allocate -N "$wanted")
        left=0
        for job in "${!size[@]}"; do
            job_is "$job" RUNNING || left=$((left + size[$job]))
        done
        printf '%d nodes wanted, %d have left\n' "$wanted" "$left"
        [ "$left" -eq "$wanted" ]
        job_is "$base" RUNNING
        cancel_all
    done
    log | grep -qE "JobId=$preemptor lets JobId=[0-9]+ go: extension of"
}

@test "of equal extensions the far one leaves, then the young one; a base last" {
    base=$(allocate --elastic=1:6 -p elastic)
    is_at "$base" n1
    near=$(extend "$base" 1)
    young=$(extend "$base" 1)
    is_at "$young" n3
    far=$(allocate -N1 -p elastic -w n9 --elastic-extend="$base" --comment="elastic-extension-of=$base.0")
    allocate -w 'n[4-8,10-16]' >/dev/null
    for next in "$far" "$young" "$near" "$base"; do
        job_is "$next" RUNNING
        allocate -N1 >/dev/null
        ! job_is "$next" RUNNING
    done
}

@test "a base without extensions is spared no more than a rigid job" {
    base=$(allocate --elastic=1:2 -w n1)
    extend "$base" 1 >/dev/null
    honest=$(allocate -p elastic -N2 -w 'n[5-6]')
    alone=$(allocate --elastic=2:2 -p elastic -w 'n[7-8]')
    allocate -w "$(on_testbed sinfo -h -t idle -N -o %N | sort -u | paste -sd,)" >/dev/null
    allocate -N2 >/dev/null
    job_is "$honest" RUNNING
    run ! job_is "$alone" RUNNING
}

@test "extensions that share a node make their base larger by one node, not by each of them" {
    echo 'roles: {a: {leads: yes, run: [a]}}' >"$TB_WORK/rl.yaml"
    chmod a+r "$TB_WORK/rl.yaml"
    honest=$(allocate -p elastic -N2 -w 'n[5-6]')
    base=$(allocate -p elastic -N2 -w 'n[7-8]' --elastic-roles="$TB_WORK/rl.yaml")
    for _ in 1 2; do
        shared=$(as_user salloc --no-shell -n1 --mem=1 -t 60 -p elastic -w n9 --elastic-extend="$base" \
            --comment="elastic-extension-of=$base.0" 2>&1)
        [[ $shared =~ Granted ]]
    done
    allocate -w "$(on_testbed sinfo -h -t idle -N -o %N | sort -u | paste -sd,)" >/dev/null
    allocate -N2 >/dev/null
    job_is "$honest" RUNNING
    run ! job_is "$base" RUNNING
}

# leaves_with ARGUMENT...: which of a rigid job and a younger base leaves beside an extension, which has so much of a
# node that others may share.
leaves_with() {
    local honest base text
    honest=$(allocate -p elastic -N1 -w n5)
    base=$(allocate -p elastic -N1 -w n7 --elastic=1:4)
    text=$(as_user salloc --no-shell -n1 -t 60 -p elastic -w n9 --elastic-extend="$base" \
        --comment="elastic-extension-of=$base.0" "$@" 2>&1)
    [[ $text =~ Granted ]]
    allocate -w "$(on_testbed sinfo -h -t idle -N -o %N | sort -u | paste -sd,)" >/dev/null
    allocate -N2 >/dev/null
    job_is "$honest" RUNNING || echo the rigid job
    job_is "$base" RUNNING || echo the base
    cancel_all
}

@test "a base is spared only for an extension that has as much of each resource, on a node that others may share" {
    [[ $(leaves_with -c4 --mem=4000 "${ALL_GPUS[@]}") == 'the rigid job' ]]
    [[ $(leaves_with --mem=4000 "${ALL_GPUS[@]}") == 'the base' ]]
    [[ $(leaves_with -c4 --mem=1 "${ALL_GPUS[@]}") == 'the base' ]]
}

@test "a base with GPUs is not spared for an extension without them" {
    ((${#ALL_GPUS[@]})) || skip "only root makes device nodes"
    [[ $(leaves_with -c4 --mem=4000) == 'the base' ]]
    [[ $(leaves_with -c4 --mem=4000 --gres=gpu:1) == 'the base' ]]
}

@test "an extension keeps off nodes that have been left for a job that still waits" {
    on_testbed scontrol update partitionname=spare gracetime=1200
    # The backfill scheduler keeps nodes for the preemptor for as long as that may run, 60 minutes. Only if no other node is
    # free earlier, it tests the extension on these nodes, too. So the jobs on the other nodes last longer.
    base=$(allocate --elastic=1:3 -w n1 --time=180)
    slow=$(allocate -p spare -w n2)
    quick=$(extend "$base" 1)
    is_at "$quick" n3
    allocate -w 'n[4-16]' --time=180 >/dev/null
    preemptor=$(submit -N2 --exclusive --wrap 'sleep 600')
    wait_for 30 job_ended "$quick"
    again=$(submit -N1 -p elastic -t 1 --elastic-extend="$base" \
        --comment="elastic-extension-of=$base.0" --wrap 'sleep 600')
    # Since 24.11 such a test says that it is about later. Then the plugin leaves it alone, and there is only the planned start.
    keeps_off() {
        log | grep -q "JobId=$again keeps off nodes that JobId=$preemptor waits for" ||
            { slurm_at_least 24.11 && [[ $(job_field "$again" StartTime) == 20* ]]; }
    }
    wait_for 30 keeps_off
    job_is "$again" PENDING
    job_is "$preemptor" PENDING
    as_user scancel "$slow"
    wait_for 30 job_is "$preemptor" RUNNING
    is_at "$preemptor" 'n[2-3]'
    on_testbed scontrol update partitionname=spare gracetime=0
}

@test "random jobs: as lib/placement says, rigid ones as ever, and no more nodes leave" {
    "$TREE/bench/placement" --sequences 2 --seed 76 --prefix "$prefix" --builddir "$top_builddir"
}

@test "a running elastic job survives restarts, reconfiguration and another SelectType" {
    conf=$TB_DIR/etc/slurm.conf
    allocate -w 'n[1-2]' >/dev/null
    base=$(allocate --elastic=1:6)
    is_at "$base" n5
    is_at "$(extend "$base" 2)" 'n[6-7]'
    reconfigure
    is_at "$base" n5
    # Our plugin goes, and comes back.
    sed -i 's,^SelectType=.*,SelectType=select/cons_tres,' "$conf"
    restart
    is_at "$base" n5
    on_testbed scontrol show config | grep -q 'SelectType *= select/cons_tres$'
    one=$(allocate -w n16)
    sed -i 's,^SelectType=.*,SelectType=select/elastic_cons_tres,' "$conf"
    restart
    job_is "$one" RUNNING
    is_at "$base" n5
    is_at "$(extend "$base" 1)" n8
    on_testbed scancel "$base" "$one"
    wait_for 10 job_ended "$base"
    as_user srun -N2 --exclusive hostname
}

@test "without a shapes file switches count, with a broken one as well; without switches shapes do" {
    etc=$TB_DIR/etc
    mv "$etc/elastic-shapes.json" "$TB_HOME/shapes"
    reconfigure
    allocate -w 'n[5-6]' >/dev/null
    base=$(allocate --elastic=2:8)
    is_at "$base" 'n[1-2]'
    is_at "$(extend "$base" 2)" 'n[3-4]'
    echo '{"format": 1}' >"$etc/elastic-shapes.json"
    reconfigure
    wait_for 10 says "$TB_DIR/log/slurmctld.log" 'elastic-shapes.json: "shapes" is missing'
    # Two nodes are left on s2; but four more are to come in all, and s3 has room for them.
    is_at "$(extend "$base" 2)" 'n[9-10]'
    cp "$TB_HOME/shapes" "$etc/elastic-shapes.json"
    sed -i '/^TopologyPlugin/d' "$etc/slurm.conf"
    restart
    cancel_all
    allocate -w 'n[1-4]' >/dev/null
    # Of shape a there are only four nodes left.
    is_at "$(allocate --elastic=1:5)" n9
    # For whoever starts slurmctld next.
    echo 'TopologyPlugin=topology/tree' >>"$etc/slurm.conf"
}

@test "a node is taken away, and comes back" {
    etc=$TB_DIR/etc
    base=$(allocate --elastic=1:4 -w n13)
    cp "$etc/slurm.conf" "$etc/topology.conf" "$TB_HOME"
    sed -i '/^NodeName=n16 /d' "$etc/slurm.conf"
    sed -i 's/n\[13-16\]/n[13-15]/' "$etc/topology.conf"
    restart
    is_at "$(extend "$base" 2)" 'n[14-15]'
    cp "$TB_HOME/slurm.conf" "$TB_HOME/topology.conf" "$etc"
    restart
    wait_for 30 nodes_are 13 idle
    is_at "$(extend "$base" 1)" n16
}

@test "slurmctld says that it is loaded, commands say nothing of it, also where the shapes file cannot be read" {
    grep -q '\] select/elastic_cons_tres: places elastic jobs' "$TB_DIR/log/slurmctld.log"
    chmod 0600 "$TB_DIR/etc/elastic-shapes.json"
    for command in sinfo squeue 'scontrol show nodes' 'scontrol show jobs' 'srun -N1 true'; do
        # shellcheck disable=SC2086
        run -0 --separate-stderr as_user $command
        [ -z "$stderr" ]
    done
}
