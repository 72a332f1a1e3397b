#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/matrix: which sources it takes, and what it says when it cannot use them.

load helpers

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    matrix=$top_srcdir/scripts/matrix
}

# source_of VERSION: as much of an unpacked Slurm as the search looks at.
source_of() {
    mkdir -p "sources/$1"
    printf '  Name:\t\tslurm\n  Version:\t%s\n' "$1" >"sources/$1/META"
    printf '#!/bin/sh\nexit 1\n' >"sources/$1/configure"
    chmod +x "sources/$1/configure"
}

# The functions of the script, without its main().
functions() {
    sed '/^main "\$@"$/d' "$matrix" >functions.sh
    sed -i "s|^TOP=.*|TOP=$top_srcdir|" functions.sh
    # shellcheck disable=SC1091 # written above
    . ./functions.sh
    set +u
    SOURCES=$PWD/sources
}

@test "of each release the newest is taken, and none before 22.05" {
    for version in 21.08.8 22.05.8 22.05.11 24.05.8 24.11.5 24.11.10; do
        source_of "$version"
    done
    functions
    choose
    [ "$(printf '%s\n' "${CHOSEN[@]%% *}" | tr '\n' ' ')" = "22.05.11 24.05.8 24.11.10 " ]
    choose 24.11.5 22.05
    [ "$(printf '%s\n' "${CHOSEN[@]%% *}" | tr '\n' ' ')" = "24.11.5 22.05.11 " ]
}

@test "release archives and tags are sources, too" {
    mkdir sources
    touch sources/slurm-25.05.1.tar.bz2 sources/slurm-doc.tar.gz
    functions
    choose
    [ "${CHOSEN[*]}" = "25.05.1 archive $SOURCES/slurm-25.05.1.tar.bz2" ]
    git init -q sources
    git -C sources -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
    git -C sources tag slurm-25-05-3-1
    git -C sources tag slurm-25-11-0-0rc1
    choose
    [ "${CHOSEN[*]}" = "25.05.3 tag slurm-25-05-3-1" ]
}

@test "what it cannot do, it says" {
    mkdir empty
    run -2 "$matrix" --slurm-sources empty
    [ "$output" = "matrix: $PWD/empty has no source of Slurm (see scripts/matrix --help)" ]
    run -2 "$matrix"
    [ "$output" = "matrix: nothing to do: give --compile or --slurm-sources DIR (see scripts/matrix --help)" ]
    run -2 "$matrix" --slurm-sources empty --tests spank,absent
    [ "$output" = "matrix: --tests absent: there is no tests/system/absent.bats" ]
    run -2 "$matrix" --compile
    [ "$output" = "matrix: where are Slurm's sources? Give --slurm-sources DIR" ]
    run -2 "$matrix" --compile --slurm-sources absent
    [ "$output" = "matrix: there is no directory 'absent'" ]
    run -2 "$matrix" --compile --slurm-sources empty
    [ "$output" = "matrix: $PWD/empty has no source of Slurm (see scripts/matrix --help)" ]
    run -2 "$matrix" --compile --slurm-sources empty later
    [ "$output" = "matrix: 'later' is no version of Slurm; one looks like 24.05 or 24.05.8" ]
    source_of 24.05.8
    run -2 "$matrix" --compile --slurm-sources sources 23.11
    [[ $output == "matrix: $PWD/sources has no source of Slurm 23.11, but of: 24.05.8"* ]]
}

@test "a Slurm that was made without libmariadb-dev: that is said, and tests with slurmdbd are skipped" {
    functions
    MATRIX=$PWD/matrix
    ELASTIC_SLURM=$MATRIX/slurm-24.05.8/slurm
    mkdir -p "$ELASTIC_SLURM/lib/slurm"
    run -0 say_what_lacks 24.05.8
    [[ $output == "matrix: Slurm 24.05.8 was made without libmariadb-dev: "*"(qos) are skipped"* ]]
    # bats may miss the process that counts the time of a test which ends at once, and waits for it.
    run -0 env -u BATS_RUN_TMPDIR BATS_TEST_TIMEOUT=20 ELASTIC_SLURM="$ELASTIC_SLURM" TMPDIR="$PWD" bats --tap "$top_srcdir/tests/system/qos.bats"
    printf '%s\n' "$output"
    [[ $(grep -c '^ok .* # skip .* no accounting_storage_mysql.so' <<<"$output") == "${lines[0]#1..}" ]]
    touch "$ELASTIC_SLURM/lib/slurm/accounting_storage_mysql.so"
    run -0 say_what_lacks 24.05.8
    [ -z "$output" ]
}

