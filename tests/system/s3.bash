# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For tests with a real S3 server (tests/system/radosgw), and boto3 as a second opinion on what is there. Load after helpers.

# s3_up NAME: starts both below a directory of this name, and exports it as RGW. Fails if it cannot, and skips the file if something
# is not installed.
s3_up() {
    local status=0 why
    RGW=$(mktemp -d "${TMPDIR:-/var/tmp}/$1.XXXXXX")
    export RGW
    /usr/bin/python3 -c 'import boto3' 2>/dev/null || skip "boto3 is not installed (scripts/setup --s3)"
    why=$("$TREE/tests/system/radosgw" up "$RGW/server") || status=$?
    ((status != 77)) || skip "$why"
    ((status == 0)) || { echo "$why" && return 1; }
    /usr/bin/python3 "$TREE/tests/system/s3_object.py" serve "$RGW/second" 3>&- >"$RGW/second.out" 2>&1 &
    echo $! >"$RGW/second.pid"
    wait_for 20 test -S "$RGW/second" || { cat "$RGW/second.out" && return 1; }
}

s3_down() {
    [[ -n ${RGW:-} ]] || return 0
    [[ ! -e $RGW/second.pid ]] || kill "$(<"$RGW/second.pid")" 2>/dev/null || true
    [[ ! -e $RGW/server ]] || "$TREE/tests/system/radosgw" down "$RGW/server"
    rm -rf -- "$RGW"
}

# server_env: lines NAME=VALUE of server and keys.
server_env() { "$TREE/tests/system/radosgw" env "$RGW/server"; }

# second COMMAND ARGUMENT...: of s3_object.py.
second() { /usr/bin/python3 -I -S "$TREE/tests/system/s3_object.py" ask "$RGW/second" "$@"; }
