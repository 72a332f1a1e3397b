# SPDX-License-Identifier: GPL-2.0-or-later
# What all parts of scripts/testbed use: messages, checks, waiting, the record of a cluster.
# shellcheck shell=bash

MAX_NODES=512 MAX_CPUS=256 MAX_GPUS=16
LEAF_NODES=4 # below one leaf switch of --tree

# What run/testbed keeps from up for the other commands.
RECORD=(NODES SUBMITTER SLURM PREFIX LIBRARY_DIR PYTHON_DIR PORT NETWORK OWN_CPUS REAL SIMPLE CLOUD)

# The first three parts of the addresses of a testbed with --netns.
NETWORK=
# Not empty: each node has its part of the processors.
OWN_CPUS=

say() {
    printf 'testbed: %s\n' "$*"
}

die() {
    printf 'testbed: %s\n' "$*" >&2
    exit 1
}

# number OPTION VALUE MIN MAX: prints VALUE if it is a whole number in the range.
number() {
    [[ $2 =~ ^[0-9]{1,6}$ ]] && ((10#$2 >= $3 && 10#$2 <= $4)) ||
        die "$1 $2: want a whole number from $3 to $4"
    printf '%d' "$((10#$2))"
}

# The name goes into slurm.conf, where blanks, '#' and '%' have a meaning of their own.
check_dir_name() {
    [[ $1 == /* ]] || opt_dir=$PWD/$1
    [[ $opt_dir =~ ^[A-Za-z0-9/._+@-]+$ ]] ||
        die "--dir $1: only letters, digits and / . _ + @ - may be in its path"
    # What is there needs no program.
    opt_dir=$( (cd -P -- "$opt_dir" 2>/dev/null && pwd) || realpath -m -- "$opt_dir")
    ((${#opt_dir} <= 70)) || die "--dir $1: longer than 70 characters, sockets would not fit"
    paths "$opt_dir"
}

# paths DIR: names the places in a cluster's directory.
paths() {
    DIR=$1
    CONF=$DIR/etc/slurm.conf
    MUNGE_SOCKET=$DIR/munge/socket
    PIDS=$DIR/run/pids
}

# As slurmctld and slurmd compute it.
host_name() {
    local name
    read -r name </proc/sys/kernel/hostname
    printf '%s' "${name%%.*}"
}

# A testbed may be started inside a job of another Slurm; nothing of that job may reach it.
# Sets OUTER to the names of what was there, for those who eval the output of env.
forget_outer_slurm() {
    local name
    OUTER=()
    for name in $(compgen -e); do
        if is_slurm_variable "$name"; then
            OUTER+=("$name")
            unset "$name"
        fi
    done
}

is_slurm_variable() {
    [[ $1 =~ ^(SLURM|SLURMD|SBATCH|SALLOC|SRUN|SQUEUE|SINFO|SCANCEL|SACCT|SPANK|PMI|PMIX)_ ]]
}

# wait_until SECONDS COMMAND...: runs it ten times a second until it succeeds; fails in the end.
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

SUBMITTER_GROUP=

# As the ordinary user, to see what that one may read.
as_submitter() {
    if ((UID == 0)) && [[ $SUBMITTER != root ]]; then
        SUBMITTER_GROUP=${SUBMITTER_GROUP:-$(id -g "$SUBMITTER")}
        setpriv --reuid="$SUBMITTER" --regid="$SUBMITTER_GROUP" --init-groups -- "$@"
    else
        "$@"
    fi
}

# Where Slurm is installed; empty: where PATH finds it.
SLURM=

# Slurm's programs are those of that installation, before all others.
use_slurm() {
    [[ -z $SLURM ]] || PATH=$SLURM/bin:$SLURM/sbin:$PATH
}

# Whether it is YEAR.MONTH or later. VERSION is what it says, once that has been asked.
VERSION=
slurm_at_least() {
    local own
    VERSION=${VERSION:-$(slurmctld -V)} # slurm-wlm 22.05.8, slurm 24.11.5
    [[ ${VERSION##* } =~ ^([0-9]+)\.([0-9]+) ]] || return 1
    own=$((10#${BASH_REMATCH[1]} * 100 + 10#${BASH_REMATCH[2]}))
    ((own >= 10#${1%.*} * 100 + 10#${1#*.}))
}

# slurm COMMAND...: a client of this cluster, which never takes long even if slurmctld is gone.
slurm() {
    SLURM_CONF=$CONF timeout -k 1 "${SLURM_TIMEOUT:-30}" "$@"
}

write_record() {
    local name
    for name in "${RECORD[@]}"; do
        printf '%s=%q\n' "$name" "${!name}"
    done >"$DIR/run/testbed.new"
    mv "$DIR/run/testbed.new" "$DIR/run/testbed" # for down, whatever becomes of us
}

# The record is shell code, so it is read only from a directory that nobody else could fill.
read_record() {
    [[ -e $DIR ]] || die "no testbed in $DIR; start one with: scripts/testbed up"
    own_directory
    [[ -e $DIR/run/testbed ]] || die "$DIR holds no complete testbed; scripts/testbed down clears it"
    # shellcheck disable=SC1091
    . "$DIR/run/testbed"
    use_slurm
}

own_directory() {
    [[ -d $DIR && -O $DIR && ! -L $DIR ]] ||
        die "$DIR is not a directory of user $(id -un); run this as its owner"
}
