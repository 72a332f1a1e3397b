# SPDX-License-Identifier: GPL-2.0-or-later
# How scripts/check and scripts/demo build this clone: below build/, installed into build/inst.
# shellcheck shell=bash
#
# Sourced with TOP set to the top of the tree, and SOURCE_ARGS to what scripts/setup
# --print-configure-args says, or to nothing. Functions leave the caller's directory as it is.

BUILD=$TOP/build
PREFIX=$BUILD/inst
JOBS=$(nproc)
# For configure and libtool, which would look for bash: Debian's dash takes half as long.
export CONFIG_SHELL=/bin/sh

# Makes ./configure where it is missing or older than what it is made from.
generate() (
    cd "$TOP" || return 1
    if [[ ! -e configure || -n $(find configure.ac Makefile.am m4 ./*/local.mk ./*/*/local.mk \
        -newer configure -print -quit) ]]; then
        ./autogen.sh
    fi
)

# build_in DIR CC CONFIGURE-ARGUMENT...: configures only when the arguments have changed.
build_in() (
    local dir=$1 cc=$2 arguments
    shift 2
    arguments="CC=$cc $*"
    mkdir -p "$dir" && cd "$dir" || return 1
    if [[ ! -e Makefile || $(cat configured-with 2>/dev/null) != "$arguments" ]]; then
        "$TOP/configure" CC="$cc" --enable-werror --enable-silent-rules "$@" || return 1
        printf '%s\n' "$arguments" >configured-with
    fi
    make -j"$JOBS" all
)

main_build() {
    generate && build_in "$BUILD" gcc --prefix="$PREFIX" "${SOURCE_ARGS[@]}"
}

install_privately() {
    rm -rf "$PREFIX"
    make -C "$BUILD" install
}
