#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Parts of two releases work together, or say why they do not: a rolling upgrade (doc/admin/upgrade.md).
# Takes 35 s

load helpers
load elastic

# A is the installation that is tested. B is the same with programs that say that they are of another release. Jobs run what is in NOW,
# where an upgrade can be played.
setup_file() {
    export BOTH A B NOW OTHER=$TREE/build/tests/system/other
    [[ -z ${top_builddir:-} ]] || OTHER=$top_builddir/tests/system/other
    BOTH=$(mktemp -d "${TMPDIR:-/var/tmp}/elastic-mixed.XXXXXX")
    chmod 0755 "$BOTH"
    A=$BOTH/a B=$BOTH/b NOW=$BOTH/now
    cp -a "${prefix:-$TREE/build/inst}" "$A"
    cp -a "$A" "$B"
    cp "$OTHER"/{elasticrun,selastic} "$B/bin/"
    cp "$OTHER/elasticrun-pmix" "$B/libexec/slurm-elastic/"
    cp -a "$A" "$NOW"
    prefix=$NOW testbed_up --nodes 4
    cp "$TREE"/tests/system/steps.py "$TB_WORK/"
    script on_n2 <<SH
#!/bin/bash
[[ \$SLURMD_NODENAME == n2 ]] && exec $B/bin/elasticrun "\$@"
exec $A/bin/elasticrun "\$@"
SH
}

teardown_file() {
    testbed_down
    rm -rf -- "$BOTH"
}

setup() { job=''; }

teardown() {
    cancel_all
    [[ -z $job ]] || cat "$TB_WORK/$job.out"
    install_over "$A"
}

# install_over PREFIX: as a package does: each file is replaced by a rename, while programs run.
install_over() {
    local file
    for file in bin/elasticrun bin/selastic libexec/slurm-elastic/elasticrun-pmix; do
        cp "$1/$file" "$NOW/$file.new"
        mv "$NOW/$file.new" "$NOW/$file"
    done
    # A release that adds functions has another number behind the name.
    [[ $1 == "$A" ]] && file=libelastic.so.0.0.0 || file=libelastic.so.0.1.0
    mv -n "$NOW"/lib/libelastic.so.0.[0-9]* "$NOW/lib/$file"
    ln -sfn "$file" "$NOW/lib/libelastic.so.0"
}

# mixed PROGRAM OPTION...: a training on 2 nodes, which grows when it is told to.
mixed() {
    job=$(submit --elastic=2:4 --elastic-grow-delay=0 --elastic-grow=ask --exclusive -t 10 "${@:2}" --wrap \
        "srun $1 /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.1")
    wait_for 40 steps_exceed "$job" 5
}

# exes_of JOB NODE WORD: what runs as the processes there that have this word in their command.
exes_of() {
    local pid
    for pid in $(job_processes "$1" "$2"); do
        ! tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qx -- "$3" || readlink "/proc/$pid/exe"
    done
}

shows() { as_user "${2:-selastic}" show "$job" 2>&1 | tr -s ' \n' ' ' | grep -q -- "$1"; }

@test "an upgrade while a job runs: it grows by agents of the next release, and both selastic show it" {
    mixed elasticrun
    install_over "$B"
    before=$(generation_of "$job")
    as_user "$A/bin/selastic" resize "$job" 3
    wait_for 60 size_is "$job" 3
    goes_on_after "$job" "$before"
    for node in n3 n4; do
        ! works_for_it "$job" "$node" || pid=$(agent_of "$(running_extensions_of "$job")" "$node")
    done
    [[ $(readlink "/proc/$pid/exe") == "$NOW/bin/elasticrun" ]]
    [[ $(readlink "/proc/$(agent_of "$job" n1)/exe") == "$NOW/bin/elasticrun (deleted)" ]]
    # An agent starts its workers by what it is itself, not by what is there now.
    [[ $(exes_of "$job" n1 --exec-worker) == "$NOW/bin/elasticrun (deleted)" ]]
    run ! says "$TB_WORK/$job.out" 'No events'
    shows 'Release 0[.0-9]* leads the job, this selastic is of 99.0.0 '
    shows 'Release' "$A/bin/selastic" && false
    as_user selastic resize "$job" 2
    wait_for 60 size_is "$job" 2
    enough "$job"
    steps_were_made_once "$job"
    # The next job is of the next release alone.
    mixed elasticrun
    shows 'Release' && false
    shows 'Release 99.0.0 leads the job, this selastic is of 0' "$A/bin/selastic"
    enough "$job"
}

