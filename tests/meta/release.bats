#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What a release consists of. scripts/package --test builds and tries the packages themselves.

load helpers

setup() {
    cd "$top_srcdir" || return 1
    version=$(sed -n 's/^PACKAGE_VERSION = //p' "$top_builddir/Makefile")
    [ -n "$version" ]
}

@test "one version everywhere: that of configure.ac" {
    grep -qxF "AC_INIT([slurm-elastic], [$version])" configure.ac
    grep -qxF "version = \"$version\"" client/python/pyproject.toml
    grep -qxF "__version__ = \"$version\"" client/python/slurm_elastic/__init__.py
    [[ $(head -n 1 packaging/debian/changelog) =~ ^slurm-elastic\ \($version-[0-9]+\)\ unstable ]]
    grep -qxF "Version: $version" packaging/rpm/slurm-elastic.spec
    grep -m 1 '^\* ' <(sed -n '/^%changelog/,$p' packaging/rpm/slurm-elastic.spec) | grep -qE " - $version-[0-9]+$"
    # The newest entry of NEWS, with the day of the changelog.
    day=$(date -d "$(sed -n 's/^ -- .*>  //p' packaging/debian/changelog | head -n 1)" +%F)
    [ "$(grep -m 1 '^slurm-elastic ' NEWS)" = "slurm-elastic $version ($day)" ]
    grep -qE "^Version ${version%.*}[ .]" README.md
    readelf -d "$(installed libelastic.so.0)" | grep -q 'SONAME.*\[libelastic.so.0\]'
}

# Paths as a package has them, one per line, of what is installed in $prefix.
packaged() {
    (cd "$prefix" && find . ! -type d ! -name '*.la' -printf 'usr/%P\n') |
        sed -E 's|^usr/lib/|usr/lib/x86_64-linux-gnu/|'
}

@test "each installed file is in one Debian package" {
    local file pattern patterns found
    mapfile -t patterns < <(cat packaging/debian/*.install)
    wrong=$(packaged | while read -r file; do
        found=0
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2053 # a pattern
            [[ $file != $pattern && $file != $pattern/* ]] || found=$((found + 1))
        done
        ((found == 1)) || echo "$file: in $found packages"
    done)
    nothing "$wrong" "in packaging/debian/*.install"
}

@test "each program, plugin, header and page is in the spec" {
    sed -n '/^%files/,$p' packaging/rpm/slurm-elastic.spec >"$BATS_TEST_TMPDIR/files"
    missing=$(packaged | grep -E '^usr/(bin|libexec|include|lib|share/(bash|man))' | while read -r file; do
        case $file in
        */slurm/*.so) continue ;; # the spec looks for them
        */libelastic.so.0*) name=/libelastic.so.0 ;;
        */man[0-9]/*) name=${file%/*} name=/${name##*/}/ ;;
        *.d/*) name=${file%/*} name=/${name##*/} ;;
        *) name=/${file##*/} ;;
        esac
        grep -qF "$name" "$BATS_TEST_TMPDIR/files" || echo "$file"
    done)
    nothing "$missing" "not in packaging/rpm/slurm-elastic.spec"
}

@test "scripts/package says what it does not understand, and which tool is missing" {
    run -2 scripts/package
    [[ $output == *"nothing to do"* ]]
    run -2 scripts/package --deb
    [[ $output == *"unknown option --deb"* ]]
    # A PATH without the tools.
    mkdir "$BATS_TEST_TMPDIR/bin"
    for tool in bash dirname date sed head nproc mkdir cut; do
        ln -s "$(command -v $tool)" "$BATS_TEST_TMPDIR/bin/"
    done
    PATH=$BATS_TEST_TMPDIR/bin run -77 scripts/package --out "$BATS_TEST_TMPDIR/out" deb
    [[ $output == "package: dpkg-buildpackage is missing: install dpkg-dev, or run scripts/setup --packaging" ]]
    PATH=$BATS_TEST_TMPDIR/bin run -77 scripts/package --out "$BATS_TEST_TMPDIR/out" rpm
    [[ $output == "package: rpmbuild is missing: "* ]]
}
