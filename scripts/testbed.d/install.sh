# SPDX-License-Identifier: GPL-2.0-or-later
# Which installation of slurm-elastic a cluster uses, and which parts of it there are.
# shellcheck shell=bash

# first_file NAME DIR...: prints the path of the first regular file or link of that name.
first_file() {
    local name=$1
    shift
    find "$@" -name "$name" \( -type f -o -type l \) -print -quit 2>/dev/null || true
}

has_our_parts() {
    [[ -x $1/bin/elasticrun || -n $(first_file spank_elastic.so "$1") ||
        -n $(first_file job_submit_elastic.so "$1") ]]
}

# Sets PREFIX from --prefix or the default; empty with --stock and nothing installed.
choose_prefix() {
    PREFIX=$opt_prefix
    if [[ -n $PREFIX ]]; then
        [[ -d $PREFIX ]] || die "--prefix $PREFIX: no such directory; make install puts it there"
        PREFIX=$(cd "$PREFIX" && pwd -P)
    elif [[ -d $TOP/build/inst ]]; then
        PREFIX=$TOP/build/inst
    elif has_our_parts /usr/local; then
        PREFIX=/usr/local
    elif [[ $opt_stock == no ]]; then
        die "nothing installed in $TOP/build/inst or /usr/local: install there, or say --prefix" \
            "PREFIX or --stock"
    fi
}

# An ordinary user's sbatch loads the SPANK plugin and runs elasticrun itself. A prefix below a
# home directory that this user cannot enter is therefore copied into the cluster's directory.
copy_hidden_prefix() {
    [[ -n $PREFIX ]] || return 0
    if as_submitter test -r "$PREFIX" -a -x "$PREFIX"; then
        return 0
    fi
    say "user $SUBMITTER cannot read $PREFIX: using a copy in $DIR/inst"
    cp -R -- "$PREFIX" "$DIR/inst"
    chmod -R a+rX,go-w "$DIR/inst"
    PREFIX=$DIR/inst
}

# Sets PLUGIN_DIR, SPANK_PLUGIN and PYTHON_DIR to what is installed in PREFIX, else to nothing.
find_parts() {
    local found
    PLUGIN_DIR='' SPANK_PLUGIN='' PYTHON_DIR=''
    if [[ -n $PREFIX ]]; then
        if [[ $opt_stock == no ]]; then
            SPANK_PLUGIN=$(first_file spank_elastic.so "$PREFIX")
            found=$(first_file job_submit_elastic.so "$PREFIX")
            PLUGIN_DIR=${found%/*}
        fi
        found=$(find "$PREFIX" -path '*/slurm_elastic/__init__.py' -print -quit 2>/dev/null || true)
        PYTHON_DIR=${found%/slurm_elastic/__init__.py}
    fi
}

# Slurm's own plugin directory, needed beside ours in PluginDir.
system_plugin_dir() {
    local plugin
    for plugin in /usr/lib/*/slurm-wlm/select_cons_tres.so /usr/lib*/slurm/select_cons_tres.so \
        /usr/lib/*/slurm/select_cons_tres.so /usr/local/lib*/slurm/select_cons_tres.so; do
        if [[ -e $plugin ]]; then
            printf '%s' "${plugin%/*}"
            return 0
        fi
    done
    die "Slurm's select_cons_tres.so is nowhere below /usr: install slurmctld and slurmd"
}

# link_hooks KIND (prolog or epilog): gathers the executable scripts of KIND.d, so that a README
# beside them is not run. Prints the pattern for slurm.conf, or nothing when there is none.
link_hooks() {
    local from script target=$DIR/etc/$1.d
    from=$(find "${PREFIX:-/nonexistent}" -type d -name "$1.d" -path '*elastic*' -print -quit \
        2>/dev/null || true)
    [[ -n $from ]] || from=$TOP/scripts/$1.d
    mkdir "$target"
    for script in "$from"/*; do
        if [[ -f $script && -x $script ]]; then
            ln -s "$script" "$target/"
        fi
    done
    if [[ -n $(ls "$target") ]]; then
        printf '%s/*' "$target"
    fi
}

report_parts() {
    local -a there=() missing=()
    if [[ $opt_stock == yes ]]; then
        say "plugins: none (--stock)"
        return
    fi
    [[ -n $SPANK_PLUGIN ]] && there+=(spank_elastic) || missing+=(spank_elastic)
    [[ -n $PLUGIN_DIR ]] && there+=(job_submit/elastic) || missing+=(job_submit/elastic)
    say "plugins: ${there[*]:-none}${missing[*]:+ (not installed: ${missing[*]})}, from $PREFIX"
}