# --- roots of systems -----------------------------------------------------------------------------

@test "a mirror that does not answer is named" {
    command -v wget >/dev/null || skip "no wget"
    functions
    MATRIX=$PWD/matrix MIRROR=http://127.0.0.1:1/debian
    run -2 reach debian13
    [ "$output" = "matrix: the mirror $MIRROR is not reachable, or has no trixie (another one: --mirror URL)" ]
    mkdir -p matrix/roots/debian13 # which needs no mirror any more
    run -0 reach debian13
}

@test "systems, parts and tests that there are not" {
    run -2 "$matrix" --parts quick,slow debian13
    [ "$output" = "matrix: 'slow' is no part; there are: demo quick system" ]
    run -2 "$matrix" debian13 no_such_test
    [ "$output" = "matrix: no file of tests/system has 'no_such_test' in its name" ]
    run -2 "$matrix" --available debian11
    [ "$output" = "matrix: which systems? There are: debian12 debian13 forky" ]
    functions
    test_files live pmix_
    [ "${FILES[*]}" = "tests/system/live.bats tests/system/pmix_" ]
}

@test "the copy of the tree has the files of the tree, and what was built there stays" {
    functions
    MATRIX=$PWD/matrix TOP=$PWD/tree LOG=$PWD INSIDE=/srv
    git init -q tree
    mkdir -p tree/sub
    echo 1 >tree/sub/kept
    echo 1 >"tree/with a blank"
    printf 'build/\n' >tree/.gitignore
    mkdir tree/build
    touch tree/build/here
    copy_tree one
    mkdir "$MATRIX/roots/one/srv/build"
    touch "$MATRIX/roots/one/srv/build/there"
    rm "tree/with a blank"
    echo 2 >tree/sub/kept
    copy_tree one
    cd "$MATRIX/roots/one/srv"
    [ "$(find . -path ./.git -prune -o -type f -print | sort | tr '\n' ' ')" = "./.gitignore ./build/there ./sub/kept " ]
    [ "$(cat sub/kept)" = 2 ]
    [ "$(git ls-files | tr '\n' ' ')" = ".gitignore sub/kept " ]
}

@test "results are a table and a sum" {
    functions
    MATRIX=$PWD
    mkdir results
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' system debian13 '' '' '' '' part setup 1 0 0 3 part build 1 0 0 60 \
        part quick 100 0 2 60 part system 40 3 0 300 >results/debian13.tsv
    printf 'version\tSlurm\t24.11.5\n' >>results/debian13.tsv
    run -0 results_table
    [ "${lines[0]}" = "| system | Slurm | PMIx | Open MPI | Python | PyTorch | json-c | gcc | setup | build | demo | quick | system |" ]
    [ "${lines[2]}" = "| debian13 | 24.11.5 | | | | | | | ok | ok | | 100 passed, 2 skipped | 40 passed, 3 FAILED |" ]
    run -0 results_sum debian13
    [ "$output" = "142 passed, 3 failed, 2 skipped" ]
}

# said TOTALS...: the results of such files of totals, one run after the other.
said() {
    local each
    SYSTEM=forky LOG=$PWD RESULT=$PWD/results/forky.tsv
    mkdir -p results "$MATRIX/roots/forky$INSIDE/build/check"
    # shellcheck disable=SC2317 # run_part calls it
    run_system() { cp "$PWD/now" "$MATRIX/roots/forky$INSIDE/build/check/totals"; }
    for each; do
        printf 'system\tforky\n' >"$RESULT.new"
        printf '%b' "$each" >now
        run_part system
        mv "$RESULT.new" "$RESULT"
        # The next runs are of some files only.
        FILES=(tests/system/spank.bats)
    done
}

