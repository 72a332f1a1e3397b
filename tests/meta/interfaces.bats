#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What users build on, against what is written down in tests/meta/interfaces (doc/stability.md).

load helpers

@test "symbols, elastic.h, --help and the Python functions are what is written down" {
    run "$top_srcdir/scripts/interfaces"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "a change of each of them is found" {
    mkdir -p "$BATS_TEST_TMPDIR/inst/lib"
    cp -R "$prefix"/{bin,include,libexec,share} "$BATS_TEST_TMPDIR/inst/"
    prefix=$BATS_TEST_TMPDIR/inst
    chmod -R u+w "$prefix"
    echo 'void elastic_init(void); void elastic_init(void) {}' |
        gcc -shared -fPIC -x c -o "$prefix/lib/libelastic.so.0" -
    sed -i 's/^#define ELASTIC_UNIT_BYTES .*/#define ELASTIC_UNIT_BYTES 25/' "$prefix/include/elastic.h"
    printf '#!/bin/sh\necho other help\n' >"$prefix/bin/selastic"
    sed -i 's/^def leave(status/def leave(code/' "$prefix/share/slurm-elastic/python/slurm_elastic/leaving.py"
    run -1 "$top_srcdir/scripts/interfaces"
    [[ $output == *$'\n- elastic_world@Base 0.1.0\n'* ]]
    [[ $output == *'+#define ELASTIC_UNIT_BYTES 25'* ]]
    [[ $output == *'+other help'* ]]
    [[ $output == *'+slurm_elastic.leave(code=0)'* ]]
}
