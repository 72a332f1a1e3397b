# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/matrix SYSTEM...: builds and tests this tree in a root of each system.
# shellcheck shell=bash
#
# Sourced by scripts/matrix, whose TOP, MATRIX, say() and die() it uses, and scripts/root.sh. What
# setup and builds change in a root stays there. Only setup has a network.

# The systems, and what debootstrap calls them.
declare -gA SUITES=([debian12]=bookworm [debian13]=trixie [forky]=forky)
SYSTEMS=(debian12 debian13 forky)
# What is run, in this order.
SYSTEM_PARTS=(setup build demo quick system)
# What the table names, and the package that has its version.
NEIGHBOURS=(Slurm PMIx "Open MPI" Python PyTorch json-c gcc)
declare -gA PACKAGES=([Slurm]=slurmctld [PMIx]=libpmix-dev ["Open MPI"]=openmpi-bin [Python]=python3
    [PyTorch]=python3-torch [json-c]=libjson-c-dev [gcc]=gcc)
# The copy of this tree, as seen in a root.
INSIDE=/srv/slurm-elastic
# What scripts/check is told if all files are meant.
ALL_FILES=tests/system/

usage_systems() {
    cat <<USAGE
       scripts/matrix [--parts LIST] [--mirror URL] SYSTEM... [PATTERN...] | --all [PATTERN...]
       scripts/matrix --available SYSTEM... | --results

SYSTEM is one of: ${SYSTEMS[*]}. A root of each is made by debootstrap, once, in
build/matrix. There scripts/setup and the build run, and then these parts:

  demo                 scripts/demo
  quick                scripts/check --quick
  system               the files of tests/system; with PATTERN only those that it names: spank is
                       spank.bats, and live.bats but not live_c.bats is live. tests/python is all
                       there, with the system's PyTorch

  --parts LIST         only these of the parts: quick,system
  --all                all systems
  --mirror URL         where debootstrap and apt find Debian (default: where this machine's apt does)
  --available          only says whether roots can be made here: exit status 0 or 2
  --results            only prints the tables of the results that are there

It prints three tables: what runs on each system; how many tests of each file of tests/system have
passed there; why tests were skipped. Parts and files that are not run now keep their results. What
scripts/check has counted in this tree are results of this machine's own system.

Only root can do this. Results are kept in build/matrix/results, logs in build/matrix/SYSTEM, and
packages in build/matrix/apt. Nothing stays mounted. A root is made anew if you remove it:
build/matrix/roots/SYSTEM. The copy of the tree in the root has the files that git knows; its build/
is kept for the next run.

USAGE
}

# wants_systems ARGUMENT...: whether the command line is about systems.
wants_systems() {
    local argument
    for argument; do
        case $argument in
        --all | --available | --results) return 0 ;;
        esac
        [[ -z ${SUITES[$argument]+set} ]] || return 0
    done
    return 1
}

# --- a root ---------------------------------------------------------------------------------------

# inside SYSTEM NETWORK COMMAND...: as root, in the directory of the copied tree. NETWORK: host, none.
inside() {
    local system=$1 network=$2 name
    local -a variables=() options=(--keep --write "$MATRIX/apt/$1=/var/cache/apt/archives")
    shift 2
    for name in http_proxy https_proxy no_proxy; do
        [[ -z ${!name:-} ]] || variables+=("$name=${!name}")
    done
    ! root_has_groups || options+=(--groups)
    # Without a network pip need not try to find one.
    [[ $network == host ]] && options+=(--network) || variables+=(PIP_NO_INDEX=1)
    root_run "$MATRIX/roots/$system" "${options[@]}" -- env --chdir="$INSIDE" "${variables[@]}" "$@"
}

need_root() {
    local missing
    missing=$(root_missing)
    [[ -z $missing ]] || die "$missing"
}

