#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What configure refuses, and in which words.
# Takes 25 s

load helpers

setup_file() {
    load helpers
    # What the build's configure has found out, but not the CC and CFLAGS that it was given. No test looks at these.
    sed -n '/^## Cache variables/,/^## Output variables/{/^ac_cv_env_/d; /^[a-z_]*_cv_[A-Za-z0-9_]*=/p}' \
        "$top_builddir/config.log" >"$BATS_FILE_TMPDIR/cache"
    (($(wc -l <"$BATS_FILE_TMPDIR/cache") > 50))
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    installed_version=$(sed -n 's/^SLURM_VERSION = //p' "$top_builddir/Makefile")
    [ -n "$installed_version" ]
}

# With that, since each run takes seconds without.
configure() {
    cp "$BATS_FILE_TMPDIR/cache" .
    "$top_srcdir/configure" --cache-file=cache "$@"
}

# slurm_source DIR HEX-VERSION: as much of a Slurm tree as configure looks at before the version.
slurm_source() {
    mkdir -p "$1/src/common" "$1/build/slurm"
    touch "$1/src/common/slurm_xlator.h"
    if [[ -n $2 ]]; then
        touch "$1/build/config.h"
        echo "#define SLURM_VERSION_NUMBER 0x$2" >"$1/build/slurm/slurm_version.h"
    fi
}

@test "a Slurm source of another version is refused, with both versions" {
    slurm_source other 170207
    run -1 configure --with-slurm-source="$PWD/other"
    [[ $output == *"is Slurm 23.02.7, but the installed Slurm is $installed_version"* ]]
    [ ! -e Makefile ]
}

@test "a Slurm source that is not configured is refused, with what to do" {
    slurm_source plain ''
    run -1 configure --with-slurm-source="$PWD/plain"
    [[ $output == *"'$PWD/plain' is not configured"*"scripts/setup"* ]]
}

@test "a directory that is no Slurm source is refused" {
    mkdir empty
    run -1 configure --with-slurm-source="$PWD/empty"
    [[ $output == *"'$PWD/empty' is not a Slurm source tree"* ]]
    run -1 configure --with-slurm-source="$PWD/absent"
    [[ $output == *"there is no directory '$PWD/absent'"* ]]
}

@test "a library that is missing is named with its package" {
    sed '/pkg_cv_\|ac_cv_env_PKG_CONFIG/d' "$BATS_FILE_TMPDIR/cache" >cache
    PKG_CONFIG_LIBDIR=/nonexistent run -1 "$top_srcdir/configure" --quiet --cache-file=cache
    [[ $output == *"Install the package libpmix-dev (Debian), or run scripts/setup"* ]]
}

@test "plugins of slurmctld see Slurm's config.h, not ours, in a build in the tree, too" {
    flags=$(sed -n 's/^SLURM_PLUGIN_CPPFLAGS = //p' "$top_builddir/Makefile")
    [ -n "$flags" ] || skip "not built with the Slurm source"
    echo '#error "ours"' >config.h
    echo '#include "src/common/slurm_xlator.h"' >plugin.c
    # shellcheck disable=SC2086 # words
    gcc $flags -I. -fsyntax-only plugin.c
}

@test "without the Slurm source the plugins of slurmctld are left out, and the summary says so" {
    run -0 configure --no-create --prefix="$PWD/inst"
    [[ $output == *"job_submit, select  no: needs --with-slurm-source=DIR"* ]]
    [[ $output == *"Slurm               $installed_version"* ]]
    # Plugins stay in the prefix, unless that is Slurm's own.
    [[ $output == *"our plugins         $PWD/inst/lib/slurm"$'\n'* ]]
}

@test "below Slurm's own prefix our plugins go beside Slurm's" {
    run -0 configure --no-create --prefix=/usr
    plugins=$(sed -n 's/^  Slurm.s plugins *//p' <<<"$output")
    [[ -d $plugins && $output == *"our plugins         $plugins"* ]]
}

@test "make uninstall leaves nothing of ours, and what was installed names its own directories" {
    local own
    make -C "$top_builddir" DESTDIR="$PWD/root" install >install.log 2>&1
    own=$(find root -name elastic-hook -printf '/%P')
    own=${own%/*}
    [ -x "root$own/epilog.d/50-elastic" ]
    grep -qaF "$own/epilog.d/50-elastic" "root$own/elastic-hook"
    [ -e "$(find root -path '*/share/*/admin/install.md')" ]
    # What is for users and admins leads somewhere; the rest speaks of the source.
    run -0 find root \( -path '*/doc/user/*.md' -o -path '*/doc/admin/*.md' \) -exec python3 "$top_srcdir/tests/meta/prose.py" links {} +
    [ -z "$output" ]
    grep -q "$own/extension.sh" "$(find root -name spank_elastic.8)"
    run ! grep -rlE '@[a-zA-Z_]+@' root --include=50-elastic --include='*.conf' --include='*.8'
    make -C "$top_builddir" DESTDIR="$PWD/root" uninstall >uninstall.log 2>&1
    [ -z "$(find "root$own" "root${own%/libexec/*}/share/doc/slurm-elastic" 2>/dev/null)" ]
    [ -z "$(find root ! -type d)" ]
    # What the system does not have by itself. Above the prefix anything may be called so.
    [ -z "$(find "root${own%/libexec/*}" -name slurm -o -name '*bash-completion*' -o -name 'slurm-elastic*' 2>/dev/null)" ]
}