@test "an extension of a release that speaks another protocol leaves at once, and selastic show says why" {
    # The server of a node is started once, later its processes by what is there then.
    script server >/dev/null <<SH
#!/bin/bash
export ELASTIC_TEST_RELEASE="77.0.0 7 6"
exec $B/libexec/slurm-elastic/elasticrun-pmix "\$@"
SH
    mv "$TB_WORK/server" "$NOW/libexec/slurm-elastic/elasticrun-pmix"
    mixed elasticrun
    wait_for 20 shows 'PMIx .*elasticrun-pmix (release 77.0.0) speaks protocol 6 to 7, elasticrun (release 0[.0-9]*) protocol 1: '
    # All that is started from now on.
    script next <<SH
#!/bin/bash
export ELASTIC_TEST_RELEASE="77.0.0 7 6"
exec $B/bin/elasticrun "\$@"
SH
    mv "$TB_WORK/next" "$NOW/bin/elasticrun"
    as_user "$A/bin/selastic" resize "$job" 3
    wait_for 60 shows 'Why not more .*elasticrun on n[34] (release 77.0.0) speaks protocol 6 to 7, elasticrun on n1 (release 0[.0-9]*) protocol 1: install one release of slurm-elastic on all nodes'
    wait_for 20 shows 'Left out n[34]'
    extensions_are_gone() { [[ -z $(extensions_of "$job") ]]; }
    wait_for 20 extensions_are_gone
    goes_on "$job"
    # selastic, too.
    run as_user ELASTIC_TEST_RELEASE="77.0.0 7 6" "$B/bin/selastic" show "$job"
    ((status == 1))
    [[ $output == *'selastic (release 77.0.0) speaks protocol 6 to 7, elasticrun on n1 (release 0'* ]]
    # Mended, growth goes on when somebody asks for it.
    install_over "$A"
    as_user selastic resize "$job" 2
    as_user selastic resize "$job" 3
    wait_for 60 size_is "$job" 3
    enough "$job"
    steps_were_made_once "$job"
}

@test "a base of two releases: each leads when the other is lost" {
    mixed "$TB_WORK/on_n2"
    [[ $(readlink "/proc/$(agent_of "$job" n2)/exe") == "$B/bin/elasticrun" ]]
    for lost in n1 n2; do
        before=$(generation_of "$job")
        led_by "$job" "$lost"
        as_user kill -KILL "$(agent_of "$job" "$lost")"
        [[ $lost == n1 ]] && next=n2 || next=n1
        wait_for 30 led_by "$job" "$next"
        goes_on_after "$job" "$before"
        wait_for 30 works_for_it "$job" "$lost" # it is started again
        wait_for 30 size_is "$job" 2
    done
    enough "$job"
}

@test "a base of two releases that do not understand each other ends at once, and says why" {
    job=$(submit --elastic=2:4 --exclusive -t 10 --wrap \
        "ELASTIC_TEST_RELEASE='0.0.9 2 2' srun $TB_WORK/on_n2 sleep 600")
    wait_for 30 job_ended "$job"
    says "$TB_WORK/$job.out" "job $job cannot start: elasticrun on n2 .release 0.0.9. speaks protocol 2, elasticrun on n1 "
}

@test "elastic.conf has a key that the release of one node of the base does not know: that node says so" {
    cp "$TB_DIR/etc/elastic.conf" "$TB_WORK/newer.conf"
    sed -i '1i new_key = 1' "$TB_WORK/newer.conf"
    chmod 0644 "$TB_WORK/newer.conf"
    script newer <<SH
#!/bin/bash
[[ \$SLURMD_NODENAME != n2 ]] || export ELASTIC_CONF=$TB_WORK/newer.conf
exec $A/bin/elasticrun "\$@"
SH
    job=$(submit --elastic=2:4 --exclusive -t 10 --wrap "srun $TB_WORK/newer sleep 600")
    wait_for 20 says "$TB_WORK/$job.out" "n2: $TB_WORK/newer.conf:1: unknown key 'new_key'.*this is elasticrun 0"
}
