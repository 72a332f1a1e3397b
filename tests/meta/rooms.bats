#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What each folder of C sources may know of the others, and how large its pieces may be.

load helpers

setup() {
    git -C "$top_srcdir" rev-parse --git-dir >/dev/null 2>&1 || skip "not a git clone"
    cd "$top_srcdir" || return 1
}

# Folder, and a regular expression of the headers that its files may include with "". A header of
# the folder itself is always allowed.
includes() {
    cat <<'END'
lib              lib/
common           lib/|config\.h
client           pmix/compat\.h|common/memory\.h
agent            common/|lib/|config\.h
agent/leader     agent/[^/]+$|client/elastic\.h|client/event_page\.h|common/|lib/
agent/member     agent/[^/]+$|agent/workers/|common/|lib/
agent/workers    agent/[^/]+$|client/event_page\.h|common/|lib/
http             common/|lib/|config\.h
router           common/|lib/|config\.h
pmix             common/|lib/|config\.h
flush            common/|lib/|config\.h
fit              state/|cmd/|common/|lib/|config\.h
state            cmd/(options|shape|terminal_text)\.h|common/|lib/|config\.h
mlflow           agent/member/http\.h|common/|lib/|config\.h
notice           agent/member/http\.h|common/|lib/
cmd              common/|lib/|config\.h
spank            common/|lib/|config\.h
plugins          config\.h|src/
plugins/job_submit  plugins/slurmctld\.h|common/|lib/
plugins/select   plugins/slurmctld\.h|common/|lib/|src/
plugins/srun     common/|lib/|config\.h|src/|slurm/
END
}

# The headers that the files of one folder include with "", one "FILE:HEADER" per line.
included() {
    tracked "$1/*.[ch]" | grep -E "^$1/[^/]+$" | xargs -r grep -HoE '^#include "[^"]+"' |
        sed -E 's/#include "(.*)"$/\1/'
}

@test "a folder includes only headers of the folders below it" {
    wrong=$(includes | while read -r folder allowed; do
        included "$folder" | grep -vE ":($folder/[^/]+$|$allowed)"
    done || true)
    # main() and the agent as a whole join the three rooms.
    wrong=$(grep -vE '^agent/(main\.c|agent\.[ch]):agent/' <<<"$wrong" || true)
    nothing "$wrong" "includes what it may not"
}

@test "each folder of C sources has a line in the table of includes" {
    missing=$(tracked '*.[ch]' ':!tests/' ':!bench/' ':!examples/' | sed 's|/[^/]*$||' | sort -u |
        comm -23 - <(includes | cut -d' ' -f1 | sort))
    nothing "$missing" "without a line"
}

@test "no parts of the leader need each other, and each lies above what it needs" {
    run python3 tests/meta/calls.py agent/leader "$top_builddir/agent/leader"
    [ "$status" -ne 77 ] || skip "$output"
    nothing "$output" "in a circle, or against the layers of agent/leader/README.md"
    [ "$status" -eq 0 ]
}

