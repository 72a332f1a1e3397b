# SPDX-License-Identifier: GPL-2.0-or-later
# The realistic form: each node has mounts and cgroups of its own.
# shellcheck shell=bash

# A node's control groups are slurm-elastic-PORT/nI of each of these hierarchies, of cgroup v1. Slurm
# 22.05 wants cgroup v2 either alone or not at all, and alone it asks systemd for its scopes.
CGROUPS=/sys/fs/cgroup
CONTROLLERS=(freezer cpuset memory devices cpuacct)
# What a node, or a job there, has of its own.
HIDDEN=(/tmp /run /dev/shm)

# REAL is not empty: the cluster has this form. In it slurmctld and slurmdbd run as the user slurm. Else
# SIMPLE says why not.
REAL= SIMPLE=
SERVICE_USER=slurm

CLUSTER_GROUP=slurm-elastic # and the port of its slurmctld

# Slurm's daemons without root's rights.
slurm_user() {
    if [[ $REAL ]]; then
        printf '%s' "$SERVICE_USER"
    else
        id -un
    fi
}

# Sets AS_SLURM: the words that start a command as that user.
as_slurm() {
    AS_SLURM=()
    [[ ! $REAL ]] || AS_SLURM=(setpriv --reuid="$SERVICE_USER" --regid="$(id -g "$SERVICE_USER")"
        --init-groups --)
}

