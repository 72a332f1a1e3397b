#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Manual pages: well formed, and in step with what the programs say of themselves.

bats_require_minimum_version 1.5.0
load helpers

pages() { tracked 'doc/man/*.[1-8]' | sed "s|^|$top_srcdir/|"; }

# page_of NAME: the source of a page.
page_of() { printf '%s\n' "$top_srcdir/doc/man/$1".[1-8]; }

# Options that a page mentions, and those that it explains as items.
mentioned() { grep -oE 'Fl -[a-z][a-z_-]*' "$1" | sed 's/Fl -/--/' | sort -u; }
explained() { grep -E '^\.It Fl' "$1" | grep -oE 'Fl -[a-z][a-z_-]*' | sed 's/Fl -/--/' | sort -u; }

# Options in a text on stdin; "--rdzv-*" means several and is left out.
options() { grep -oE -- '--[a-z][a-z_-]*\*?' | grep -v -- '\*$' | grep -v -- '-$' | sort -u; }

# same_options PAGE HELP-TEXT: nothing is only in one of the two.
same_options() {
    nothing "$(comm -23 <(options <<<"$2") <(mentioned "$1"))" "in --help, not in $1"
    nothing "$(comm -13 <(options <<<"$2") <(explained "$1"))" "in $1, not in --help"
}

@test "mandoc finds nothing to say about the pages" {
    # It looks for the pages of others among those that are installed here; ours are checked below.
    complaints=$(pages | xargs mandoc -T lint 2>/dev/null | grep -v 'referenced manual not found' || true)
    nothing "$complaints" "mandoc -T lint"
    [[ -n $(pages) ]]
}

@test "man formats the pages without a warning" {
    complaints=$(pages | while read -r page; do
        MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null | sed "s|^|$page: |"
    done)
    nothing "$complaints" "man --warnings"
}

@test "pages of ours that are referred to exist" {
    missing=$(pages | xargs grep -hE '^\.Xr (selastic|elasticrun|elastic|elastic\.conf|spank_elastic) ' | cut -d' ' -f2,3 |
        sort -u | while read -r name section; do
        [[ -e $top_srcdir/doc/man/$name.$section ]] || echo "$name($section)"
    done)
    nothing "$missing" "no such page"
}

@test "every program that is installed has an installed page" {
    for program in "$prefix"/bin/*; do
        installed "${program##*/}.1"
    done
}

# commands: those of selastic.
commands() {
    "$prefix/bin/selastic" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p'
}

@test "selastic(1) and --help name the same commands" {
    nothing "$(for command in $(commands); do
        grep -q "^\.Cm $command" "$(page_of selastic)" && grep -q "^\.It Cm $command" "$(page_of selastic)" ||
            echo "$command"
    done)" "not in selastic(1)"
}

@test "selastic(1) and --help name the same options" {
    help=$(for command in $(commands); do "$prefix/bin/selastic" help "$command"; done
        echo --version)
    same_options "$(page_of selastic)" "$help"
}

# completed WORD...: what the bash completion offers behind these words for an option.
completed() {
    COMP_WORDS=(selastic "$@" --) COMP_CWORD=$(($# + 1))
    _selastic
    printf '%s\n' "${COMPREPLY[@]}"
}

@test "the bash completion of selastic offers the options of --help" {
    # shellcheck source=../../etc/selastic.bash-completion
    . "$top_srcdir/etc/selastic.bash-completion"
    COMP_WORDS=(selastic '') COMP_CWORD=1
    _selastic
    diff <(commands) <(printf '%s\n' "${COMPREPLY[@]}" | grep -vx -e help -e '--.*')
    for command in $(commands | grep -vx topology); do
        diff <("$prefix/bin/selastic" help "$command" | options) <(completed "$command" | sort -u)
    done
    diff <("$prefix/bin/selastic" help topology | options) \
        <(for action in collect show check describe; do completed topology "$action"; done | sort -u)
}

@test "elasticrun(1) and --help name the same options" {
    same_options "$(page_of elasticrun)" "$("$prefix/bin/elasticrun" --help)"
}

@test "elastic(3) has what elastic.h declares" {
    page=$(page_of elastic)
    diff <(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/s/^\.Fn \([a-z_]*\).*/\1/p' "$page" | sort) \
        <(grep -oE '\belastic_[a-z0-9_]+\(' "$(installed elastic.h)" | tr -d '(' | sort -u)
    nothing "$(grep -oE 'ELASTIC_(ERROR_[A-Z]+|[A-Z]+) +\(?-?[0-9]\)? ' "$(installed elastic.h)" | cut -d' ' -f1 |
        grep -v -e _INTERFACE -e _BYTES | while read -r name; do grep -q "$name" "$page" || echo "$name"; done)" "not in $page"
}

@test "elastic.conf(5) explains the keys that are known" {
    page=$(page_of elastic.conf)
    for section in "" $'[pool x]\n'; do
        printf '%sno_such_key = 1\n' "$section" >"$BATS_TEST_TMPDIR/elastic.conf"
        run -1 env ELASTIC_CONF="$BATS_TEST_TMPDIR/elastic.conf" "$prefix/bin/selastic" list
        [[ $output == *"elastic.conf:"*"unknown key 'no_such_key'"* ]]
        known=$(sed 's/.*: //; s/[,;]/ /g' <<<"$output")
        [[ $known == *grace* ]]
        for key in $known; do
            grep -qE "^\.It Cm (.*, )?$key( |\$)" "$page" || echo "$key" >>"$BATS_TEST_TMPDIR/missing"
        done
    done
    [[ ! -e $BATS_TEST_TMPDIR/missing ]] || nothing "$(cat "$BATS_TEST_TMPDIR/missing")" "not in $page"
}

@test "the example of elastic.conf(5) is accepted" {
    sed -n '/^\.Sh EXAMPLES/,/^\.Ed/p' "$(page_of elastic.conf)" | grep -v '^\.' >"$BATS_TEST_TMPDIR/elastic.conf"
    grep -q '^\[pool spot\]' "$BATS_TEST_TMPDIR/elastic.conf"
    # It is read before Slurm is asked, which is made to fail at once.
    run env ELASTIC_CONF="$BATS_TEST_TMPDIR/elastic.conf" SLURM_CONF=/nonexistent "$prefix/bin/selastic" list
    [[ $status != 0 && $output != *elastic.conf* ]]
}
