# SPDX-License-Identifier: GPL-2.0-or-later
# How scripts/check and scripts/demo build this clone: below build/, installed into build/inst.
# shellcheck shell=bash
#
# Sourced with TOP set to the top of the tree, and SOURCE_ARGS to what scripts/setup
# --print-configure-args says, or to nothing. Functions leave the caller's directory as it is.

BUILD=$TOP/build
PREFIX=$BUILD/inst
ARCHIVE=$BUILD/archive # what `make dist` packs, unpacked
SANITIZED=$BUILD/sanitizers
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

# build_in DIR SOURCE CC CONFIGURE-ARGUMENT...: configures only when one of these has changed. Two that
# build in one directory take turns: two configures at once would spoil its config.h.
build_in() (
    local dir=$1 source=$2 cc=$3 arguments lock
    shift 3
    arguments="$source CC=$cc $*"
    mkdir -p "$dir" && cd "$dir" || return 1
    exec {lock}>build.lock && flock "$lock" || return 1
    if [[ ! -e Makefile || $(cat configured-with 2>/dev/null) != "$arguments" ]]; then
        "$source/configure" CC="$cc" --enable-werror --enable-silent-rules "$@" || return 1
        printf '%s\n' "$arguments" >configured-with
    fi
    make -j"$JOBS" all
)

# Optimised as a package is, for what gcc then warns of. Debug information is for backtraces only.
main_build() {
    generate && build_in "$BUILD" "$TOP" gcc --prefix="$PREFIX" CFLAGS="-O2 -g1" "${SOURCE_ARGS[@]}"
}

install_privately() {
    rm -rf "$PREFIX"
    make -C "$BUILD" install
}

# build_tests DIR [VARIABLE=VALUE]...: their programs; does not run them.
build_tests() {
    make -C "$1" -j"$JOBS" check TESTS= "${@:2}"
}

# The tests' own sources take twice as long with -O2 as they do so.
main_build_with_tests() {
    main_build && build_tests "$BUILD" CFLAGS="-O1 -g1"
}

# One build does for three: by clang, for its warnings; with sanitizers, for the tests; and from the
# archive that a release consists of, as distcheck does it. Not optimised: that would take longer than
# the tests gain by it.
sanitizer_build() {
    unpack_archive &&
        build_in "$SANITIZED" "$ARCHIVE" clang --prefix="$SANITIZED/inst" CFLAGS="-O0 -g1" \
            --enable-sanitizers "${SOURCE_ARGS[@]}" &&
        build_tests "$SANITIZED"
}

# The archive need not be small. Files keep their times, so what is built already stays so.
unpack_archive() {
    rm -f "$BUILD"/slurm-elastic-*.tar.xz
    XZ_OPT=-0 make -C "$BUILD" dist || return 1
    rm -rf "$ARCHIVE"
    mkdir "$ARCHIVE" && tar -xJf "$BUILD"/slurm-elastic-*.tar.xz -C "$ARCHIVE" --strip-components=1 &&
        chmod -R a-w "$ARCHIVE" && chmod u+w "$ARCHIVE"
}

# The rest of what distcheck looks at: uninstall and distclean leave nothing, and what was built from
# the archive makes the same archive. tests/meta looks at DESTDIR.
check_archive() {
    local copy=$BUILD/distclean again=again
    make -C "$SANITIZED" install &&
        make -C "$SANITIZED" uninstall &&
        make -C "$SANITIZED" distuninstallcheck distuninstallcheck_dir="$SANITIZED/inst" || return 1
    rm -rf "$copy" "$SANITIZED/inst"
    make -C "$SANITIZED" distdir distdir="$again" &&
        diff -r "$ARCHIVE" "$SANITIZED/$again" &&
        rm -rf "${SANITIZED:?}/$again" &&
        cp -al "$SANITIZED" "$copy" &&
        rm "$copy"/{configured-with,build.lock} &&
        make -C "$copy" distcleancheck &&
        rm -rf "$copy"
}
