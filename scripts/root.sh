# SPDX-License-Identifier: GPL-2.0-or-later
# Roots of systems in which something is tried: made once by debootstrap, and entered.
# shellcheck shell=bash
#
# Sourced. A command in a root has a file system of its own, and mounts, processes and a host name
# of its own. All of these go with its first process, which the kernel kills when the caller ends,
# however it ends. So nothing is left mounted or running, not even after kill -9.

# root_missing: prints what this machine lacks, one line; nothing if roots can be made.
root_missing() {
    if ((EUID != 0)); then
        echo "only root can make the root of a system"
    elif ! command -v debootstrap >/dev/null; then
        echo "no debootstrap: scripts/setup installs it"
    elif ! command -v pivot_root >/dev/null; then
        echo "no pivot_root, which Debian forky has in util-linux-extra: scripts/setup installs it"
    elif ! root_namespaces none mount -t tmpfs none /mnt 2>/dev/null; then
        echo "this machine does not allow mounts, processes and networks in a namespace"
    fi
}

# Where this machine gets its own Debian packages from.
root_mirror() {
    local found
    found=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list \
        2>/dev/null | grep -v '^ *#' | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1)
    found=${found:-http://deb.debian.org/debian}
    found=${found%% }
    printf '%s' "${found%/}"
}

