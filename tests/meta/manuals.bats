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

# Commands of selastic for which JSON makes no sense, and why.
without_json() {
    cat <<'LIST'
proxy     serves until it is ended
exporter  serves until it is ended; with --once, OpenMetrics, which programs read
LIST
}

# Installed programs that are no commands for people, and what starts them. The others are behind commands of selastic.
not_for_people() {
    cat <<'LIST'
elastic-flush      prolog and epilog, and scripts of a site; has --help
elastic-hook       slurmd, as prolog and epilog
elastic-mail       slurmctld, for mails; doc/admin/install.md
elastic-mlflow     elasticrun
elastic-node-fail  elasticrun
elastic-notice     epilog
elastic-runs       prolog and epilog
elasticrun-http    elasticrun
elasticrun-pmix    elasticrun
extension.sh       elasticrun, as the batch script of an extension
successor.sh       elasticrun, as the batch script of the next job of a service
LIST
}

# Programs that selastic becomes or starts.
behind_selastic() {
    cat <<'LIST'
elastic-exporter exporter
elastic-fit      fit
elastic-page     proxy
elastic-router   router
elastic-state    states
LIST
}

# described: the commands of which the section JSON of selastic(1) says what they print.
described() {
    sed -n '/^\.Sh JSON/,/^\.Sh ENV/s/^\.Ss //p' "$(page_of selastic)" | sed 's/, /\n/g' | cut -d' ' -f1 | sort -u
}

@test "every command has --json and selastic(1) says what it prints, or there is a reason" {
    diff <(for command in $(commands); do
        "$prefix/bin/selastic" help "$command" | grep -q -- --json || echo "$command"
    done | sort) <(without_json | cut -d' ' -f1 | sort)
    nothing "$(comm -3 <(described) <(comm -23 <(commands | sort) <(without_json | cut -d' ' -f1 | sort)))" \
        "only in one of: section JSON of selastic(1), commands with --json"
    # Each way to use a command has it, but for those that serve, and one that a service runs.
    nothing "$(for command in $(comm -23 <(commands | sort) <(without_json | cut -d' ' -f1 | sort)); do
        "$prefix/bin/selastic" help "$command" | uses | grep -v -e '--json' -e '--listen='
    done | grep -v -e '--data=' -e ' states mirror ')" "without --json"
}

# uses: of a help text, each way to use the command as one line.
uses() {
    sed -n '/^Usage/,/^$/p' | sed 's/^Usage: /       /' |
        awk '/^       [a-z]/ { if (use) print use; use = "" } { use = use $0 } END { print use }'
}

# What needs the Slurm source may not have been built.
built() {
    if grep -qx "HAVE_SLURM_SOURCE_TRUE='#'" "$top_builddir/config.log"; then
        grep -vx elastic-node-fail
    else
        cat
    fi
}

@test "every installed program is a command with a page and a completion, behind one, or not for people" {
    for program in "$prefix"/bin/*; do
        installed "${program##*/}.1"
        [[ -e $prefix/share/bash-completion/completions/${program##*/} ]]
    done
    diff <(find "$prefix/libexec/slurm-elastic" -maxdepth 1 ! -type d -printf '%f\n' | sort) \
        <({ not_for_people && behind_selastic; } | cut -d' ' -f1 | built | sort)
    nothing "$(comm -23 <(behind_selastic | tr -s ' ' | cut -d' ' -f2 | sort) <(commands | sort))" "no commands"
}

@test "the bash completion of elasticrun offers the options of --help" {
    # shellcheck source=../../etc/elasticrun.bash-completion
    . "$top_srcdir/etc/elasticrun.bash-completion"
    COMP_WORDS=("$prefix/bin/elasticrun" --) COMP_CWORD=1
    _elasticrun
    diff <("$prefix/bin/elasticrun" --help | options) <(printf '%s\n' "${COMPREPLY[@]}" | sort -u)
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
