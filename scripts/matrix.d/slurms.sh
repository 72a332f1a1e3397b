# SPDX-License-Identifier: GPL-2.0-or-later
# The part of scripts/matrix that runs: makes a Slurm from its source, ours for it, and runs system
# tests with both.
# shellcheck shell=bash
#
# Below build/matrix/slurm-VERSION:
#     slurm/       that Slurm, installed
#     tested/      ours, built for it; tested/inst: installed
#     tests/       what each test file has said, in TAP
#     results.tsv  of each test file: its name, and how many tests passed, failed, were skipped

# The test files that are run without --tests, in this order.
MAIN_TESTS=(main_path spank level0 phases qos submit slurm_client select select_changes controller
    queue hosts gpus time_limits selastic topology)

# The test files that are run.
TESTS=("${MAIN_TESTS[@]}")

check_tests() {
    local name
    ((${#TESTS[@]})) || die "--tests: name files of tests/system"
    for name in "${TESTS[@]}"; do
        [[ -e $TOP/tests/system/$name.bats ]] || die "--tests $name: there is no tests/system/$name.bats"
    done
}

# What no test needs is left out of Slurm, so that it is made in a few minutes.
# shellcheck disable=SC2034 # scripts/matrix uses it
SLURM_WITHOUT=(--disable-static --disable-slurmrestd --disable-x11 --disable-pkgconfig
    --without-{bpf,freeipmi,hdf5,http-parser,hpe-slingshot,json,jwt,libcurl,lua,nvml,ofed}
    --without-{oneapi,rdkafka,readline,rsmi,s2n,ucx,yaml})

# shellcheck disable=SC2317 # logged calls it
make_slurm() (
    cd "$1/source/build" || return
    nice make -C src -s -j"$JOBS" && nice make -C src install && nice make install-pkgincludeHEADERS
)

# install_slurm VERSION: the Slurm that prepare has configured.
install_slurm() {
    local version=$1 dir=$MATRIX/slurm-$1
    [[ ! -e $dir/slurm/complete ]] || return 0
    say "Slurm $version: making it, which takes some minutes"
    rm -rf "$dir/slurm"
    logged "$dir/make.log" make_slurm "$dir" || return
    touch "$dir/slurm/complete"
}

# say_what_lacks VERSION: configure leaves this part of Slurm out without a word.
say_what_lacks() {
    compgen -G "$MATRIX/slurm-$1/slurm/lib*/slurm/accounting_storage_mysql.so" >/dev/null ||
        say "Slurm $1 was made without libmariadb-dev: tests with slurmdbd (qos) are skipped;" \
            "to have them, install it and remove $MATRIX/slurm-$1"
}

# shellcheck disable=SC2317 # logged calls it
make_ours() {
    local dir=$1
    local -a programs
    # What the system tests start besides.
    read -ra programs < <(sed -n 's/^check_PROGRAMS += //p' "$TOP"/{tests/system,bench}/local.mk | xargs)
    build_in "$dir/tested" "$TOP" gcc --prefix="$dir/tested/inst" \
        --with-slurm="$dir/slurm" --with-slurm-source="$dir/source" &&
        nice make -C "$dir/tested" -j"$JOBS" "${programs[@]}" && make -C "$dir/tested" install
}

# install_ours VERSION: built for that Slurm.
install_ours() {
    local dir=$MATRIX/slurm-$1
    say "Slurm $1: making ours for it"
    logged "$dir/tested.log" make_ours "$dir"
}

# run_file VERSION PART: prints a line of the results. The TAP is kept.
run_file() {
    local version=$1 part=$2 dir=$MATRIX/slurm-$1 tap
    tap=$dir/tests/$part.tap
    prefix=$dir/tested/inst top_srcdir=$TOP top_builddir=$dir/tested \
        ELASTIC_SLURM=$dir/slurm ELASTIC_TEST_USER=${ELASTIC_TEST_USER:-elastic} \
        TMPDIR=${TMPDIR:-/var/tmp} timeout -k 60 1800 nice -n 15 \
        bats --formatter tap "$TOP/tests/system/$part.bats" >"$tap" 2>&1 </dev/null || true
    tap_counts "$part" <"$tap"
}

# tap_counts PART: PART, passed, failed, skipped of the TAP on stdin. What was planned and not told
# of has failed.
tap_counts() {
    awk -v part="$1" '
        /^1\.\.[0-9]+$/ { planned = substr($0, 4) }
        /^ok .* # skip/ { skipped++; next }
        /^ok / { passed++ }
        /^not ok / { failed++ }
        END {
            told = passed + failed + skipped
            if (told < planned) failed += planned - told
            if (!planned) failed++
            printf "%s\t%d\t%d\t%d\n", part, passed, failed, skipped
        }'
}

# run_version VERSION: its results.tsv. Status 1: a test has failed.
run_version() {
    local version=$1 dir=$MATRIX/slurm-$1 part line status=0
    mkdir -p "$dir/tests"
    for part in "${TESTS[@]}"; do
        say "Slurm $version: $part"
        line=$(run_file "$version" "$part")
        # Parts that are not run now keep their line.
        {
            grep -v "^$part"$'\t' "$dir/results.tsv" 2>/dev/null || true
            printf '%s\n' "$line"
        } >"$dir/results.new"
        mv "$dir/results.new" "$dir/results.tsv"
        [[ $(cut -f3 <<<"$line") == 0 ]] || {
            status=1
            grep '^not ok' "$dir/tests/$part.tap" | sed 's/^/    /' >&2 || true
        }
    done
    return "$status"
}

# slurms_table FILE...: of results.tsv of several versions: a row for each part, a column for each
# version, and the sums.
slurms_table() {
    awk -F'\t' '
        function cell(passed, failed, skipped,    text) {
            text = passed + 0
            if (failed) text = text ", " failed " failed"
            if (skipped) text = text ", " skipped " skipped"
            return text
        }
        FNR == 1 { split(FILENAME, words, "/slurm-"); name = words[length(words)]; sub("/.*", "", name); version[++versions] = name }
        { if (!($1 in seen)) { seen[$1] = 1; part[++parts] = $1 }
          text[$1, name] = cell($2, $3, $4); p[name] += $2; f[name] += $3; s[name] += $4 }
        END {
            printf "| part |"; for (v = 1; v <= versions; v++) printf " %s |", version[v]
            printf "\n|---|"; for (v = 1; v <= versions; v++) printf "---|"
            for (i = 1; i <= parts; i++) {
                printf "\n| %s |", part[i]
                for (v = 1; v <= versions; v++) printf " %s |", (part[i], version[v]) in text ? text[part[i], version[v]] : "–"
            }
            printf "\n| all |"; for (v = 1; v <= versions; v++) printf " %s |", cell(p[version[v]], f[version[v]], s[version[v]])
            print ""
        }' "$@"
}

# run_chosen: what scripts/matrix does without --compile, for the versions in CHOSEN.
run_chosen() {
    local line version kind where status=0
    local -a results=()
    # Nodes of the realistic form have another /tmp, and would not find this Slurm.
    [[ $MATRIX != /tmp/* ]] || export ELASTIC_TESTBED=${ELASTIC_TESTBED:---simple}
    for line in "${CHOSEN[@]}"; do
        read -r version kind where <<<"$line"
        if ! prepare "$version" "$kind" "$where" || ! install_slurm "$version" ||
            ! install_ours "$version"; then
            say "Slurm $version cannot be used; see $MATRIX/slurm-$version"
            status=2
            continue
        fi
        say_what_lacks "$version"
        run_version "$version" || ((status)) || status=1
        results+=("$MATRIX/slurm-$version/results.tsv")
    done
    ((${#results[@]} == 0)) || slurms_table "${results[@]}"
    return "$status"
}