# reach SYSTEM: looks for the mirror, if the root is still to be made.
reach() {
    local suite=${SUITES[$1]}
    [[ ! -d $MATRIX/roots/$1 ]] || return 0
    wget -q --spider --timeout=20 --tries=2 "$MIRROR/dists/$suite/Release" ||
        die "the mirror $MIRROR is not reachable, or has no $suite (another one: --mirror URL)"
}

# make_root SYSTEM: one in which packages were being installed when somebody ended this script is
# made anew.
make_root() {
    local root=$MATRIX/roots/$1
    [[ ! -e $root/installing ]] || rm -rf --one-file-system "$root"
    [[ -d $root ]] || say "$1: making its root by debootstrap"
    reach "$1"
    logged "$LOG/debootstrap.log" root_make --mirror "$MIRROR" --archives "$MATRIX/apt/$1" \
        "$root" "${SUITES[$1]}" || die "$1: debootstrap failed, see $LOG/debootstrap.log"
}

# copy_tree SYSTEM: the files that git knows here, no others. Ignored files, which a build has made
# there, stay.
copy_tree() {
    local copy=$MATRIX/roots/$1$INSIDE list=$LOG/files
    mkdir -p "$copy"
    [[ -d $copy/.git ]] || git init -q --template= "$copy"
    tree_files "$TOP" >"$list"
    tree_files "$copy" | LC_ALL=C comm -z -13 "$list" - | (cd "$copy" && xargs -0 -r rm -f --)
    (umask 022 && tar -C "$TOP" --owner=0 --group=0 --null -T "$list" -cf - | tar -C "$copy" -xf -)
    # Tests on the tree ask git for what it tracks.
    git -C "$copy" add --all
}

tree_files() {
    local file
    git -c safe.directory="$1" -C "$1" ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do
            [[ ! -e $1/$file ]] || printf '%s\0' "$file"
        done | LC_ALL=C sort -zu
}

# --- what is run ----------------------------------------------------------------------------------

run_setup() {
    local root=$MATRIX/roots/$1 status=0
    touch "$root/installing"
    inside "$1" host scripts/setup --test-user || status=1
    rm "$root/installing"
    return "$status"
}

run_build() {
    # shellcheck disable=SC2016 # expanded there
    inside "$1" none bash -c 'TOP=$PWD
        . scripts/build.sh
        mapfile -t SOURCE_ARGS < <(scripts/setup --print-configure-args)
        main_build && install_privately'
}

run_demo() {
    inside "$1" none scripts/demo
}

run_quick() {
    inside "$1" none scripts/check --quick
}

run_system() {
    inside "$1" none scripts/check "${FILES[@]}"
}

# record PART PASSED FAILED SKIPPED SECONDS
record() {
    printf 'part\t%s\t%d\t%d\t%d\t%d\n' "$@" >>"$RESULT.new"
    if (($2 + $3 + $4 > 1)); then
        say "$SYSTEM: $1: $2 passed, $3 failed, $4 skipped ($5 s)"
    else
        say "$SYSTEM: $1: $( (($3)) && echo FAILED || echo ok) ($5 s)"
    fi
}

# earlier_results PART: lines that there are of it.
earlier_results() {
    awk -F '\t' -v part="$1" '$1 == part && NF > 2 || $1 == "part" && $2 == part' "$RESULT" 2>/dev/null || true
}

# test_results PART TOTALS: what scripts/check has counted in TOTALS; where only some files were asked for, also
# what it had counted of the others.
test_results() {
    if [[ $1 == system && ${FILES[*]} != "$ALL_FILES" ]]; then
        earlier_results "$1" | cut -f 2- | awk -F '\t' '
            function file() { return $1 == "count" ? $6 : $1 == "took" ? $5 : $3 }
            NR == FNR { if ($1 == "count") now[file()]; next }
            file() ~ /^tests\// && !(file() in now)' "$2" -
    fi
    cat "$2"
}

