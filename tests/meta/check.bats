#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/check itself: what it does with tests that fail, on a small tree in place of this one.
# Takes 40 s

load helpers

# A tree that needs no build, with one good test in it.
setup() {
    tree=$BATS_TEST_TMPDIR/tree
    chmod a+x "$BATS_RUN_TMPDIR"
    mkdir -p "$tree"/{scripts,tests/meta,tests/unit,build}
    cp -R "$top_srcdir/tests/tap" "$tree/tests/"
    cp "$top_srcdir/scripts/check" "$tree/scripts/"
    chmod -R u+w "$tree"
    cat >"$tree/scripts/build.sh" <<'SH'
BUILD=$TOP/build PREFIX=$TOP/build/inst JOBS=2
main_build_with_tests() { sh -c ":"; }
install_privately() { :; }
SH
    printf '#!/bin/sh\necho --with-slurm-source=none\n' >"$tree/scripts/setup"
    chmod +x "$tree/scripts/setup"
    printf 'check:\nprint-tests:\n\t@echo tests/unit/good\n' >"$tree/build/Makefile"
    fake good 'echo "ok 1 - well"'
}

# fake NAME COMMAND: a test file with one test, in tests/unit.
fake() {
    printf '#!/bin/bash\necho 1..1\n%s\n' "$2" >"$tree/tests/unit/$1"
    chmod +x "$tree/tests/unit/$1"
    printf 'check:\nprint-tests:\n\t@echo %s\n' "$(cd "$tree" && echo tests/unit/*)" >"$tree/build/Makefile"
}

# fake_unstable NAME: fails the first time only.
fake_unstable() {
    fake "$1" "if [[ -e $tree/$1 ]]; then echo 'ok 1 - again'; else touch $tree/$1; echo 'not ok 1 - at first'; fi"
}

# check ARGUMENT...: only the fake tests.
check() {
    # Not those that this very run of bats uses.
    run env -u TMPDIR -u BATS_RUN_TMPDIR "$tree/scripts/check" --quick "$@" unit
    printf '%s\n' "$output"
}

line() { grep -qx -- "$1" <<<"$output"; }

# The steps "build" and "install" count as two.
@test "the last line counts what has passed" {
    check
    ((status == 0))
    [[ ${lines[-1]} == '3 passed, 0 failed' ]]
}

@test "root is told at once if other users may not enter the tree, whose programs they run" {
    ((EUID == 0)) || skip "only root runs programs as other users"
    chmod 700 "$tree"
    run -2 env -u TMPDIR -u BATS_RUN_TMPDIR "$tree/scripts/check" unit
    line "check: tests run as other users, who may not enter $tree; clone into a directory like /srv"
    check # --quick has nobody else's processes
    ((status == 0))
}

@test "a machine without what setup installs is told so" {
    mkdir "$tree/bin"
    ln -s "$(type -P bash)" "$(type -P dirname)" "$(type -P nproc)" "$tree/bin/"
    run -2 env PATH="$tree/bin" "$tree/scripts/check" --quick
    line 'check: this machine is not prepared; run scripts/setup --test-user'
}

@test "a file that fails the first time counts as passed, and is named as unstable" {
    fake_unstable shaky
    check
    ((status == 0))
    line 'once more, alone: tests/unit/shaky'
    [[ ${lines[-1]} == '4 passed, 0 failed' ]]
    [[ ${lines[-2]} == 'unstable: tests/unit/shaky' ]]
}

@test "bats ends at once when a system test fails, though the test had fifteen minutes" {
    mkdir "$tree/tests/system"
    cp "$top_srcdir/tests/system/helpers.bash" "$tree/tests/system/"
    printf 'load helpers\n@test "bad" { false; }\n' >"$tree/tests/system/bad.bats"
    run -1 env -u BATS_TEST_TIMEOUT -u BATS_RUN_TMPDIR timeout 60 bats --tap "$tree/tests/system/bad.bats"
    [[ $output == *"not ok 1 bad"* ]]
}

@test "of a skipped test the file of totals has the reason" {
    fake careful 'echo "ok 1 - well # skip no such thing"'
    check
    grep -qxF $'skipped\tunit\ttests/unit/careful\twell\tno such thing' "$tree/build/check/totals"
    line '  skipped: tests/unit/careful: well: no such thing'
}

@test "a file that fails twice has failed" {
    fake bad 'echo "not ok 1 - never"'
    check
    ((status == 1))
    line 'once more, alone: tests/unit/bad'
    [[ ${lines[-1]} == '3 passed, 1 failed' ]]
    [[ ${lines[-2]} == 'failed: tests/unit/bad: never' ]]
}