@test "two files that call each other are found, and what they call" {
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir room
    echo 'void up(void); void low(void); void up(void) { low(); }' >room/upper.c
    echo 'void up(void); void low(void); void low(void) { up(); }' >room/lower.c
    for part in upper lower; do
        gcc -c "room/$part.c" -o "room/libroom_a-$part.o"
    done
    run -1 python3 "$top_srcdir/tests/meta/calls.py" room room
    [ "${lines[0]}" = "parts that need each other: lower upper" ]
    [ "${lines[1]}" = "  lower -> upper: up" ]
    [ "${lines[2]}" = "  upper -> lower: low" ]
    # Against a table of layers, without the circle.
    echo 'void low(void); void low(void) {}' >room/lower.c
    gcc -c room/lower.c -o room/libroom_a-lower.o
    printf '| %s | `%s` |\n' one upper two lower >room/README.md
    run -0 python3 "$top_srcdir/tests/meta/calls.py" room room
    printf '| %s | `%s` |\n' one lower two upper three none >room/README.md
    run -1 python3 "$top_srcdir/tests/meta/calls.py" room room
    [ "${lines[0]}" = "room/README.md: there is no none" ]
    [ "${lines[1]}" = "room/README.md: upper does not lie above lower: low" ]
    rm room/*lower.o
    run -77 python3 "$top_srcdir/tests/meta/calls.py" room room
    [ "$output" = "not built: lower" ]
}

# The variables of all makefiles, one per line, with their continuation lines.
variables() {
    tracked Makefile.am '*local.mk' | while read -r file; do
        sed -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' "$file"
    done
}

# value VARIABLE: its words, one per line.
value() {
    sed -nE "s/^$1 = (.*)/\1/p" "$BATS_TEST_TMPDIR/variables" | tr -s ' ' '\n'
}

# archives VARIABLE: those of ours in a list, and in lists of ours that it names.
archives() {
    local word
    value "$1" | while read -r word; do
        case $word in
        *.a) echo "$word" ;;
        '$('*)
            word=${word#'$('}
            archives "${word%)}"
            ;;
        esac
    done
}

# sources TARGET: of a program or library, with those of the archives that it is linked with.
sources() {
    local name=${1//[^A-Za-z0-9]/_} list archive

    value "${name}_SOURCES"
    for list in "${name}_LDADD" "EXTRA_${name}_DEPENDENCIES"; do
        archives "$list"
    done | sort -u | while read -r archive; do
        value "${archive//[^A-Za-z0-9]/_}_SOURCES"
    done
}

@test "no program has two files of one name" {
    variables >"$BATS_TEST_TMPDIR/variables"
    programs=$(sed -nE 's/^(bin_PROGRAMS|pkglibexec_PROGRAMS|lib_LTLIBRARIES|slurmplugin_LTLIBRARIES) \+= //p' \
        "$BATS_TEST_TMPDIR/variables")
    [ "$(wc -l <<<"$programs")" -ge 8 ]
    sources agent/elasticrun | grep -qxF lib/plan.c
    sources agent/elasticrun | grep -qxF common/entry.c
    sources spank/spank_elastic.la | grep -qxF lib/policy.c
    twice=$(for program in $programs; do
        sources "$program" | grep . | sort -u | sed 's|.*/||' | sort | uniq -d |
            sed "s|^|$program: |"
    done)
    nothing "$twice" "twice in one program"
}

@test "lines of C are at most 100 columns wide, comments too" {
    wide=$(tracked '*.[ch]' | LC_ALL=C.UTF-8 xargs grep -nE '^.{101,}' || true)
    nothing "$wide" "wider than 100 columns"
}

@test "rulers between the parts of a file have one form" {
    wrong=$(tracked '*.[ch]' ':!client/elastic.h' ':!tests/' ':!bench/' |
        xargs grep -nE '^/\* *-{2,}' | grep -vE ':/\* ---- [^-].* -+ \*/$' || true)
    nothing "$wrong" "another form"
}

@test "no file of the agent and of the change of worlds is longer than 600 lines" {
    long=$(tracked 'agent/*.[ch]' 'lib/change*.[ch]' | xargs wc -l |
        awk '$2 != "total" && $1 > 600 { print $2 ": " $1 }')
    nothing "$long" "longer"
}

# "FILE: struct NAME: COUNT" of each struct. A struct within a struct is one field of the outer one.
fields() {
    perl -0777 -ne '
        s{/\*.*?\*/}{}gs;
        while (/\bstruct (\w+) (?=(\{(?:[^{}]++|(?2))*\}))/g) {
            my ($name, $body) = ($1, substr($2, 1, -1));
            1 while $body =~ s/\{[^{}]*\}//s;
            1 while $body =~ s/\([^()]*\)//s;
            my $count = ($body =~ tr/;,//);
            print "$ARGV: struct $name: $count\n";
        }' "$@"
}

@test "no struct of the agent and of the change of worlds has more than 40 fields" {
    mapfile -t files < <(tracked 'agent/*.[ch]' 'lib/change*.[ch]')
    counted=$(fields "${files[@]}")
    [ -n "$counted" ]
    nothing "$(awk '$4 > 40' <<<"$counted")" "more"
}
