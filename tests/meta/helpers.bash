# SPDX-License-Identifier: GPL-2.0-or-later
# What the checks on the tree share. scripts/check sets these; by hand the usual places are meant.
# shellcheck shell=bash

bats_require_minimum_version 1.5.0

: "${top_srcdir:=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd -P)}"
: "${top_builddir:=$top_srcdir/build}"
: "${prefix:=$top_builddir/inst}"
export top_srcdir top_builddir prefix

# tracked PATTERN...: files of the tree, as git knows them, relative to its top.
tracked() {
    git -C "$top_srcdir" ls-files --cached --others --exclude-standard -- "$@"
}

# installed NAME: the path of an installed file or link of that name.
installed() {
    local path
    path=$(find "$prefix" -name "$1" -print -quit)
    if [[ -z $path ]]; then
        echo "$1 is not installed in $prefix" >&2
        return 1
    fi
    printf '%s\n' "$path"
}

# exports FILE: its own dynamic symbols, one per line, sorted.
exports() {
    nm -D --defined-only --format=posix "$1" | cut -d' ' -f1 | cut -d@ -f1 | sort
}

# nothing TEXT WHAT: fails, and shows it, if there is any text.
nothing() {
    if [[ -n $1 ]]; then
        printf '%s:\n%s\n' "$2" "$1" >&2
        return 1
    fi
}