@test "what looks at the sources runs beside the build, and its failure counts" {
    command -v shellcheck >/dev/null || skip "no shellcheck"
    git -C "$tree" init -q
    printf 'main_build_with_tests() { until [[ -s $BUILD/check/beside-sources/log ]]; do sleep 0.1; done; }\n' \
        >>"$tree/scripts/build.sh"
    printf '#!/bin/bash\necho $1\n' >"$tree/scripts/careless"
    run -1 "$tree/scripts/check" --quick shellcheck
    printf '%s\n' "$output"
    line 'failed: shellcheck'
    [[ $output == *careless*SC2086* && ${lines[-1]} == '2 passed, 1 failed' ]]
}

@test "clang-format of another release than the tree's judges nothing" {
    mkdir "$tree/bin"
    printf '#!/bin/sh\n[ "$1" = --version ] || exit 1\necho "Debian clang-format version 19.1.7 (3)"\n' >"$tree/bin/clang-format"
    chmod +x "$tree/bin/clang-format"
    run -0 env -u TMPDIR PATH="$tree/bin:$PATH" "$tree/scripts/check" --quick clang-format
    printf '%s\n' "$output"
    [[ $output == *'the tree has the form of release 14, not 19'* && ${lines[-1]} == *' 0 failed, 1 skipped' ]]
}

@test "two files may be unstable, three may not" {
    fake_unstable one
    fake_unstable two
    check
    ((status == 0))
    [[ ${lines[-1]} == '5 passed, 0 failed' ]]
    rm "$tree/one" "$tree/two"
    fake_unstable three
    check
    ((status == 1))
    [[ ${lines[-1]} == '3 passed, 3 failed' && $output != *'once more, alone'* ]]
}

@test "what has cost most is named, daemons of a test with it" {
    # Whoever waits for the shell only does not see what its child does.
    fake busy "setsid bash -c 'for ((i = 0; i < 200000; i++)); do :; done; touch $tree/done' >/dev/null 2>&1 &
        until [ -e $tree/done ]; do sleep 0.1; done; echo 'ok 1 - busy'"
    check
    ((status == 0))
    grep -qE '^processor time: [0-9]+ s; ' <<<"$output"
    grep -qE '^ +[0-9.]+ s +[0-9]+ s  build$' <<<"$output"
    ((UID == 0)) && grep -q ' cgroup2 rw' /proc/mounts || skip "no cgroups of version 2 here"
    grep -qE '^ +[0-9.]+ s +[0-9]+ s  unit tests/unit/busy$' <<<"$output"
    run ! grep -E '^ +0\.0 s .*tests/unit/busy$' <<<"$output"
}

# at_most FILES: most of them that have run at once, with so many places for one, by what they have noted.
at_most() {
    local number
    for ((number = 0; number < $1; number++)); do
        fake "many$number" "echo + >>$tree/noted; sleep 3; echo - >>$tree/noted; echo 'ok 1 - slept'"
    done
    rm -f "$tree/noted"
    : >"$tree/totals"
    run -0 env TAP_PROC_STAT="$tree/stat" "$tree/tests/tap/run" --jobs "$1" --always 1 --logs "$tree/logs" \
        --totals "$tree/totals" "$tree"/tests/unit/many*
    printf '%s\n' "$output"
    awk '/+/ { if (++now > most) most = now } /-/ { now-- } END { exit most != '"$2"' }' "$tree/noted"
}

# with_times USER NICE IDLE COMMAND...: while the processors spend their time so, in hundredths.
with_times() {
    local feeder status
    (
        for ((time = 0; time < 600; time++)); do
            echo "cpu $((time * $1)) $((time * $2)) 0 $((time * $3)) 0 0 0 0 0 0" >"$tree/stat.new"
            mv "$tree/stat.new" "$tree/stat"
            sleep 0.1
        done
    ) 3>&- &
    feeder=$!
    "${@:4}" && status=0 || status=$?
    kill "$feeder"
    return "$status"
}

@test "more tests than always run begin only while the processors have time" {
    echo 'cpu 0 0 0 0 0 0 0 0 0 0' >"$tree/stat"
    with_times 95 0 5 at_most 2 1
    with_times 85 0 15 at_most 2 2
    with_times 85 15 0 at_most 2 1
    with_times 75 25 0 at_most 2 2
}

@test "files say what they have taken in a run" {
    fake slow 'echo "ok 1 - slow"'
    sed -i '1a# Takes 30 s' "$tree/tests/unit/good"
    printf 'took\t9\t83\tunit\t%s\ntook\t9\t3\tunit\t%s\ncount\t1\t0\t0\tunit\t%s\n' \
        "$tree"/tests/unit/{slow,good,slow} >"$tree/totals"
    "$tree/tests/tap/takes" "$tree/totals"
    [[ $(<"$tree/tests/unit/slow") == $'#!/bin/bash\n# Takes 85 s\necho 1..1\n'* ]]
    run -1 grep Takes "$tree/tests/unit/good"
    printf 'took\t9\t200\tunit\t%s\n' "$tree/tests/unit/slow" >"$tree/totals"
    "$tree/tests/tap/takes" "$tree/totals"
    [[ $(grep -c Takes "$tree/tests/unit/slow") == 1 && $(<"$tree/tests/unit/slow") == *'Takes 200 s'* ]]
}

