#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What holds for the documents: width, sentences, links, sizes.

load helpers

setup() {
    git -C "$top_srcdir" rev-parse --git-dir >/dev/null 2>&1 || skip "not a git clone"
    cd "$top_srcdir" || return 1
}

pages() { tracked '*.md' | sort -u; }

# prose CHECK: what tests/meta/prose.py says of all pages.
prose() {
    pages | xargs python3 "$top_srcdir/tests/meta/prose.py" "$1"
}

# A check that finds nothing is only worth something if it finds what is wrong.
@test "the checks find what is wrong" {
    page=$BATS_TEST_TMPDIR/page.md
    {
        printf 'word %.0s' {1..30}
        echo
        printf 'word %.0s' {1..11}
        echo "ends here. See [a](missing.md) and [b](#no-such-heading) and \`lib/none.c\`, \`no_such.bats\`."
        echo "Call \`no_such_one()\`, not \`world_destroy()\`."
    } >"$page"
    run -0 python3 tests/meta/prose.py lines "$page"
    [[ $output == *"page.md:1: 150 columns"* ]]
    run -0 python3 tests/meta/prose.py sentences "$page"
    [[ $output == *"43 words"* ]]
    run -0 python3 tests/meta/prose.py links "$page"
    [[ $output == *"missing.md: no such file"*"no-such-heading: no such heading" ]]
    run -0 python3 tests/meta/prose.py files "$page"
    [[ $output == *"lib/none.c: no such file"*"no_such.bats: no such test" ]]
    run -0 python3 tests/meta/prose.py functions "$page"
    [[ $output == *"page.md:3: no_such_one(): no such function" && $output != *world_destroy* ]]
}

@test "lines of documents have at most 100 columns" {
    [[ -n $(pages) ]]
    nothing "$(prose lines)" "too long"
}

@test "no sentence of a document has more than 40 words" {
    nothing "$(prose sentences)" "too long"
}

@test "each relative link in a document leads somewhere" {
    nothing "$(prose links)" "broken"
}

@test "each source file that a document names is there" {
    nothing "$(prose files)" "missing"
}

@test "each function that CONTRIBUTING.md or a page of doc/internals names is there" {
    nothing "$(python3 tests/meta/prose.py functions CONTRIBUTING.md doc/internals/*.md)" "missing"
}

@test "README.md has at most 150 lines, that of a folder at most 25" {
    long=$(pages | grep '/README\.md$' | grep -v '^examples/' | while read -r page; do
        (($(wc -l <"$page") <= 25)) || echo "$page"
    done)
    nothing "$long" "more than 25 lines"
    (($(wc -l <README.md) <= 150))
}

@test "each source folder has a README" {
    missing=$(tracked '*.[ch]' ':!tests/' ':!examples/' | cut -d/ -f1 | sort -u | while read -r folder; do
        [[ -e $folder/README.md ]] || echo "$folder"
    done)
    nothing "$missing" "without README.md"
}

@test "documents that sources name exist" {
    named=$(git grep -ohE '(/usr/share/doc/slurm-elastic/|\b)doc/[A-Za-z0-9_/-]+\.md\b' -- ':!*.md' ':!tests/meta/docs.bats' |
        sed 's|^/usr/share/doc/slurm-elastic/||' | sort -u)
    [[ -n $named ]]
    nothing "$(while read -r page; do [[ -e $page ]] || echo "$page"; done <<<"$named")" "no such page"
}

# drawn PICTURE HISTORY TITLE: selastic draws it so.
drawn() {
    local place=$BATS_TEST_TMPDIR/place
    mkdir -p "$place"
    cp "$2" "$place/history.jsonl"
    "$top_builddir/cmd/selastic" history 12 --state-dir "$place" --title "$3" --svg "$place/picture.svg"
    diff "$place/picture.svg" "$1"
}

# The picture of what jobs have used: from records as sacct would print them.
used() {
    local place=$BATS_TEST_TMPDIR/sacct
    mkdir -p "$place"
    : >"$place/elastic.conf"
    cat >"$place/sacct" <<'PY'
#!/usr/bin/python3
import json, os, sys
(separator,) = [word[12:] for word in sys.argv if word.startswith("--delimiter=")]
for record in json.load(open(os.environ["RECORDS"])):
    print(separator.join(record))
PY
    chmod 755 "$place/sacct"
    TZ=UTC RECORDS=$top_srcdir/$2 PATH=$place:$PATH ELASTIC_CONF=$place/elastic.conf \
        "$top_builddir/cmd/selastic" usage --all --until=now --title "$3" --svg "$place/usage.svg"
    diff "$place/usage.svg" "$1"
}

@test "the picture of what jobs have used is drawn from its records" {
    used doc/user/usage.svg tests/meta/usage.json "Elastic jobs of the lab"
}

@test "the pictures in documents are drawn from their histories" {
    drawn doc/run/demo.svg doc/run/history.jsonl "scripts/demo: sbatch --elastic=2:6, PyTorch on a private Slurm of six nodes"
    drawn doc/user/picture.svg tests/fuzz/corpus/fuzz_history/pools "Elastic job 12"
}
