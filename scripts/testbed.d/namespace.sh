# SPDX-License-Identifier: GPL-2.0-or-later
# Numbers of mount namespaces. Slurm binds the namespace of a job to a file in that of the node, which
# Linux allows only if the job's has a higher number. Linux 6.18 hands out numbers to each processor by
# the thousand. So a node's namespace is made on the processor whose numbers are the lowest.
# shellcheck shell=bash

NAMESPACE_CPU='' NAMESPACE_LIMIT=''

# Prints the processors that this may run on, as taskset -c takes them.
own_processors() {
    local said
    # Not line by line from /proc/self/status: it changes while it is read.
    said=$(taskset -cp "$BASHPID")
    printf '%s\n' "${said##*: }"
}

# number_of_namespace COMMAND...: runs it, followed by words that print the number of the namespace.
# Fails where the kernel tells none: an older one has one row of numbers.
number_of_namespace() {
    # shellcheck disable=SC2016 # perl's
    "$@" perl -e '
        open F, "/proc/self/ns/mnt"; $id = "\0" x 8;
        ioctl(F, 0x8008b705, $id) or exit 1;
        print unpack("Q", $id)' 2>/dev/null
}

# Sets NAMESPACE_CPU, and NAMESPACE_LIMIT: the lowest number that namespaces made on the others can have
# from now on. Both are empty where the kernel has one row of numbers, the limit where there is no other
# processor. What is chosen does not hold for ever: a processor gets new numbers, which are the highest.
choose_namespace_cpu() {
    local cpu id lowest=
    NAMESPACE_CPU='' NAMESPACE_LIMIT=''
    while read -r cpu; do
        id=$(number_of_namespace taskset -c "$cpu" unshare --mount --) || return 0
        if [[ -z $lowest ]] || ((id < lowest)); then
            NAMESPACE_LIMIT=$lowest
            lowest=$id NAMESPACE_CPU=$cpu
        elif [[ -z $NAMESPACE_LIMIT ]] || ((id < NAMESPACE_LIMIT)); then
            NAMESPACE_LIMIT=$id
        fi
    done < <(own_processors | tr , '\n' | awk -F- '{ for (i = $1; i <= $NF; i++) print i }')
}