# run_part PART: one line in the file of results, and of checks one for each test file.
run_part() {
    local part=$1 began=$SECONDS status=0 counts="1 0 0"
    local totals=$MATRIX/roots/$SYSTEM$INSIDE/build/check/totals
    rm -f "$totals"
    "run_$part" "$SYSTEM" >"$LOG/$part.log" 2>&1 </dev/null || status=1
    if [[ $part == quick || $part == system ]]; then
        if ((status)) && ! grep -qE $'^count\t[0-9]+\t[1-9]' "$totals"; then
            mkdir -p "${totals%/*}"
            printf 'count\t0\t1\t0\tcheck\tcomes to its end\n' >>"$totals"
        fi
        test_results "$part" "$totals" >"$LOG/totals"
        counts=$(awk -F '\t' '$1 == "count" { passed += $2; failed += $3; skipped += $4 }
            END { printf "%d %d %d", passed, failed, skipped }' "$LOG/totals")
        sed "s/^/$part\t/" "$LOG/totals" >>"$RESULT.new"
    elif ((status)); then
        counts="0 1 0"
    fi
    # shellcheck disable=SC2086 # three numbers
    record "$part" $counts $((SECONDS - began))
    if ((status)); then
        say "$SYSTEM: $part: see $LOG/$part.log"
        grep -E '^(failed|unstable): ' "$LOG/$part.log" >&2 || tail -n 30 "$LOG/$part.log" >&2
    fi
    return "$status"
}

# versions_in ROOT: what is before the last "-" and behind the epoch: the version of its makers.
versions_in() {
    local name
    for name in "${NEIGHBOURS[@]}"; do
        # shellcheck disable=SC2016 # dpkg-query's own field
        printf 'version\t%s\t%s\n' "$name" "$(dpkg-query --admindir="$1/var/lib/dpkg" \
            -W -f '${Version}' "${PACKAGES[$name]}" 2>/dev/null |
            sed -E 's/^[0-9]+://; s/-[^-]*$//; s/[+~](dfsg|ds|really).*//')"
    done
}

# run_one_system SYSTEM: all parts of it.
run_one_system() {
    local part status=0
    SYSTEM=$1 LOG=$MATRIX/$1 RESULT=$MATRIX/results/$1.tsv
    mkdir -p "$LOG" "$MATRIX/results" "$MATRIX/apt/$SYSTEM"
    exec 8>"$LOG/lock"
    flock -n 8 || die "another scripts/matrix is at work on $SYSTEM"
    make_root "$SYSTEM"
    copy_tree "$SYSTEM"
    printf 'system\t%s\n' "$SYSTEM" >"$RESULT.new"
    for part in "${SYSTEM_PARTS[@]}"; do
        case $part in
        setup | build) ;;
        *)
            [[ ,$PARTS_WANTED, == *",$part,"* ]] || {
                earlier_results "$part" >>"$RESULT.new"
                continue
            }
            ;;
        esac
        run_part "$part" && continue
        status=1
        # Without these, nothing else can be right.
        [[ $part != setup && $part != build ]] || break
    done
    versions_in "$MATRIX/roots/$SYSTEM" >>"$RESULT.new"
    mv "$RESULT.new" "$RESULT"
    exec 8>&-
    return "$status"
}

# --- the table ------------------------------------------------------------------------------------