# is_hidden PATH: whether nodes have something else there.
is_hidden() {
    local place
    [[ $REAL ]] || return 1
    for place in "${HIDDEN[@]}"; do
        [[ $1/ != "$place"/* ]] || return 0
    done
    return 1
}

# Its name has changed with Slurm 25.11.
container_plugin() {
    if slurm_at_least 25.11; then
        echo namespace_tmpfs
    else
        echo job_container_tmpfs
    fi
}

# Sets REASON to why this machine cannot have the realistic form; empty: it can.
look_for_obstacle() {
    local controller plugin
    REASON=
    if ((UID != 0)); then
        REASON="only root has mount namespaces and cgroups"
    elif ! id -u "$SERVICE_USER" >/dev/null 2>&1; then
        REASON="there is no user $SERVICE_USER; scripts/setup makes one"
    elif ! command -v unshare nsenter taskset >/dev/null; then
        REASON="unshare, nsenter or taskset is not installed"
    else
        for controller in "${CONTROLLERS[@]}"; do
            [[ -w $CGROUPS/$controller/tasks ]] ||
                REASON="no hierarchy of cgroup v1 at $CGROUPS/$controller"
        done
        for plugin in "$(container_plugin)" mpi_pmix proctrack_cgroup cgroup_v1; do
            [[ -e $(system_plugin_dir)/$plugin.so ]] || REASON="Slurm has no $plugin.so here"
        done
        [[ $REASON ]] || REAL=yes
        if [[ $REAL ]] && is_hidden "$DIR"; then
            REASON="jobs have a /tmp, /run and /dev/shm of their own, and would not see $DIR"
        fi
        REAL=
        # Whether it can be done is tried, since a container may forbid it to root.
        # shellcheck disable=SC2016 # the inner shell's
        [[ $REASON ]] || unshare --mount --cgroup -- bash -c \
            'mount -t tmpfs none "$1" && mkdir "$1/x" && mount -t cgroup -o freezer cgroup "$1/x"' \
            - "$CGROUPS" 2>/dev/null || REASON="mount namespaces cannot be made here"
    fi
}

choose_form() {
    if [[ $opt_form == simple ]]; then
        SIMPLE="by --simple"
    else
        look_for_obstacle
        SIMPLE=$REASON
    fi
    [[ $SIMPLE ]] || REAL=yes
    [[ $REAL || $opt_proctrack != cgroup ]] || die "--proctrack cgroup: not in the simple form: $SIMPLE"
    [[ $REAL || $opt_form != real ]] || die "--real: $SIMPLE"
    [[ $REAL || $opt_form == simple ]] || say "simple form: $SIMPLE"
}

# Sets GROUPS_OF to a node's group in each hierarchy.
groups_of() {
    local -a groups=("${CONTROLLERS[@]/#/$CGROUPS/}")
    GROUPS_OF=("${groups[@]/%//$CLUSTER_GROUP-$PORT/$1}")
}

# make_groups NODE
make_groups() {
    local key value all=$CGROUPS/cpuset
    groups_of "$1"
    mkdir -p "${GROUPS_OF[@]}" || fail "cannot make ${GROUPS_OF[*]}"
    for key in cpus mems; do
        read -r value <"$all/cpuset.$key"
        printf '%s\n' "$value" >"$all/$CLUSTER_GROUP-$PORT/cpuset.$key"
        printf '%s\n' "$value" >"$all/$CLUSTER_GROUP-$PORT/$1/cpuset.$key"
    done
}

# group_processes [NODE]: prints the pids of all in the groups of the cluster, or of one node.
group_processes() {
    [[ $REAL && ${PORT:-} ]] || return 0
    find "$CGROUPS/freezer/$CLUSTER_GROUP-$PORT/${1:-}" -name cgroup.procs -exec cat {} + 2>/dev/null
}

# A frozen process does not hear even SIGKILL.
thaw_groups() {
    local state
    [[ $REAL && ${PORT:-} ]] || return 0
    while read -r state; do
        { echo THAWED >"$state"; } 2>/dev/null || : # a group may go while it is looked at
    done < <(find "$CGROUPS/freezer/$CLUSTER_GROUP-$PORT" -mindepth 1 -name freezer.state 2>/dev/null)
}

# remove_groups [NODE]: fails while something is in them; the kernel takes its time for what has ended.
remove_groups() {
    local -a left
    [[ $REAL && ${PORT:-} ]] || return 0
    groups_of "${1:-}"
    mapfile -t left < <(ls -d "${GROUPS_OF[@]}" 2>/dev/null)
    ((${#left[@]} == 0)) || find "${left[@]}" -depth -type d -exec rmdir {} + 2>/dev/null
}

# What each node mounts. The names are not those that this machine's mounts have: mount --all leaves out
# what is there already.
mounts() {
    local place controller
    for place in "${HIDDEN[@]}"; do
        printf 'testbed %s tmpfs mode=%s\n' "$place" "$([[ $place == /run ]] && echo 755 || echo 1777)"
    done
    printf 'testbed %s tmpfs mode=755\n' "$CGROUPS"
    for controller in "${CONTROLLERS[@]}"; do
        printf 'testbed %s/%s cgroup %s,X-mount.mkdir\n' "$CGROUPS" "$controller" "$controller"
    done
}

# isolate NODE PROCESSORS: sets WITHIN: the words that start a slurmd in its node's mounts and groups, on
# these processors.
isolate() {
    # The second shell has a cgroup namespace, whose root is the group that the first one has joined.
    # shellcheck disable=SC2016 # the inner shell's
    WITHIN=(bash -c 'for group; do
            shift
            [ "$group" != -- ] || break
            echo $$ >"$group/cgroup.procs" || exit 1
        done
        exec "$@"' -)
    groups_of "$1"
    WITHIN+=("${GROUPS_OF[@]}" -- "$LIB/own-mounts" "$NAMESPACE_CPU" "$NAMESPACE_LIMIT"
        "$DIR/etc/mounts" "$2")
}

# The part of slurm.conf in which the forms differ.
form_conf() {
    if [[ -z $REAL ]]; then
        cat <<CONF
ProctrackType=proctrack/$([[ $opt_proctrack == pgid ]] && echo pgid || echo linuxproc)
TaskPlugin=task/none
MpiDefault=none
CONF
        return
    fi
    cat <<CONF
ProctrackType=proctrack/${opt_proctrack:-cgroup}
TaskPlugin=task/cgroup,task/affinity
$(slurm_at_least 25.11 && echo NamespaceType=namespace/tmpfs || echo JobContainerType=job_container/tmpfs)
PrologFlags=Contain
MpiDefault=pmix
PrivateData=jobs,usage,users,events
CONF
    # Slurm cannot lay out tasks on processors that are not there.
    ((opt_cpus <= $(nproc))) || printf 'TaskPluginParam=None\n'
}

isolation_files() {
    if [[ -z $REAL ]]; then
        # Slurm looks at what is mounted, and slurmd does not start where nothing is. Nothing of it is used
        # here. Slurm before 24.05 does not know the word disabled; its plugin for version 2 asks systemd
        # for a place, and does not start without it.
        if slurm_at_least 24.05; then
            printf '# Made by scripts/testbed.\nCgroupPlugin=disabled\n' >"$DIR/etc/cgroup.conf"
        elif [[ $(stat -f -c %T "$CGROUPS") == sysfs || ! -d /run/systemd/system ]]; then
            printf '# Made by scripts/testbed.\nCgroupPlugin=cgroup/v1\n' >"$DIR/etc/cgroup.conf"
        fi
        return 0
    fi
    mounts >"$DIR/etc/mounts"
    cat >"$DIR/etc/cgroup.conf" <<CONF
# Made by scripts/testbed.
CgroupPlugin=cgroup/v1
CgroupMountpoint=$CGROUPS
ConstrainRAMSpace=yes
ConstrainCores=yes
CONF
    printf '# Made by scripts/testbed.\nAutoBasePath=true\nBasePath=/run/jobs\n' \
        >"$DIR/etc/job_container.conf"
}
