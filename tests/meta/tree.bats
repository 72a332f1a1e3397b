#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What holds for the files of the tree.

load helpers

setup() {
    git -C "$top_srcdir" rev-parse --git-dir >/dev/null 2>&1 || skip "not a git clone"
    cd "$top_srcdir" || return 1
}

sources() {
    tracked '*.[chylS]' '*.py' '*.sh' '*.bash' '*.bats' '*.t' '*.m4' '*.mk' '*.am' '*.ac' '*.toml' \
        '*.[1-8]' '*.conf' '*.conf.*'
    # Scripts without an ending.
    tracked | grep -vF . | while read -r file; do
        if [[ -f $file && -x $file ]]; then
            printf '%s\n' "$file"
        fi
    done
}

# without LINE PATTERN: those of the files on stdin that do not have the pattern in their first lines.
# One process for each file would take ten seconds.
without() {
    local all
    all=$(sort -u)
    xargs -d '\n' grep -nHE -m "$1" "$2" <<<"$all" | awk -F: -v last="$1" '$2 <= last { print $1 }' |
        sort -u | comm -13 - <(printf '%s\n' "$all")
}

@test "every source names its licence in its first lines" {
    missing=$(sources | without 5 'SPDX-License-Identifier: GPL-2.0-or-later')
    nothing "$missing" "without an SPDX line"
}

@test "C sources say what they are for after the licence" {
    missing=$(tracked '*.[ch]' | without 2 '^/\* ([^S]|S[^P])')
    nothing "$missing" "without a purpose in the second line"
}

@test "no marks of unfinished work" {
    marks='TO''DO|FIX''ME|X''XX'
    # TAP has a directive of that name.
    nothing "$(git grep -nIwE "$marks" -- ':!COPYING' ':!tests/tap/')" "marks left"
}

@test "lib is pure: no Slurm, PMIx, loop, clock or file" {
    impure='<(slurm/|pmix|uv\.h|munge|curl|sys/socket|fcntl|unistd)|\b(fopen|time|clock_gettime|gettimeofday|getenv)\('
    nothing "$(grep -nE "$impure" lib/*.c lib/*.h)" "impure"
}

@test "Slurm is touched only in its plugins and in one client module" {
    touching=$(git grep -lE '#include <slurm/' -- '*.c' '*.h' ':!spank/' ':!plugins/' \
        ':!common/slurm_compat.h' || true)
    nothing "$touching" "includes Slurm's headers"
}

@test "a difference between versions of Slurm or PMIx is in the seam of its neighbour" {
    scattered=$(git grep -nE '^ *#.*(SLURM_SINCE|SLURM_VERSION_NUM|PMIX_(VERSION|NUMERIC))' -- '*.c' '*.h' \
        ':!common/slurm_compat.[ch]' ':!plugins/slurmctld.h' ':!plugins/select/compat.h' \
        ':!plugins/select/switches.c' ':!pmix/compat.h' || true)
    nothing "$scattered" "outside the seams"
}

@test "assert_in_range of cmocka has the name that each release of cmocka knows" {
    known=$(git grep -l '#include "tests/unit/support.h"' -- 'tests/unit/*_fixture.h' | paste -sd '|')
    bare=$(git grep -lw assert_in_range -- '*.[ch]' ':!tests/unit/support.h' |
        xargs grep -LE "#include \"(tests/unit/support.h|$known)\"" || true)
    nothing "$bare" "without tests/unit/support.h, which renames it for cmocka 2"
    nothing "$(git grep -nw assert_not_in_range -- '*.[ch]' || true)" "support.h has no name for it"
}

@test "scripts are executable, and say how they are run" {
    wrong=$(tracked | while read -r file; do
        [[ -f $file && ! -L $file ]] || continue
        if [[ -x $file ]] && ! head -c 2 "$file" | grep -q '#!'; then
            echo "$file: executable without #!"
        fi
    done)
    nothing "$wrong" "wrong mode"
}

@test "what is in the archive is what is in git" {
    make -s -C "$top_builddir" distdir distdir="$BATS_TEST_TMPDIR/archive"
    archive=$(cd "$BATS_TEST_TMPDIR/archive" && find . -type f -printf '%P\n' | sort)
    forgotten=$(tracked | grep -vE '^(\.ci/|\.gitignore|\.gitattributes)' | sort -u |
        comm -23 - <(printf '%s\n' "$archive"))
    nothing "$forgotten" "not in EXTRA_DIST or any other list of a local.mk"
}

# tests/tap/run reads them so.
@test "how long a test takes, and may take, has a line of its own" {
    inside=$(tracked 'tests/*.bats' 'tests/*.py' 'tests/sim/check' |
        xargs grep -nE '^#.*(Takes|Time limit:) [0-9]+ s' | grep -vE ':# (Takes|Time limit:) [0-9]+ s$' || true)
    nothing "$inside" "tests/tap/run does not see that"
}