# results_table: of all files of results, in the form of the documents. A part that was not run has
# an empty cell.
results_table() {
    local system name
    {
        printf '| system |'
        printf ' %s |' "${NEIGHBOURS[@]}" "${SYSTEM_PARTS[@]}"
        printf '\n|---|'
        printf -- '---|%.0s' "${NEIGHBOURS[@]}" "${SYSTEM_PARTS[@]}"
        printf '\n'
        for system in "${SYSTEMS[@]}"; do
            [[ -e $MATRIX/results/$system.tsv ]] || continue
            printf '| %s |' "$system"
            for name in "${NEIGHBOURS[@]}"; do
                awk -F '\t' -v name="$name" '$1 == "version" && $2 == name { version = $3 }
                    END { printf " %s |", version }' "$MATRIX/results/$system.tsv"
            done
            for name in "${SYSTEM_PARTS[@]}"; do
                awk -F '\t' -v name="$name" '
                    $1 == "part" && $2 == name {
                        cell = $3 + $4 + $5 == 1 ? ($4 ? "FAILED" : "ok") : $3 " passed"
                        if ($3 + $4 + $5 > 1 && $4) cell = cell ", " $4 " FAILED"
                        if ($5) cell = cell ", " $5 " skipped"
                    }
                    END { printf " %s |", cell }' "$MATRIX/results/$system.tsv"
            done
            printf '\n'
        done
    } | sed 's/  |/ |/g'
}

# files_table SUITE: of all files of results: a row for each test file of the suite, a column for each
# system, and the sums.
files_table() {
    results_awk "$1" '
        line == "count" && suite == $6 {
            name = file_of($7)
            if (!(name in known)) { known[name]; names[++number] = name }
            passed[name, where] = $3; failed[name, where] = $4; skipped[name, where] = $5
            told[name, where]; told["all", where]
            passed["all", where] += $3; failed["all", where] += $4; skipped["all", where] += $5
        }
        function row(name,    i, text) {
            text = "| " name " |"
            for (i = 1; i <= systems; i++) text = text " " cell(name, title[i]) " |"
            return text
        }
        function cell(name, where,    text) {
            if (!((name, where) in told)) return "–"
            text = passed[name, where]
            if (failed[name, where]) text = text ", " failed[name, where] " FAILED"
            if (skipped[name, where]) text = text ", " skipped[name, where] " skipped"
            return text
        }
        END {
            if (!number) exit
            heading("tests/" suite)
            # By name.
            for (i = 2; i <= number; i++)
                for (j = i; j > 1 && names[j - 1] > names[j]; j--) {
                    name = names[j]; names[j] = names[j - 1]; names[j - 1] = name
                }
            for (i = 1; i <= number; i++) print row(names[i])
            print row("all")
        }'
}

# skips_table SUITE: a row for each reason, and in it the files, each with the number of its tests.
skips_table() {
    results_awk "$1" '
        line == "skipped" && suite == $3 {
            name = file_of($4)
            reason = $6
            if (!(reason in known)) { known[reason]; reasons[++number] = reason }
            if (!((reason, where, name) in count)) files[reason, where] = files[reason, where] " " name
            count[reason, where, name]++
        }
        function cell(reason, where,    i, all, list, text) {
            all = split(files[reason, where], list, " ")
            for (i = 1; i <= all; i++)
                text = text (i > 1 ? ", " : "") list[i] " " count[reason, where, list[i]]
            return all ? text : "–"
        }
        END {
            if (number) heading("skipped, for")
            for (i = 1; i <= number; i++) {
                text = "| " reasons[i] " |"
                for (j = 1; j <= systems; j++) text = text " " cell(reasons[i], title[j]) " |"
                print text
            }
        }'
}