# root_namespaces NETWORK COMMAND...: NETWORK is host, or none for one of its own. With ROOT_GROUPS, a
# list of cgroups, the command is in them, and sees each as the root of its hierarchy.
root_namespaces() {
    local -a own=(--mount --pid --ipc --uts) join=()
    [[ $1 != none ]] || own+=(--net)
    shift
    if ((${#ROOT_GROUPS[@]})); then
        own+=(--cgroup)
        # shellcheck disable=SC2016 # the inner shell's
        join=(bash -c 'for group; do
                shift
                [ "$group" != -- ] || break
                echo $$ >"$group/cgroup.procs" || exit 1
            done
            exec "$@"' - "${ROOT_GROUPS[@]}" --)
    fi
    setpriv --pdeathsig KILL -- "${join[@]}" unshare "${own[@]}" --fork --kill-child=KILL \
        --propagation private -- "$@"
}

# Hierarchies of cgroups of version 1, as testbeds of the realistic form want them.
ROOT_CONTROLLERS=(freezer cpuset memory devices cpuacct)
ROOT_GROUPS=()

# root_has_groups: whether this machine has these hierarchies.
root_has_groups() {
    local controller
    for controller in "${ROOT_CONTROLLERS[@]}"; do
        [[ -w /sys/fs/cgroup/$controller/tasks ]] || return 1
    done
}

# root_make_groups: sets ROOT_GROUPS to new cgroups.
root_make_groups() {
    local all=/sys/fs/cgroup name=elastic-root-$BASHPID key group
    local -a groups=("${ROOT_CONTROLLERS[@]/#/$all/}")
    # What one that was killed has left.
    for group in "$all"/*/elastic-root-*; do
        [[ ! -d $group || -d /proc/${group##*-} ]] || find "$group" -depth -type d -exec rmdir {} + || true
    done
    ROOT_GROUPS=("${groups[@]/%//$name}")
    mkdir "${ROOT_GROUPS[@]}" || return
    for key in cpus mems; do
        cat "$all/cpuset/cpuset.$key" >"$all/cpuset/$name/cpuset.$key" || return
    done
}

# What was in them has been killed, but the kernel takes its time.
root_remove_groups() {
    local try
    for ((try = 0; ${#ROOT_GROUPS[@]} && try < 50; try++)); do
        find "${ROOT_GROUPS[@]}" -depth -type d -exec rmdir {} + 2>/dev/null
        [[ -d ${ROOT_GROUPS[0]} || -d ${ROOT_GROUPS[-1]} ]] || break
        sleep 0.1
    done
}

# root_make [--mirror URL] [--archives DIR] DIR SUITE PACKAGE...: makes the root, unless DIR is one of
# SUITE with these packages already. A root has its name when it is whole. DIR of --archives keeps
# what was downloaded.
root_make() {
    local dir suite mirror='' archives=''
    while [[ $1 == --* ]]; do
        [[ $1 == --mirror ]] && mirror=$2 || archives=$2
        shift 2
    done
    dir=$1 suite=$2
    shift 2
    mkdir -p "${dir%/*}"
    # Two of us at once would make the same root.
    (
        flock 9
        if [[ ! -d $dir || $(cat "$dir.stamp" 2>/dev/null) != "$suite $*" ]]; then
            rm -rf --one-file-system "$dir" "$dir.new" "$dir.stamp"
            root_build "$dir.new" "$suite" "${mirror:-$(root_mirror)}" "$archives" "$@" || exit
            mv "$dir.new" "$dir" && printf '%s\n' "$suite $*" >"$dir.stamp"
        fi
    ) 9>"$dir.lock" </dev/null
}

root_build() {
    local root=$1 suite=$2 mirror=$3 archives=$4 script=/usr/share/debootstrap/scripts
    local -a cache=() bind=()
    shift 4
    if [[ -n $archives ]]; then
        mkdir -p "$archives"
        cache=(--cache-dir="$archives") bind=(--write "$archives=/var/cache/apt/archives")
    fi
    # A suite that is newer than debootstrap is made as the one that is always the newest.
    script+=/$([[ -e $script/$suite ]] && echo "$suite" || echo sid)
    root_namespaces host debootstrap --variant=minbase "${cache[@]}" "$suite" "$root" "$mirror" "$script" &&
        root_sources "$suite" "$mirror" >"$root/etc/apt/sources.list" || return
    # Packages come from a mirror that may be a copy of a day in the past.
    printf '%s\n' 'Acquire::Check-Valid-Until "false";' 'Acquire::Languages "none";' \
        >"$root/etc/apt/apt.conf.d/50root"
    # A root that has not come to its end is made anew, so dpkg need not wait for the disk.
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/50root"
    (($#)) || return 0
    # No service of these packages starts.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    # shellcheck disable=SC2016 # expanded there
    root_run "$root" --keep --network "${bind[@]}" -- /bin/sh -euc 'apt-get -q update
        apt-get -q -y --no-install-recommends dist-upgrade
        apt-get -q -y --no-install-recommends install "$@"' sh "$@" || return
    [[ -n $archives ]] || rm -f "$root"/var/cache/apt/archives/*.deb
}

# What is behind a release comes from two more suites.
root_sources() {
    printf 'deb %s %s main\n' "$2" "$1"
    case $1 in
    forky | sid) ;;
    *) printf 'deb %s %s-updates main\ndeb %s-security %s-security main\n' "$2" "$1" "$2" "$1" ;;
    esac
}

# root_run DIR [OPTION]... -- COMMAND...: runs it in a copy of the root that is gone with it.
#   --keep           in the root itself: what the command changes stays
#   --groups         with cgroups of version 1 for it; root_has_groups says whether that can be
#   --network        with this machine's network; else there is only 127.0.0.1, and an address that
#                    nobody else has
#   --read FROM=TO   binds a directory of this machine there, read-only
#   --write FROM=TO  the same, writable
root_run() {
    local argument network=none status=0
    local -a ROOT_GROUPS=()
    for argument; do
        case $argument in
        --groups) root_make_groups || return ;;
        --network) network=host ;;
        --) break ;;
        esac
    done
    root_namespaces "$network" /bin/bash -euo pipefail -c \
        "$(declare -f root_enter root_mounts root_cgroups root_address); root_enter \"\$@\"" root "$@" || status=$?
    root_remove_groups
    return "$status"
}

# The first process in the namespaces. It makes the root the root, waits for the command, and
# collects the processes whose parents have ended.
root_enter() {
    local base=$1 root=/mnt keep=no network=no cgroups=no bind old
    local -a binds=()
    shift
    while [[ $1 != -- ]]; do
        case $1 in
        --keep) keep=yes ;;
        --network) network=yes ;;
        --groups) cgroups=yes ;;
        *)
            binds+=("$1" "$2")
            shift
            ;;
        esac
        shift
    done
    shift
    if [[ $keep == yes ]]; then
        mount --bind "$base" "$root"
    else
        # The changes are in memory. /mnt may be any directory.
        mount -t tmpfs -o mode=755 tmpfs "$root"
        mkdir "$root"/{change,work,all}
        mount -t overlay -o "lowerdir=$base,upperdir=$root/change,workdir=$root/work" overlay "$root/all"
        root=$root/all
    fi
    root_mounts "$root"
    [[ $cgroups == no ]] || root_cgroups "$root"
    set -- "${binds[@]}" -- "$@"
    while [[ $1 != -- ]]; do
        bind=$2
        mkdir -p "$root${bind#*=}"
        mount --bind "${bind%%=*}" "$root${bind#*=}"
        [[ $1 == --write ]] || mount -o remount,bind,ro "$root${bind#*=}"
        shift 2
    done
    shift
    if [[ $network == yes ]]; then
        # The root may have a link there, to what its own services would write.
        rm -f "$root/etc/resolv.conf"
        cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    else
        root_address
    fi
    echo root >"$root/proc/sys/kernel/hostname"
    printf '127.0.0.1 localhost root\n::1 localhost\n' >"$root/etc/hosts"
    # Somebody else may be entering the same root.
    old=$(mktemp -d "$root/.old.XXXXXX")
    old=${old##*/}
    cd "$root"
    pivot_root . "$old"
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    hash -r
    umount -l "/$old"
    rmdir "/$old"
    cd /
    setsid --wait env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

root_mounts() {
    local node
    mount -t proc proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mount -t tmpfs -o mode=755 tmpfs "$1/dev"
    mkdir "$1"/dev/{pts,shm}
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$1/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
    mount -t tmpfs -o mode=755 tmpfs "$1/run"
    mkdir "$1/run/lock"
    for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
        # shellcheck disable=SC2086 # a name and two numbers
        set -- "$1" $node
        mknod -m 666 "$1/dev/$2" c "$3" "$4"
    done
    ln -s /proc/self/fd "$1/dev/fd"
    ln -s fd/0 "$1/dev/stdin"
    ln -s fd/1 "$1/dev/stdout"
    ln -s fd/2 "$1/dev/stderr"
    ln -s pts/ptmx "$1/dev/ptmx"
}

# Of this namespace of cgroups.
root_cgroups() {
    local hierarchy all=$1/sys/fs/cgroup
    # The hierarchies that this process has a cgroup of its own in.
    mount -t tmpfs -o mode=755 tmpfs "$all"
    for hierarchy in freezer cpuset memory devices cpuacct; do
        mkdir "$all/$hierarchy"
        mount -t cgroup -o "$hierarchy" cgroup "$all/$hierarchy"
    done
}

# With no address but 127.0.0.1 getaddrinfo() would find not even that one (AI_ADDRCONFIG).
root_address() {
    ip link set lo up
    ip link add eth0 type veth peer name eth1
    ip address add 192.0.2.1/24 dev eth0
    ip link set eth0 up
    ip link set eth1 up
}
