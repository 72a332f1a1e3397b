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
    [ "$output" = "matrix: nothing to do: give --compile (see scripts/matrix --help)" ]
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
