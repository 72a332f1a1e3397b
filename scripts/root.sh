# SPDX-License-Identifier: GPL-2.0-or-later
# Roots of Debian in which something is tried: made once by debootstrap, cached, never changed after.
# shellcheck shell=bash
#
# Sourced. root_run gives a command a copy of the root that lasts as long as the command. Each
# mount is in a mount namespace of its own, and each process in a process namespace whose first
# process dies with the caller. So nothing is left mounted or running, not even after kill -9.

# root_missing: prints what this machine lacks, one line; nothing if roots can be made.
root_missing() {
    if ((EUID != 0)); then
        echo "not root"
    elif ! command -v debootstrap >/dev/null; then
        echo "no debootstrap: scripts/setup --packaging installs it"
    elif ! unshare --mount --pid --net --fork true 2>/dev/null; then
        echo "no namespaces of mounts, processes and networks"
    fi
}

# Where this machine gets its own Debian packages from.
root_mirror() {
    local found
    found=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list \
        2>/dev/null | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1)
    found=${found:-http://deb.debian.org/debian}
    printf '%s' "${found%%[/ ]}"
}

# root_make DIR SUITE PACKAGE...: makes the root unless DIR is such a one already.
root_make() {
    local dir=$1 suite=$2 mirror stamp
    shift 2
    mirror=$(root_mirror)
    stamp="$suite $mirror $*"
    mkdir -p "${dir%/*}"
    # Two of us at once would make the same root.
    (
        flock 9
        if [[ ! -d $dir || $(cat "$dir.stamp" 2>/dev/null) != "$stamp" ]]; then
            rm -rf "$dir" "$dir.new" "$dir.stamp"
            setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child=KILL --propagation private \
                /bin/bash -euo pipefail -c "$(declare -f root_build root_mounts); root_build \"\$@\"" \
                root "$dir.new" "$suite" "$mirror" "$@" || exit 1
            mv "$dir.new" "$dir"
            printf '%s\n' "$stamp" >"$dir.stamp"
        fi
    ) 9>"$dir.lock" </dev/null
}

root_build() {
    local root=$1 suite=$2 mirror=$3
    shift 3
    mount -t proc proc /proc
    debootstrap --variant=minbase "$suite" "$root" "$mirror"
    cat >"$root/etc/apt/sources.list" <<SOURCES
deb $mirror $suite main
deb $mirror $suite-updates main
deb $mirror-security $suite-security main
SOURCES
    # No service of a package starts here.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    cp -L /etc/resolv.conf "$root/etc/"
    root_mounts "$root"
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    chroot "$root" apt-get -q update
    chroot "$root" apt-get -q -y --no-install-recommends dist-upgrade
    chroot "$root" apt-get -q -y --no-install-recommends install "$@"
    chroot "$root" apt-get clean
    umount -R "$root/proc" "$root/dev" "$root/sys"
}

# Within private namespaces.
root_mounts() {
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    mount -t sysfs -o ro sysfs "$1/sys"
    mount --rbind /sys/fs/cgroup "$1/sys/fs/cgroup"
}

# root_run DIR [OPTION]... -- COMMAND...: runs it in a copy of the root, without a network but lo.
#   --read FROM=TO   binds a directory of this machine into the copy, read-only
#   --write FROM=TO  the same, writable
root_run() {
    setpriv --pdeathsig KILL unshare --mount --pid --net --fork --kill-child=KILL --propagation private \
        /bin/bash -euo pipefail -c "$(declare -f root_enter root_mounts); root_enter \"\$@\"" root "$@"
}

root_enter() {
    local base=$1 root bind
    shift
    # The copy is what is changed, in memory, over the cached root. Its mount point may be any directory.
    root=/mnt
    mount -t tmpfs -o mode=755 tmpfs "$root"
    mkdir "$root"/{change,work,all}
    mount -t overlay -o "lowerdir=$base,upperdir=$root/change,workdir=$root/work" overlay "$root/all"
    root=$root/all
    # With no address but 127.0.0.1 getaddrinfo() finds not even that one (AI_ADDRCONFIG).
    ip link set lo up
    ip address add 192.0.2.1/32 dev lo
    printf '127.0.0.1 localhost %s\n' "$(uname -n)" >"$root/etc/hosts"
    root_mounts "$root"
    mount -t tmpfs tmpfs "$root/run"
    while [[ $1 != -- ]]; do
        bind=$2
        mkdir -p "$root${bind#*=}"
        mount --bind "${bind%%=*}" "$root${bind#*=}"
        [[ $1 == --write ]] || mount -o remount,bind,ro "$root${bind#*=}"
        shift 2
    done
    shift
    exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
