# SPDX-License-Identifier: GPL-2.0-or-later
# A testbed for the table of faults, and for random ones: 7 nodes with a network each. Without bats, too.
# shellcheck shell=bash
#
#     faults_up; on_nodes run.py --only 'worker killed'; faults_down

FAULTS_TREE=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd -P)

# faults_up: exports TB_HOME, TB_DIR, TB_WORK, TB_USER, TESTBED.
faults_up() {
    local file
    export TESTBED=$FAULTS_TREE/scripts/testbed
    TB_HOME=$(mktemp -d "${TMPDIR:-/var/tmp}/elastic-test.XXXXXX")
    TB_DIR=$TB_HOME/testbed TB_WORK=$TB_HOME/work TB_USER=${ELASTIC_TEST_USER:-elastic}
    export TB_HOME TB_DIR TB_WORK TB_USER
    chmod 0755 "$TB_HOME"
    # The directory above that of snapshots is root's: the epilog uses no other one.
    mkdir "$TB_WORK" "$TB_WORK/disk" "$TB_HOME/memory"
    # Before the nodes have file systems of their own.
    mount -t tmpfs -o size=300m,mode=1777 elastic-faults "$TB_WORK/disk" || return 1
    mount -t tmpfs -o size=600m,mode=1777 elastic-faults "$TB_HOME/memory" || return 1
    chown "$TB_USER" "$TB_WORK"
    "$TESTBED" up --dir "$TB_DIR" --nodes 7 --netns --slurmd-timeout 120 --user "$TB_USER" ${prefix:+--prefix "$prefix"} || return 1
    for file in live.py live_faults.py soak.py faults/{catalogue,job,run,table,training}.py faults/table.txt; do
        install -m 0644 "$FAULTS_TREE/tests/system/$file" "$TB_WORK/"
    done
    install -m 0755 /dev/stdin "$TB_WORK/notice" <<SH
#!/bin/sh
[ -e "$TB_WORK/reclaim.\$SLURMD_NODENAME" ]
SH
    sed -i "s|^node_backoff = .*|&\nreclaim_program = $TB_WORK/notice|; s|^snapshot_dir = .*|snapshot_dir = $TB_HOME/memory|" "$TB_DIR/etc/elastic.conf"
    # A node that crashes loses what it has there.
    rmdir "$TB_DIR/snapshots"
    ln -s "$TB_HOME/memory" "$TB_DIR/snapshots"
}

# What the jobs have written is copied to the directory $FAULTS_KEEP, if that is set.
faults_down() {
    [[ -z ${FAULTS_KEEP:-} || ! -d ${TB_WORK:-/nonexistent} ]] || cp -R "$TB_WORK"/*.out "$TB_WORK"/log-* "$FAULTS_KEEP/" 2>/dev/null || true
    [[ ! -e ${TB_DIR:-/nonexistent} ]] || "$TESTBED" down --dir "$TB_DIR"
    [[ -z ${TB_WORK:-} ]] || umount "$TB_WORK/disk" "$TB_HOME/memory" 2>/dev/null || true
    [[ -z ${TB_HOME:-} ]] || rm -rf --one-file-system -- "$TB_HOME"
}

# on_nodes PROGRAM ARGUMENT...: run.py or soak.py.
on_nodes() {
    (
        eval "$("$TESTBED" env --dir "$TB_DIR")"
        exec /usr/bin/python3 "$TB_WORK/$1" "${@:2}"
    )
}
