# SPDX-License-Identifier: GPL-2.0-or-later
# Which installation of slurm-elastic a cluster uses, and which parts of it there are.
# shellcheck shell=bash

# dir_of NAME PREFIX: prints the directory of the first file whose path ends with NAME where PREFIX
# has libraries and our data. (Anything may be in /usr/local beside them.)
dir_of() {
    local found
    found=$(find "$2"/lib* "$2/share/slurm-elastic" -path "*/$1" \( -type f -o -type l \) -print -quit 2>/dev/null || true)
    printf '%s' "${found%"/$1"}"
}

has_our_parts() {
    [[ -x $1/bin/elasticrun || -n $(dir_of spank_elastic.so "$1") ]]
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
    if as_submitter test -r "$PREFIX" -a -x "$PREFIX" && ! is_hidden "$PREFIX"; then
        return 0
    fi
    say "user $SUBMITTER cannot read $PREFIX on the nodes: using a copy in $DIR/inst"
    cp -R -- "$PREFIX" "$DIR/inst"
    chmod -R a+rX,go-w "$DIR/inst"
    # As make install leaves it: nobody but root reads it (flush/local.mk).
    find "$DIR/inst" \( -name elastic-flush -o -name elastic-fit \) -type f -exec chmod 0711 {} +
    PREFIX=$DIR/inst
}

# Sets SPANK_DIR, JOB_SUBMIT_DIR, SELECT_DIR, LIBRARY_DIR and PYTHON_DIR to where PREFIX has these parts, else
# to nothing.
find_parts() {
    SPANK_DIR='' JOB_SUBMIT_DIR='' SELECT_DIR='' LIBRARY_DIR='' PYTHON_DIR=''
    if [[ -n $PREFIX ]]; then
        if [[ $opt_stock == no ]]; then
            SPANK_DIR=$(dir_of spank_elastic.so "$PREFIX")
            JOB_SUBMIT_DIR=$(dir_of job_submit_elastic.so "$PREFIX")
            SELECT_DIR=$(dir_of select_elastic_cons_tres.so "$PREFIX")
        fi
        LIBRARY_DIR=$(dir_of libelastic.so.0 "$PREFIX")
        PYTHON_DIR=$(dir_of slurm_elastic/__init__.py "$PREFIX")
    fi
    [[ $opt_select == no || -n $SELECT_DIR ]] ||
        die "--select: there is no select_elastic_cons_tres.so in $PREFIX; it is built with --with-slurm-source"
    [[ -n $PYTHON_DIR || ! -e $TOP/client/python/slurm_elastic ]] || use_python_of_tree
}

# The Python package needs no build; a tree that the ordinary user cannot enter is copied.
use_python_of_tree() {
    PYTHON_DIR=$TOP/client/python
    if ! as_submitter test -r "$PYTHON_DIR/slurm_elastic" || is_hidden "$PYTHON_DIR"; then
        mkdir -p "$DIR/inst/python"
        cp -R -- "$PYTHON_DIR/slurm_elastic" "$DIR/inst/python/"
        chmod -R a+rX,go-w "$DIR/inst/python"
        PYTHON_DIR=$DIR/inst/python
    fi
}

# Sets SLURM from --slurm or ELASTIC_SLURM.
choose_slurm() {
    SLURM=$opt_slurm
    [[ $SLURM ]] || return 0
    [[ -x $SLURM/sbin/slurmctld ]] || die "--slurm $SLURM: there is no sbin/slurmctld"
    SLURM=$(cd "$SLURM" && pwd -P)
    use_slurm
}

# Slurm's own plugin directory, needed beside ours in PluginDir.
system_plugin_dir() {
    local plugin
    local -a places=(/usr/lib/*/slurm-wlm /usr/lib*/slurm /usr/lib/*/slurm /usr/local/lib*/slurm)
    [[ -z $SLURM ]] || places=("$SLURM"/lib*/slurm)
    for plugin in "${places[@]/%//select_cons_tres.so}"; do
        if [[ -e $plugin ]]; then
            printf '%s' "${plugin%/*}"
            return 0
        fi
    done
    die "Slurm's select_cons_tres.so is nowhere below ${SLURM:-/usr}: install slurmctld and slurmd"
}

# link_hooks KIND (prolog or epilog): gathers the executable scripts of KIND.d, so that a README
# beside them is not run. Prints the pattern for slurm.conf, or nothing when there is none.
link_hooks() {
    local from script hook target=$DIR/etc/$1.d
    from=$(find "$PREFIX"/lib* "$PREFIX"/{etc,share} -type d -path "*elastic*/$1.d" -print -quit \
        2>/dev/null || true)
    [[ -n $from ]] || from=$TOP/scripts/$1.d
    mkdir "$target"
    for script in "$from"/*; do
        if [[ -f $script && -x $script ]]; then
            # As an admin does it: the program that starts the script.
            hook=${script%/*/*}/elastic-hook
            [[ $script == */50-elastic && -x $hook ]] || hook=$script
            ln -s "$hook" "$target/${script##*/}"
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
    if [[ -n $SPANK_DIR ]]; then there+=(spank_elastic); else missing+=(spank_elastic); fi
    if [[ -n $JOB_SUBMIT_DIR ]]; then
        there+=(job_submit/elastic)
    else
        missing+=(job_submit/elastic)
    fi
    [[ $opt_select == no ]] || there+=(select/elastic_cons_tres)
    say "plugins: ${there[*]:-none}${missing[*]:+ (not installed: ${missing[*]})}, from $PREFIX"
}
