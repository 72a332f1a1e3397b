#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: bubblewrap.sh IMAGE COMMAND...
#
# Runs the command in a container: the programs, libraries and /etc of IMAGE, a directory with the
# files of a Linux system, and a /tmp and /dev/shm of its own. From the node come the working
# directory and what elasticrun names in ELASTIC_BIND. It needs no rights: user namespaces must be
# allowed.
set -euo pipefail

image=${1%/}
shift
arguments=(--die-with-parent --tmpfs / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /dev/shm)
for part in usr bin sbin lib lib32 lib64 etc opt; do
    if [[ -L $image/$part ]]; then
        arguments+=(--symlink "$(readlink "$image/$part")" "/$part")
    elif [[ -d $image/$part ]]; then
        arguments+=(--ro-bind "$image/$part" "/$part")
    fi
done
IFS=, read -ra paths <<<"${ELASTIC_BIND:-}"
for path in "$PWD" "${paths[@]}"; do
    arguments+=(--bind "$path" "$path")
done
# The node's library path may name libraries of the node.
exec bwrap "${arguments[@]}" --unsetenv LD_LIBRARY_PATH --chdir "$PWD" "$@"