@test "--repeat makes so many runs, and lists them" {
    fake_unstable shaky
    check --repeat 3
    ((status == 0))
    grep -qE '^run 1: 2 passed, 0 failed \([0-9]+ s\)$' <<<"$output"
    grep -qE '^run 3: 2 passed, 0 failed \([0-9]+ s\)$' <<<"$output"
    [[ ${lines[-1]} == '8 passed, 0 failed' ]]
    [[ ${lines[-2]} == 'unstable: tests/unit/shaky' ]]
}

@test "--repeat ends with the first run that fails" {
    # Good in the first run; in the second it fails, once more, too.
    fake worse "echo x >>$tree/count; (( \$(wc -l <$tree/count) == 1 )) && echo 'ok 1 - first' || echo 'not ok 1 - later'"
    check --repeat 4
    ((status == 1))
    grep -qE '^run 2: 1 passed, 1 failed' <<<"$output"
    [[ $output != *'run 3'* ]]
    [[ ${lines[-1]} == '5 passed, 1 failed' ]]
    for number in 0 -1 x ''; do
        check --repeat "$number"
        ((status == 2))
    done
}

@test "--load keeps the processors busy during the tests, and not longer" {
    fake looks "pgrep -f '$tree/scripts/check' >$tree/busy; echo 'ok 1 - looked'"
    check --load
    ((status == 0))
    # The script and two busy ones.
    (($(wc -l <"$tree/busy") == 3))
    run -1 pgrep -f "$tree/scripts/check"
}

# Root alone makes control groups.
@test "what a test leaves is found and removed; what was there before is not counted" {
    local before=/sys/fs/cgroup/freezer/slurm-elastic-before$$ left=/sys/fs/cgroup/freezer/slurm-elastic-left$$
    [[ -w /sys/fs/cgroup/freezer/tasks ]] || skip "no hierarchy of cgroup v1"
    mkdir -p "$tree/tests/system" "$before/n1"
    printf '@test "clean" { :; }\n' >"$tree/tests/system/clean.bats"
    run env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$HOME" "$tree/scripts/check" clean.bats
    printf '%s\n' "$output"
    rmdir "$before/n1" "$before"
    ((status == 0))
    printf '@test "untidy" { mkdir -p %s/n1; }\n' "$left" >"$tree/tests/system/untidy.bats"
    run -1 env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$HOME" "$tree/scripts/check" untidy.bats
    printf '%s\n' "$output"
    line "    $left"
    [[ ! -e $left ]]
}

# A program has written its number.
pid_is_there() {
    for ((i = 0; i < 200; i++)); do
        [[ ! -e $tree/pid ]] || break
        sleep 0.1
    done
}

pid_has_gone() {
    for ((i = 0; i < 100; i++)); do
        kill -0 "$(<"$tree/pid")" 2>/dev/null || break
        sleep 0.1
    done
    run -1 kill -0 "$(<"$tree/pid")"
}

@test "when it is ended, it ends its tests, too" {
    fake waits "echo \$\$ >$tree/pid.new; mv $tree/pid.new $tree/pid; sleep 300; echo 'ok 1 - waited'"
    env -u TMPDIR -u BATS_RUN_TMPDIR "$tree/scripts/check" --quick unit 3>&- >/dev/null 2>&1 &
    check=$!
    pid_is_there
    kill -TERM "$check"
    status=0
    wait "$check" || status=$?
    ((status == 130))
    pid_has_gone
}

@test "when it is ended, what runs beside it ends, too" {
    git -C "$tree" init -q
    mkdir "$tree/bin"
    printf '#!/bin/sh\necho $$ >%s/pid.new\nmv %s/pid.new %s/pid\nexec sleep 300\n' "$tree" "$tree" "$tree" \
        >"$tree/bin/shellcheck"
    chmod +x "$tree/bin/shellcheck"
    PATH=$tree/bin:$PATH "$tree/scripts/check" --quick shellcheck 3>&- >/dev/null 2>&1 &
    check=$!
    pid_is_there
    kill -TERM "$check"
    wait "$check" || true
    pid_has_gone
}

@test "the tests with sanitizers run beside the others, and count" {
    fake bad 'echo "not ok 1 - never"'
    # shellcheck disable=SC2016 # the script's
    printf '%s\n' 'SANITIZED=$BUILD ARCHIVE=$TOP' 'sanitizer_build() { :; }' 'check_archive() { false; }' \
        >>"$tree/scripts/build.sh"
    run -1 env -u TMPDIR -u BATS_RUN_TMPDIR "$tree/scripts/check" sanitizers tests/unit/good tests/unit/bad
    printf '%s\n' "$output"
    line 'build of the archive with clang and sanitizers ... ok ([0-9]* s)'
    line 'failed: what distcheck looks at'
    # Each of the two files twice, and build, install and the build of the archive.
    [[ ${lines[-1]} == '5 passed, 3 failed' ]]
}