# results_awk SUITE PROGRAM: over all files of results. "line" says what a line is, "where" of which system.
results_awk() {
    local system
    local -a files=()
    for system in "${SYSTEMS[@]}"; do
        [[ ! -e $MATRIX/results/$system.tsv ]] || files+=("$MATRIX/results/$system.tsv")
    done
    ((${#files[@]})) || return 0
    awk -F '\t' -v suite="$1" '
        function heading(first,    i) {
            printf "| %s |", first
            for (i = 1; i <= systems; i++) printf " %s |", title[i]
            printf "\n|---|"
            for (i = 1; i <= systems; i++) printf "---|"
            print ""
        }
        function file_of(path) {
            sub(".*/", "", path)
            sub(/\.[a-z]+$/, "", path)
            return path
        }
        $1 == "system" && NF == 2 { where = title[++systems] = $2 }
        { line = $1 == "system" ? $2 : "" }'"$2" "${files[@]}"
}

# own_results: what scripts/check has counted in this tree are results of the system that this machine has,
# unless there are those of a root.
own_results() {
    local system codename result totals=$BUILD/check/totals
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    for system in "${SYSTEMS[@]}"; do
        result=$MATRIX/results/$system.tsv
        if [[ ${SUITES[$system]} != "$codename" ]] || grep -qs $'^part\tsetup' "$result" ||
            ! grep -qs $'\tsystem\ttests/' "$totals"; then
            continue
        fi
        mkdir -p "$MATRIX/results"
        {
            printf 'system\t%s\n' "$system"
            awk -F '\t' -v OFS='\t' '
                $1 == "count" && $5 ~ /^(unit|meta|system)$/ {
                    part = $5 == "system" ? $5 : "quick"
                    passed[part] += $2; failed[part] += $3; skipped[part] += $4
                    print part, $0
                }
                $1 == "skipped" && $2 == "system" { print "system", $0 }
                END { for (part in passed) print "part", part, passed[part], failed[part], skipped[part], 0 }
            ' "$totals"
            versions_in ""
        } >"$result"
    done
}

# all_tables: what is printed after a run.
all_tables() {
    own_results
    results_table
    echo
    files_table system
    echo
    skips_table system
}

# results_sum SYSTEM...: one line, as the last one of scripts/check.
results_sum() {
    local -a files=("${@/#/$MATRIX/results/}")
    awk -F '\t' '$1 == "part" { passed += $3; failed += $4; skipped += $5 }
        END { printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : "" }' \
        "${files[@]/%/.tsv}"
}

# test_files PATTERN...: sets FILES to what scripts/check is told.
test_files() {
    local pattern
    FILES=()
    for pattern; do
        if [[ $pattern == tests/?* ]] && compgen -G "$TOP/$pattern*" >/dev/null; then
            FILES+=("$pattern")
        elif [[ -e $TOP/tests/system/$pattern.bats ]]; then
            FILES+=("tests/system/$pattern.bats")
        elif compgen -G "$TOP/tests/system/*$pattern*.bats" >/dev/null; then
            FILES+=("tests/system/$pattern")
        else
            die "no file of tests/system has '$pattern' in its name"
        fi
    done
    ((${#FILES[@]})) || FILES=("$ALL_FILES")
}

systems_main() {
    local only='' system part status=0
    local -a systems=() patterns=() parts
    MIRROR=$(root_mirror) PARTS_WANTED=demo,quick,system
    while (($#)); do
        case $1 in
        --available | --results) only=${1#--} ;;
        --all) systems=("${SYSTEMS[@]}") ;;
        --parts | --mirror)
            (($# > 1)) || die "$1 needs a value"
            [[ $1 == --parts ]] && PARTS_WANTED=$2 || MIRROR=${2%/}
            shift
            ;;
        -*) die "unknown option $1; see scripts/matrix --help" ;;
        *) [[ -n ${SUITES[$1]+set} ]] && systems+=("$1") || patterns+=("$1") ;;
        esac
        shift
    done
    if [[ $only == results ]]; then
        all_tables
        exit 0
    fi
    ((${#systems[@]})) || die "which systems? There are: ${SYSTEMS[*]}"
    IFS=, read -r -a parts <<<"$PARTS_WANTED"
    for part in "${parts[@]}"; do
        [[ $part =~ ^(demo|quick|system)$ ]] || die "'$part' is no part; there are: demo quick system"
    done
    test_files "${patterns[@]}"
    need_root
    for system in "${systems[@]}"; do
        reach "$system"
    done
    [[ $only != available ]] || exit 0
    for system in "${systems[@]}"; do
        run_one_system "$system" || status=1
    done
    all_tables
    results_sum "${systems[@]}"
    exit "$status"
}
