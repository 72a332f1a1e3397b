#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/setup: the source of exactly the installed Slurm, from what the repositories have.

load helpers

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir bin work
    PATH=$PWD/bin:$PATH
    # The functions of the script, without its main().
    sed '/^main "\$@"$/d' "$top_srcdir/scripts/setup" >functions.sh
    # shellcheck disable=SC1091 # written above
    . ./functions.sh
    set +u
    WORK=$PWD/work REASON=
}

# program NAME LINE...: a shell script.
program() {
    printf '%s\n' '#!/bin/bash' "${@:2}" >"bin/$1"
    chmod +x "bin/$1"
}

@test "without a .dsc in the repositories the authors' archive is taken" {
    mkdir -p slurm-1.2.3/src
    echo whole >slurm-1.2.3/src/file
    tar -cJf archive slurm-1.2.3
    program apt-get "case \"\$*\" in
        *--tar-only*slurm-wlm=1.2.3-4) cp $PWD/archive slurm-wlm_1.2.3.orig.tar.xz ;;
        *update*) ;;
        *) exit 100 ;;
        esac"
    fetch_source slurm-wlm 1.2.3-4 "$PWD/target"
    [ "$(cat target/src/file)" = whole ]
}

@test "what the repositories lack is said" {
    program apt-get 'case "$*" in *update*) ;; *) exit 100 ;; esac'
    program apt-cache 'echo Version: 1.2.3-5'
    ! fetch_source slurm-wlm 1.2.3-4 "$PWD/target" || false
    [ "$REASON" = "the repositories have no source of slurm-wlm 1.2.3-4, but: 1.2.3-5 " ]
    ! fetch_source slurm-wlm 1.2.3-5 "$PWD/target" || false
    [ "$REASON" = "the repositories name a source of slurm-wlm 1.2.3-5, but have no files of it" ]
}

@test "without any source the rest is set up, and what will be missing is said" {
    program apt-get 'case "$*" in *update*) ;; *) exit 100 ;; esac'
    program apt-cache 'echo Version: 1.2.3-4'
    # shellcheck disable=SC2016 # the program's
    program dpkg-query 'echo "slurm-wlm 1.2.3-4"'
    CACHE=$PWD
    run -0 prepare_source
    [[ ${lines[-1]} == "setup: note: no plugins for slurmctld"*"have no files of it. Upgrade"* ]]
}

@test "packages that the system does not have are named in one line" {
    printf '%s\n' 'E: Unable to locate package libfoo-dev' "E: Package 'python3-torch' has no installation candidate" \
        'E: Unable to correct problems, you have held broken packages.' >log
    [ "$(unknown_packages log)" = ": this system lacks the packages libfoo-dev python3-torch" ]
    echo 'E: Failed to fetch http://somewhere' >log
    [ -z "$(unknown_packages log)" ]
}