@test "each file has its row, and one that was not run now keeps it" {
    functions
    MATRIX=$PWD FILES=("$ALL_FILES")
    said 'count\t1\t0\t0\tcheck\tbuild\ncount\t20\t2\t0\tsystem\ttests/system/spank.bats\nfailed\tsystem\ttests/system/spank.bats\tone\n'\
'count\t0\t0\t2\tsystem\ttests/system/wake.bats\nskipped\tsystem\ttests/system/wake.bats\tone\tno such thing\n'\
'skipped\tsystem\ttests/system/wake.bats\ttwo\tno such thing\n' \
        'count\t1\t0\t0\tcheck\tbuild\ncount\t22\t0\t1\tsystem\ttests/system/spank.bats\nskipped\tsystem\ttests/system/spank.bats\t\tanother\n'
    printf 'system\tdebian13\nsystem\tcount\t5\t1\t0\tsystem\ttests/system/qos.bats\n' >results/debian13.tsv
    run -0 files_table system
    [ "$output" = "| tests/system | debian13 | forky |
|---|---|---|
| qos | 5, 1 FAILED | – |
| spank | – | 22, 1 skipped |
| wake | – | 0, 2 skipped |
| all | 5, 1 FAILED | 22, 3 skipped |" ]
    run -0 skips_table system
    [ "$output" = "| skipped, for | debian13 | forky |
|---|---|---|
| no such thing | – | wake 2 |
| another | – | spank 1 |" ]
    [ "$(results_sum forky)" = "23 passed, 0 failed, 3 skipped" ]
    run ! grep -F failed results/forky.tsv
    # Of all files, nothing of before stays.
    FILES=("$ALL_FILES")
    said 'count\t22\t0\t0\tsystem\ttests/system/spank.bats\n'
    [ "$(results_sum forky)" = "22 passed, 0 failed" ]
}

@test "what scripts/check has counted here are results of this machine" {
    functions
    MATRIX=$PWD BUILD=$PWD/build
    SYSTEMS=(own)
    SUITES[own]=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    [ -n "${SUITES[own]}" ] || skip "/etc/os-release names no release"
    mkdir -p build/check
    printf 'count\t7\t0\t1\tunit\ttests/unit/test_plan\n' >build/check/totals
    own_results
    [ ! -e results/own.tsv ]
    printf 'count\t4\t1\t0\tsystem\ttests/system/qos.bats\ncount\t9\t0\t0\tsanitizers\tx\n' >>build/check/totals
    run -0 all_tables
    [[ ${lines[2]} == "| own |"*" 7 passed, 1 skipped | 4 passed, 1 FAILED |" ]]
    [ "${lines[5]}" = "| qos | 4, 1 FAILED |" ]
    # A root says more.
    printf 'system\town\npart\tsetup\t1\t0\t0\t3\n' >results/own.tsv
    run -0 all_tables
    [ "${#lines[@]}" = 3 ]
}

@test "a check that does not come to its end has failed" {
    functions
    MATRIX=$PWD FILES=("$ALL_FILES") SYSTEM=forky LOG=$PWD RESULT=$PWD/results/forky.tsv
    mkdir results
    # shellcheck disable=SC2317 # run_part calls it
    run_system() { return 1; }
    run -1 run_part system
    mv "$RESULT.new" "$RESULT"
    [ "$(results_sum forky)" = "0 passed, 1 failed" ]
}

@test "what runs in a root ends with the script, also if it is killed" {
    functions
    root_namespaces none true 2>/dev/null || skip "no namespaces here"
    (root_namespaces none bash -c 'echo $$ >"$1"; mount -t tmpfs none /mnt; exec sleep 1000' - "$PWD/pid") 3>&- &
    script=$!
    while [ ! -s pid ]; do sleep 0.05; done
    # The number that it has in its own namespace is 1; it is the child of unshare.
    inner=$(pgrep -P "$(pgrep -P "$script" || echo "$script")" || pgrep -P "$script")
    [ -d "/proc/$inner" ]
    kill -KILL "$script"
    for ((i = 0; i < 100; i++)); do
        [ -d "/proc/$inner" ] || break
        sleep 0.05
    done
    [ ! -d "/proc/$inner" ]
    run ! grep -F ' /mnt ' /proc/self/mountinfo
}

@test "a copy of a root keeps nothing, the root itself what is changed, and both are on their own" {
    functions
    root_namespaces none true 2>/dev/null || skip "no namespaces here"
    command -v pivot_root >/dev/null || skip "no pivot_root"
    mkdir -p root/{dev,proc,sys,tmp,run,etc} here
    ln -s usr/{bin,lib,lib64,sbin} root/
    options=(--read /usr=/usr --write "$PWD/here=/there")
    # shellcheck disable=SC2016 # expanded there
    try='echo $1 >/etc/mark; echo $1 >/there/mark; cat /proc/sys/kernel/hostname; ! touch /usr/mark; ls -a / | grep old || echo no old root'
    run root_run "$PWD/root" "${options[@]}" -- sh -c "$try" sh copy
    [[ $output == root*'/usr/mark'*'Read-only file system'*"no old root" ]]
    [ ! -e root/etc/mark ]
    [ "$(cat here/mark)" = copy ]
    run root_run "$PWD/root" --keep "${options[@]}" -- sh -c "$try" sh itself
    [ "$(cat root/etc/mark)" = itself ]
    [ "$(cat root/etc/hosts)" = $'127.0.0.1 localhost root\n::1 localhost' ]
    # The status of the command, and no network but its own.
    run -7 root_run "$PWD/root" "${options[@]}" -- sh -c 'cut -d: -f1 /proc/net/dev; exit 7'
    [ "$(sed 1,2d <<<"$output" | tr -d ' ' | sort | tr '\n' ' ')" = "eth0 eth1 lo " ]
    run ! grep -F " $PWD/" /proc/self/mountinfo
}

@test "cgroups of a root are its own, and go with it, also if it was killed" {
    functions
    root_namespaces none true 2>/dev/null || skip "no namespaces here"
    root_has_groups || skip "no hierarchies of cgroup v1"
    mkdir -p root/{dev,proc,sys,tmp,run,etc} here
    ln -s usr/{bin,lib,lib64,sbin} root/
    options=(--groups --read /usr=/usr --write "$PWD/here=/there")
    # shellcheck disable=SC2016 # expanded there
    try='set -e; cd /sys/fs/cgroup; ls; for each in *; do mkdir -p $each/one; done; cat cpuset/cpuset.cpus
        echo $$ >freezer/one/tasks; cut -d: -f2,3 /proc/self/cgroup | grep freezer; touch /there/in; '
    run -0 root_run "$PWD/root" "${options[@]}" -- sh -c "$try"
    [ "$output" = $'cpuacct\ncpuset\ndevices\nfreezer\nmemory\n'"$(cat /sys/fs/cgroup/cpuset/cpuset.cpus)"$'\nfreezer:/one' ]
    rm here/in
    (root_run "$PWD/root" "${options[@]}" -- sh -c "$try exec sleep 1000") 3>&- >pids &
    script=$!
    while [ ! -e here/in ]; do sleep 0.05; done
    [ -d "/sys/fs/cgroup/freezer/elastic-root-$script/one" ]
    kill -KILL "$script"
    wait "$script" || true
    while [ -n "$(cat "/sys/fs/cgroup/freezer/elastic-root-$script/one/tasks")" ]; do sleep 0.05; done
    # The next one removes them.
    run -3 root_run "$PWD/root" "${options[@]}" -- sh -c 'exit 3'
    run ! compgen -G "/sys/fs/cgroup/*/elastic-root-$script"
}

# --- Slurms from their sources --------------------------------------------------------------------

@test "tests are counted as bats tells of them, and what it does not tell of has failed" {
    functions
    run tap_counts spank <<'TAP'
1..6
ok 1 one
ok 2 two # skip Slurm's own
not ok 3 three
# not ok: a line of its log
ok 4 four
TAP
    [ "$output" = $'spank\t2\t3\t1' ]
    # Its testbed has not come up, or it was stopped before its first line.
    run tap_counts spank </dev/null
    [ "$output" = $'spank\t0\t1\t0' ]
}

@test "below /tmp the tests have the simple form" {
    functions
    unset ELASTIC_TESTBED
    CHOSEN=() MATRIX=/srv/matrix
    run_chosen
    [ -z "${ELASTIC_TESTBED:-}" ]
    MATRIX=/tmp/matrix
    run_chosen
    [ "$ELASTIC_TESTBED" = --simple ]
}

@test "the table is made of the results of all versions" {
    functions
    mkdir -p m/slurm-24.11.5 m/slurm-26.05.3
    printf 'spank\t20\t0\t0\nqos\t3\t1\t0\n' >m/slurm-24.11.5/results.tsv
    printf 'spank\t18\t0\t2\n' >m/slurm-26.05.3/results.tsv
    run slurms_table m/slurm-*/results.tsv
    [ "$output" = "| part | 24.11.5 | 26.05.3 |
|---|---|---|
| spank | 20 | 18, 2 skipped |
| qos | 3, 1 failed | – |
| all | 23, 1 failed | 18, 2 skipped |" ]
}

@test "what is tested on another system: files of tests/system by their names, and other paths of tests" {
    run -2 "$matrix" --available debian13 tests/nothing
    [ "$output" = "matrix: no file of tests/system has 'tests/nothing' in its name" ]
    # Not every machine can make a root.
    run "$matrix" --available debian13 spank tests/python
    [[ $output != *"no file of"* ]]
}
