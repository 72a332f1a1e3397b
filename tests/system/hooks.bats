#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# prolog.d and epilog.d against users who want more than their share of a node. No Slurm runs: the
# tests call the scripts as slurmd does, in a mount namespace of their own.
# Takes 170 s

bats_require_minimum_version 1.8.0

setup() {
    [[ $(id -u) == 0 ]] || skip 'needs root to be another user'
    unshare --mount true 2>/dev/null || skip 'no file system can be mounted here'
    LIBEXEC=${prefix:-/usr/local}/libexec/slurm-elastic
    WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/elastic-hooks.XXXXXX") # on a disk
    chmod 711 "$WORK"
    mkdir -m 711 "$WORK/place"
    OUT=$WORK/out
    USER_ID=65534
    export LIBEXEC WORK OUT USER_ID
    export -f hook as_user leave own filled stub
    printf 'snapshot_dir = %s\nepilog_flush = 1\n' "$WORK/place" >"$WORK/elastic.conf"
}

teardown() {
    local pid
    while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done < <(cat "$WORK"/pids 2>/dev/null)
    rm -rf -- "${WORK:?}"
}

# hook CONTEXT JOB [NAME=VALUE...]: calls it as slurmd does, for a job of user nobody on node n1. Nobody looks
# for extensions of an extension. No Slurm on this machine has a job of such a number.
hook() {
    local context=$1 job=$2
    shift 2
    env -i SLURM_SCRIPT_CONTEXT="${context}_slurmd" SLURM_JOB_ID="$job" SLURM_JOB_UID="$USER_ID" \
        SLURM_JOB_GID=65534 SLURM_JOB_RESTART_COUNT=0 SLURMD_NODENAME=n1 SLURM_NODELIST=n1 \
        SLURM_CONF=/nonexistent/slurm.conf ELASTIC_CONF="$WORK/elastic.conf" \
        SLURM_JOB_COMMENT=elastic-extension-of=1.0 "$@" \
        "${HOOK:-${STUB:-$LIBEXEC}/elastic-hook}" </dev/null
}

as_user() { setpriv --reuid="$USER_ID" --regid=65534 --clear-groups env -C / "$@"; }

# own NAME...: makes run directories of the user by these names, as the prolog does.
own() {
    local name
    for name; do
        install -d -m 700 -o "$USER_ID" -g 65534 "$WORK/place/$name"
    done
}

# filled NAME...: the same, with something in them.
filled() {
    own "$@"
    (cd "$WORK/place" && setpriv --reuid="$USER_ID" --regid=65534 --clear-groups touch "${@/%//x}")
}

# leave JOB BYTES CHECKPOINT: the run directory of a killed agent, with a snapshot of so many bytes.
leave() {
    own "elastic-$USER_ID-$1.0-n1"
    as_user /usr/bin/python3 - "$WORK/place/elastic-$USER_ID-$1.0-n1" "$2" "$3" <<'PY'
import hashlib, json, os, sys
run_dir, size, checkpoint = sys.argv[1:]
os.makedirs(run_dir + "/snapshot/0", 0o700)
open(run_dir + "/agent.lock", "w").close()
state = b"x" * int(size)
open(run_dir + "/snapshot/0/state", "wb").write(state)
files = {"state": {"bytes": len(state), "blake2b": hashlib.blake2b(state, digest_size=32).hexdigest()}}
manifest = {"format": 1, "incarnation": "1.0", "generation": 1, "step": 1, "checkpoint": checkpoint, "files": files}
json.dump(manifest, open(run_dir + "/snapshot/0/complete.json", "w"))
PY
}

# stub COMMAND: the hook runs with a script in the place of elastic-flush.
stub() {
    STUB=$WORK/stub
    mkdir -p "$STUB"
    cp -RL "$LIBEXEC/epilog.d" "$LIBEXEC/elastic-hook" "$STUB/"
    [[ ! -e $LIBEXEC/elastic-runs ]] || cp "$LIBEXEC/elastic-runs" "$STUB/"
    install -m 666 /dev/null "$OUT"
    printf '#!/bin/bash\necho "$UID $*" >>%s\n%s\n' "$OUT" "$1" >"$STUB/elastic-flush"
    chmod 755 "$STUB/elastic-flush"
    export STUB
}

# wait_for SECONDS COMMAND...
wait_for() {
    local end=$((SECONDS + $1)) hundredths=5 pause
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        # Most of what is waited for is a look at all processes of the machine.
        printf -v pause '0.%02d' "$hundredths"
        sleep "$pause"
        ((hundredths = hundredths < 40 ? hundredths * 3 / 2 : 40))
    done
}

# Without the guards of flushes, which are forks of a sweep.
sweeps() { pgrep -f "elastic-runs prolog .*$WORK/place" | xargs -r ps -o comm= -p | grep -cx elastic-runs || true; }

# is_gone PID: it runs no more.
is_gone() { ! grep -qs '^State:[[:blank:]]*[^Z]' "/proc/$1/status"; }

no_sweep() { (($(sweeps) == 0)); }

# in_memory SIZE: the place is a tmpfs of that size, in this namespace.
in_memory() { mount -t tmpfs -o "mode=711,size=$1,nr_inodes=1000" none "$WORK/place"; }

@test "the only program that the hook runs with the user's rights is one that the user cannot trace" {
    command -v strace >/dev/null || skip 'needs strace'
    own "elastic-$USER_ID-4000012.0-n1"
    strace -f -qq -e trace=execve,setresuid,setreuid,setuid -e status=successful -o "$WORK/trace" \
        bash -c 'hook epilog 4000012'
    # What a process executes after it has given up root.
    awk '$2 ~ /^setres?uid|^setuid/ { user[$1] = 1 } $2 ~ /^execve/ && user[$1] { print $2 }' \
        "$WORK/trace" >"$OUT"
    cat "$OUT"
    [ "$(sort -u "$OUT")" = "execve(\"$LIBEXEC/elastic-flush\"," ]
    run ! as_user cat "$LIBEXEC/elastic-flush"
}

@test "no uid out of range, and no invented owner, starts anything" {
    stub 'echo "nothing to flush: it is in use"'
    filled "elastic-$USER_ID-4000012.0-n1"
    chmod 1777 "$WORK/place"
    as_user mkdir -p "$WORK"/place/elastic-{4294967296-4000001,4294967295-4000001,4294967298-4000001,0-4000001,70001-4000001,"$USER_ID"-x}.0-n1/x
    hook prolog 4000099
    wait_for 30 test -s "$OUT"
    wait_for 30 no_sweep
    cat "$OUT"
    [ "$(wc -l <"$OUT")" = 1 ]
    grep -q "^$USER_ID .*place/elastic-$USER_ID-4000012.0-n1$" "$OUT"
}

@test "one sweep of a node at a time, and one process of a user in it" {
    stub 'exec 2>&- >&-; while [[ -e '"$WORK/hangs"' ]]; do sleep 0.1; done'
    touch "$WORK/hangs"
    filled "elastic-$USER_ID-4000012.0-n1" "elastic-$USER_ID-4000013.0-n1"
    pids=()
    for job in 100 101 102 103 104 105 106 107; do
        hook prolog "$job" &
        pids+=($!)
    done
    wait "${pids[@]}"
    wait_for 30 test -s "$OUT"
    (($(sweeps) <= 2))
    wait_for 30 no_sweep
    hook prolog 4000108
    wait_for 30 no_sweep
    cat "$OUT"
    [ "$(wc -l <"$OUT")" = 1 ] # each user's directories in one process, and no other while that hangs
    rm "$WORK/hangs"
}

# strangers COUNT [FIRST]: run directories of as many uids without an account, as one user can make with his subordinate uids where
# everybody may write.
strangers() {
    /usr/bin/python3 - "$WORK/place" "$1" "${2:-300000}" <<'PY'
import os, sys
first = int(sys.argv[3])
for uid in range(first, first + int(sys.argv[2])):
    path = f"{sys.argv[1]}/elastic-{uid}-4000001.0-n1"
    os.makedirs(path + "/x", 0o700)
    os.chown(path, uid, uid)
    os.chown(path + "/x", uid, uid)
PY
}

@test "uids without an account start no flushes of their own, and keep no user from his turn" {
    chmod 1777 "$WORK/place"
    filled "elastic-$USER_ID-4000012.0-n1"
    strangers 400
    stub 'while ((UID >= 300000)) && [[ -e '"$WORK/hangs"' ]]; do sleep 0.1; done; echo "nothing to flush: it is in use"'
    touch "$WORK/hangs"
    for _ in 1 2; do
        hook prolog 4000099
        wait_for 60 no_sweep
    done
    cat "$OUT"
    rm "$WORK/hangs"
    (($(grep -c "^$USER_ID " "$OUT") == 2))
    (($(grep -vc "^$USER_ID " "$OUT") == 1))
}

# all_had_a_turn: after another prolog.
all_had_a_turn() {
    hook prolog 4000099
    wait_for 100 no_sweep
    (($(cut -d ' ' -f 1 "$OUT" | sort -u | wc -l) == 310))
}

@test "where more users have left something than one sweep takes, none is left out for ever" {
    stub 'echo "nothing to flush: it is in use"'
    strangers 310 70001
    wait_for 300 all_had_a_turn
}

@test "however many jobs end, few flushes of a user wait" {
    stub 'while [[ -e '"$WORK/hangs"' ]]; do sleep 0.1; done'
    touch "$WORK/hangs"
    sed -i 's/^epilog_flush.*/epilog_flush = 0/' "$WORK/elastic.conf"
    pids=()
    for job in {20..39}; do
        own "elastic-$USER_ID-$job.0-n1"
        hook epilog "$job" &
        pids+=($!)
    done
    wait "${pids[@]}"
    wait_for 30 test -s "$OUT"
    [ "$(wc -l <"$OUT")" -le 8 ]
    rm "$WORK/hangs"
}

# What is started from here on is not killed where memory is short, like some slurmds, if this machine lets root do that.
protect() { echo -1000 >/proc/self/oom_score_adj || true; } 2>/dev/null

@test "access of trainers is taken back by a process of the user that has bounds" {
    stub :
    printf '#!/bin/bash\necho "$(id -u) $(ulimit -v) $1 $(cat /proc/self/oom_score_adj)" >%s\n' "$OUT" >"$STUB/elastic-fit"
    chmod 755 "$STUB/elastic-fit"
    (protect; hook epilog 4000012 SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT=)
    wait_for 30 test -s "$OUT"
    read -r user memory command first <"$OUT"
    [[ $user == "$USER_ID" && $command == revoke && $first == 1000 ]]
    ((memory > 0 && memory <= 1 << 20))
}

# It begins as a program that the user may not read. Its PATH is that of slurmd, whose commands are beside it.
@test "no other process of the user can trace the one that takes access of trainers back" {
    stub :
    install -m 711 /bin/bash "$STUB/elastic-fit"
    install -d -m 755 "$WORK"/slurm/{sbin,bin}
    install -m 755 /bin/bash "$WORK/slurm/sbin/slurmd"
    printf 'echo $$ >%s; while :; do sleep 0.1; done\n' "$OUT" >"$WORK/slurm/bin/revoke"
    chmod 755 "$WORK/slurm/bin/revoke"
    "$WORK/slurm/sbin/slurmd" -c 'hook epilog 4000012 SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT=; :'
    wait_for 30 test -s "$OUT"
    read -r pid <"$OUT"
    echo "$pid" >>"$WORK/pids"
    [[ $(awk '$1 == "Uid:" { print $2 }' "/proc/$pid/status") == "$USER_ID" ]]
    [[ $(stat -c %u "/proc/$pid/fd") == 0 ]]
}

@test "a flush has bounds, too" {
    stub "ulimit -Hd >>$OUT; ulimit -Sd >>$OUT; cat /proc/self/oom_score_adj >>$OUT"
    own "elastic-$USER_ID-4000012.0-n1"
    (protect; hook epilog 4000012)
    cat "$OUT"
    [ "$(sed -n 2,4p "$OUT")" = "65536
65536
1000" ]
}

# fuse PATH: a file system of the user there, which answers, and in which nothing can be made.
fuse() {
    python3 - "$1" "$USER_ID" <<'PY' &
import ctypes, os, struct, sys
path, uid = sys.argv[1:]
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id={uid},group_id=65534,allow_other"
if ctypes.CDLL(None).mount(b"x", path.encode(), b"fuse", 6, options.encode()):
    os._exit(77)
open(os.environ["OUT"], "w").close()
attr = struct.pack("<QII6Q10I", 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40777, 2, int(uid), 65534, 0, 4096, 0)
answers = {
    3: attr,  # GETATTR
    17: struct.pack("<5Q4I24x", 1000, 1000, 1000, 1000, 1000, 4096, 255, 4096, 0),  # STATFS
    26: struct.pack("<4I2H2I2HI28x", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0),  # INIT
    27: bytes(16),  # OPENDIR
    28: b"",  # READDIR
    29: b"",  # RELEASEDIR
}
while True:
    asked = os.read(fd, 1 << 20)
    opcode, unique = struct.unpack_from("<IQ", asked, 4)
    if opcode not in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET
        data = answers.get(opcode, b"")
        os.write(fd, struct.pack("<IiQ", 16 + len(data), 0 if opcode in answers else -2, unique) + data)
PY
    echo "$!" >>"$WORK/pids"
    wait_for 30 test -e "$OUT"
    rm "$OUT"
}

# says CHECKPOINT WORDS: about a snapshot for that directory.
says() {
    local dir=$WORK/place/elastic-$USER_ID-4000012.0-n1 said
    leave 4000012 10 "$1"
    said=$("$LIBEXEC/elastic-runs" epilog --gid=65534 --limit=20 --age=86400 -- "${dir##*/}" "$WORK/place")
    wait_for 30 nobody_removes
    rm -rf "$dir"
    echo "$1: $said"
    [[ $said == *"$2"* ]]
}

@test "what a user calls a checkpoint directory is no memory that would count for slurmd" {
    export -f says wait_for nobody_removes
    mkdir -m 777 "$WORK/disk" "$WORK/mem" "$WORK/hidden"
    unshare --mount bash -ec '
        says "$WORK/disk/a/b" "flushed: "
        mount -t tmpfs -o mode=777 none "$WORK/mem"
        as_user ln -s ../mem "$WORK/disk/link"
        for path in mem mem/a/b disk/link/a; do
            says "$WORK/$path" "it is in memory (tmpfs)"
        done
        [[ -z $(ls -A "$WORK/mem") ]]
        # In memory that this namespace does not even have.
        unshare --mount bash -ec "mount -t ramfs none $WORK/hidden && chmod 777 $WORK/hidden
            exec setpriv --reuid=$USER_ID --regid=65534 --clear-groups sh -c \"cd / && touch $WORK/hidden/there && exec sleep 1000\"" &
        hidden=$!
        echo "$hidden" >>"$WORK/pids"
        wait_for 30 test -e "/proc/$hidden/root$WORK/hidden/there"
        for path in hidden hidden/a; do
            says "/proc/$hidden/root$WORK/$path" "it is in memory (ramfs)"
        done
        [[ $(ls -A "/proc/$hidden/root$WORK/hidden") == there ]]
        # A control group that the user may divide.
        mount -t cgroup2 none "$WORK/mem" || exit 0
        group=$WORK/mem/${WORK##*/}
        mkdir "$group"
        chown "$USER_ID" "$group"
        says "$group/a" "it is in memory (no file system for data)" && said=yes || said=
        find "$group" -depth -type d -exec rmdir {} +
        [[ -n $said ]]'
}

@test "the same where an overlay hides on what it writes" {
    grep -qw overlay /proc/filesystems || skip 'no overlay here'
    export -f says wait_for nobody_removes
    mkdir -m 777 "$WORK/disk" "$WORK/mem" "$WORK/over" "$WORK/low"
    unshare --mount bash -ec '
        mount -t tmpfs -o mode=777 none "$WORK/mem"
        for below in mem disk; do
            mkdir -m 777 "$WORK/$below/upper" "$WORK/$below/work"
            mount -t overlay -o "lowerdir=$WORK/low,upperdir=$WORK/$below/upper,workdir=$WORK/$below/work" none "$WORK/over"
            chmod 777 "$WORK/over"
            if [[ $below == mem ]]; then
                says "$WORK/over" "it is in memory (overlay on tmpfs)"
                says "$WORK/over/a/b" "it is in memory (overlay on tmpfs)"
                [[ -z $(ls -A "$WORK/over") ]]
            else
                says "$WORK/over/a/b" "flushed: "
            fi
            umount "$WORK/over"
        done'
}

@test "a flush writes nothing into a file system that a user has mounted" {
    [[ -e /dev/fuse ]] || skip 'no FUSE here'
    export -f says fuse wait_for nobody_removes
    mkdir -m 777 "$WORK/fuse"
    unshare --mount bash -ec '
        fuse "$WORK/fuse"
        says "$WORK/fuse" "a user has mounted it (FUSE)"
        says "$WORK/fuse/a" "a user has mounted it (FUSE)"'
}

# turns NAME: how many processes on node $NODE wait for what jobs have asked for, or do it.
turns() { pgrep -cf "take_turns.* /run/slurm-elastic.ended/$1-$USER_ID-${NODE}[+]" || true; }

# they_take_turns NAME FILE: one does it for a job, and no other has begun.
they_take_turns() { (($(turns "$1") == 1)) && [[ -s $2 ]]; }

# jobs_in FILE: which jobs the commands were for.
jobs_in() { grep -o -- '--job=[0-9]*' "$1" | sort -u; }

@test "however many jobs end, one process takes access of a user back, one cancels, and no job is left out" {
    local -x NODE=n-$$ ASKED=$WORK/asked SLURMD=$WORK/slurm/sbin/slurmd
    stub :
    install -m 666 /dev/null "$ASKED"
    mkdir -p "$WORK/slurm/bin" "$WORK/slurm/sbin"
    cp /bin/bash "$SLURMD"
    printf '#!/bin/bash\necho "$*" >>%s\nwhile [[ -e %s ]]; do sleep 0.1; done\n' "$OUT" "$WORK/hangs" >"$STUB/elastic-fit"
    sed "s|>>[^ ]*\$|>>$ASKED|" "$STUB/elastic-fit" >"$WORK/slurm/bin/squeue"
    chmod 755 "$STUB/elastic-fit" "$WORK/slurm/bin/squeue"
    touch "$WORK/hangs"
    export -f wait_for turns they_take_turns jobs_in
    # shellcheck disable=SC2016 # the other shell's
    unshare --mount "$SLURMD" -ec '
        mount -t tmpfs none /run
        jobs=()
        for job in {20..39}; do
            hook epilog "$job" SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT= SLURMD_NODENAME=$NODE SLURM_NODELIST=$NODE &
            jobs+=($!)
        done
        wait "${jobs[@]}"
        wait_for 60 they_take_turns revoke "$OUT"
        wait_for 60 they_take_turns cancel "$ASKED"
        cat "$OUT" "$ASKED"
        [[ $(jobs_in "$OUT" | wc -l) == 1 && $(jobs_in "$ASKED" | wc -l) == 1 ]]
        [[ $(stat -c "%u %a" /run/slurm-elastic.ended) == "0 700" ]]
        rm "$WORK/hangs"
        wait_for 60 eval "[[ \$(jobs_in $OUT | wc -l) == 20 && \$(jobs_in $ASKED | wc -l) == 20 ]]"
        wait_for 60 eval "((\$(turns revoke) + \$(turns cancel) == 0))"
        [[ -z $(ls -A /run/slurm-elastic.ended) ]]'
}

# ends JOB: its epilog.
ends() {
    hook epilog "$1" SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT= SLURMD_NODENAME="$NODE" SLURM_NODELIST="$NODE"
}

# all_are_done: of jobs 20 to 26, after another epilog.
all_are_done() {
    ends 26
    wait_for 60 eval '(($(turns revoke) + $(turns cancel) == 0))'
    (($(jobs_in "$OUT" | wc -l) == 7)) && [[ -z $(ls -A /run/slurm-elastic.ended) ]]
}

@test "what nobody waits for ends, however many jobs have never-ending access to take back, and is done later" {
    local -x NODE=n-$$ SLURMD=$WORK/slurm/sbin/slurmd
    stub :
    mkdir -p "$WORK/slurm/bin" "$WORK/slurm/sbin"
    install -m 755 /dev/null "$WORK/slurm/bin/squeue"
    cp /bin/bash "$SLURMD"
    sed -i 's/^TURNS_LIMIT=[0-9]*/TURNS_LIMIT=2/' "$STUB/epilog.d/50-elastic"
    printf '#!/bin/bash\necho "$*" >>%s\nwhile [[ -e %s ]]; do sleep 0.1; done\n' "$OUT" "$WORK/hangs" >"$STUB/elastic-fit"
    touch "$WORK/hangs"
    chmod 755 "$STUB/elastic-fit"
    export -f wait_for turns jobs_in all_are_done ends
    # shellcheck disable=SC2016 # the other shell's
    unshare --mount "$SLURMD" -ec '
        mount -t tmpfs none /run
        for job in {20..25}; do
            ends "$job"
        done
        wait_for 60 eval "((\$(turns revoke) + \$(turns cancel) == 0))"
        cat "$OUT"
        (($(jobs_in "$OUT" | wc -l) < 6))
        rm "$WORK/hangs"
        wait_for 60 all_are_done'
}

@test "a flush that another process of its user stops is ended, and the next sweep removes what it left" {
    stub "echo \$\$ >>$OUT; while :; do sleep 0.1; done"
    leave 4000012 10000 "$WORK/checkpoint"
    install -d -m 700 -o "$USER_ID" "$WORK/checkpoint"
    hook epilog 4000012
    wait_for 30 eval '[[ $(sed -n 2p "$OUT") ]]'
    pid=$(sed -n 2p "$OUT")
    echo "$pid" >>"$WORK/pids"
    as_user kill -STOP "$pid"
    wait_for 30 is_gone "$pid"
    [ -e "$WORK/place/elastic-$USER_ID-4000012.0-n1" ]
    STUB='' hook prolog 4000013
    wait_for 30 test -e "$WORK/checkpoint/.flushed-1.0.1.1-n1"
    wait_for 30 no_sweep
    [ ! -e "$WORK/place/elastic-$USER_ID-4000012.0-n1" ]
}

@test "who kills each flush keeps nothing longer than it may stay, and nothing where others need the place" {
    export -f in_memory wait_for no_sweep sweeps nobody_removes
    stub 'kill -KILL $$'
    unshare --mount bash -ec '
        in_memory 64M
        dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
        leave 4000012 10 /dev/null/x
        hook prolog 4000099
        wait_for 30 no_sweep
        wait_for 30 nobody_removes
        [[ -s $OUT && -e $dir/snapshot/0/complete.json ]]
        swept() { "$STUB/elastic-runs" prolog --gid=65534 --limit=5 --age=1 -- elastic-70001-4000099.0-n1 "$WORK/place"; }
        is_swept() { swept; wait_for 30 no_sweep; [[ ! -e $dir ]]; }
        swept || true
        wait_for 30 is_swept
        leave 4000012 10 /dev/null/x
        head -c 40000000 /dev/zero >"$WORK/place/busy"
        hook prolog 4000099
        wait_for 30 eval "[[ \$(ls $WORK/place) == busy ]]"'
}

# full JOB: the run directory of a killed agent with 80 MB beside its snapshot. Sets dir.
full() {
    dir=$WORK/place/elastic-$USER_ID-$1.0-n1
    leave "$1" 10 /dev/null/x
    as_user sh -c "head -c 80000000 /dev/zero >$dir/more"
}

# gone: the directory, when nobody works on it any more.
gone() {
    wait_for 30 nobody_removes
    [[ ! -e $dir ]]
}

@test "whatever a process of the user does to a flush, root keeps the user within the bounds" {
    export -f in_memory wait_for full gone nobody_removes holds
    stub "eval \"\$(<$WORK/does)\""
    unshare --mount bash -ec '
        in_memory 256M
        for does in "kill -KILL \$\$" "echo flushed: all of it" "exit 3" "sleep 3" "kill -STOP \$\$"; do
            echo "$does" >"$WORK/does"
            full 4000012
            hook epilog 4000012
            gone || { echo "$does: $dir stays"; exit 1; }
        done
        echo "exit 3" >"$WORK/does"
        full 4000012
        hook prolog 4000099
        gone
        # Where none can be started, since one hangs.
        echo "while [[ -e $WORK/hangs ]]; do sleep 0.1; done" >"$WORK/does"
        touch "$WORK/hangs"
        leave 4000011 10 /dev/null/x
        hook prolog 4000099
        wait_for 30 grep -q "^$USER_ID .*elastic-$USER_ID-4000011" "$OUT"
        full 4000012
        hook prolog 4000099
        wait_for 30 test ! -e "$dir"
        rm "$WORK/hangs"
        wait_for 30 nobody_removes
        [[ -e $WORK/place/elastic-$USER_ID-4000011.0-n1/snapshot/0/complete.json ]]
        # However many later ones are empty, or of jobs that live.
        for job in {4000100..4000140}; do own "elastic-$USER_ID-$job.0-n1"; done
        full 4000012
        hook prolog 4000099
        gone
        # What is in no block.
        full 4000012
        as_user sh -c ": >$dir/more"
        as_user /usr/bin/python3 - "$dir" <<PY
import os, struct, sys
acl = struct.pack("<I", 2) + struct.pack("<HHI", 1, 7, 2**32 - 1)
acl += b"".join(struct.pack("<HHI", 2, 7, uid) for uid in range(100000, 108000))
acl += b"".join(struct.pack("<HHI", tag, 7, 2**32 - 1) for tag in (4, 16, 32))
for i in range(700):
    os.mkdir(f"{sys.argv[1]}/{i}")
    for kind in "access", "default":
        os.setxattr(f"{sys.argv[1]}/{i}", f"system.posix_acl_{kind}", acl)
PY
        hook prolog 4000099
        gone
        # A process that says it is of the job.
        unset STUB
        for script in epilog prolog; do
            full 4000012
            holds 4000012 "$dir/agent.lock"
            hook $script "$([[ $script == epilog ]] && echo 4000012 || echo 4000099)"
            gone
        done'
}

@test "a directory whose job is on the node stays, and goes when it is not, where jobs have no cgroups" {
    export -f in_memory wait_for full gone nobody_removes holds
    cp /bin/sleep "$WORK/slurmstepd"
    unshare --mount bash -ec '
        in_memory 256M
        for lock in held free none; do
            (exec -a "slurmstepd: [4000012.0]" "$WORK/slurmstepd" 1000) &
            step=$!
            echo "$step" >>"$WORK/pids"
            full 4000012
            [[ $lock != held ]] || holds 4000012 "$dir/agent.lock"
            [[ $lock != none ]] || rm "$dir/agent.lock"
            wait_for 30 grep -q "^slurmstepd: .4000012" "/proc/$step/cmdline"
            hook prolog 4000099
            wait_for 30 nobody_removes
            [[ -e $dir/more ]] || { echo "$lock: removed"; exit 1; }
            kill "$step"
            wait "$step" || true
            hook prolog 4000099
            wait_for 30 nobody_removes
            [[ ! -e $dir/more ]] || { echo "$lock: stays"; exit 1; }
            rm -rf "$dir"
        done'
}

@test "a mount on the lock of a directory keeps nothing in memory, and no flush waiting" {
    [[ -e /dev/fuse ]] || skip 'no FUSE here'
    export -f in_memory wait_for full gone nobody_removes cover
    unshare --mount bash -ec '
        in_memory 256M
        full 4000012
        cover "$dir/agent.lock" alive 100000
        hook epilog 4000012
        gone'
}

@test "who renews the times of a directory keeps it no longer" {
    export -f in_memory wait_for nobody_removes
    unshare --mount bash -ec '
        in_memory 64M
        dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
        leave 4000012 10 /dev/null/x
        as_user sh -c "while chmod 700 $dir; do sleep 0.1; done" 2>/dev/null &
        echo "$!" >>"$WORK/pids"
        swept() {
            "$LIBEXEC/elastic-runs" prolog --gid=65534 --limit=5 --age=1 -- elastic-70001-4000099.0-n1 "$WORK/place" || true
            wait_for 30 nobody_removes
            [[ ! -e $dir ]]
        }
        wait_for 30 swept'
}

# silent_fuse PATH: a file system of the user there, which never answers. Sets fuse, its process; ends the shell with 77
# where none can be mounted.
silent_fuse() {
    /usr/bin/python3 - "$1" "$USER_ID" <<'PY' &
import ctypes, os, sys, time
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id={sys.argv[2]},group_id=65534,allow_other"
if ctypes.CDLL(None).mount(b"test", sys.argv[1].encode(), b"fuse", 6, options.encode()):
    os._exit(77)
os.read(fd, 65536)  # all that is asked waits from here on
open(os.environ["OUT"], "w").close()
time.sleep(1000)
PY
    fuse=$!
    echo "$fuse" >>"$WORK/pids"
    until [[ -e $OUT ]]; do kill -0 "$fuse" || exit 77; sleep 0.05; done
}

@test "a file system of the user's own that never answers holds up neither prolog nor epilog" {
    [[ -e /dev/fuse ]] || skip 'no FUSE here'
    export -f silent_fuse
    run timeout -s KILL 200 unshare --mount bash -c '
        dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
        own "${dir##*/}"
        silent_fuse "$dir"
        hook epilog 4000012
        hook prolog 4000013 SPANK_ELASTIC_SIZES=1:2
        hook epilog 4000013
        echo "came to their end"
        kill -KILL "$fuse"'
    echo "$output"
    ((status != 77)) || skip 'FUSE cannot be mounted'
    [[ $output == "came to their end" ]]
}

@test "selastic fit does not wait for a file system that never answers" {
    [[ -e /dev/fuse ]] || skip 'no FUSE here'
    export HOME=$WORK/home
    install -d -m 700 -o "$USER_ID" "$HOME"
    as_user mkdir -p "$HOME/.slurm-elastic/services/s/fits/000001" "$HOME/data"
    as_user tee "$HOME/.slurm-elastic/services/s/fits/000001/grant.json" >/dev/null <<JSON
{"uid": 1, "user": "daemon", "until": 1, "job": 1, "paths": [{"path": "$HOME/data", "reach": "read"}]}
JSON
    export -f silent_fuse
    run timeout -s KILL 100 unshare --mount bash -c '
        silent_fuse "$HOME/data"
        as_user "$LIBEXEC/elastic-fit" list s
        echo "came to its end"
        kill -KILL "$fuse"'
    echo "$output"
    ((status != 77)) || skip 'FUSE cannot be mounted'
    [[ ${lines[0]} == *"is not taken back yet: a file system does not answer"* && ${lines[-1]} == "came to its end" ]]
}

@test "after a job a user keeps its snapshot in memory and nothing else, and not more than a share" {
    export -f in_memory wait_for no_sweep sweeps
    unshare --mount bash -ec '
        in_memory 64M
        leave 4000012 10000000 /dev/null/x
        as_user sh -c "head -c 15000000 /dev/zero >$WORK/place/elastic-$USER_ID-4000012.0-n1/more"
        hook epilog 4000012
        echo "after one job: $(du -sk "$WORK/place" | cut -f1) KiB"
        (($(du -sk "$WORK/place" | cut -f1) < 10000))
        [[ -e $WORK/place/elastic-$USER_ID-4000012.0-n1/snapshot/0/complete.json ]]
        # A second one is too much for the share of one user, which is a quarter: the newer stays.
        leave 4000013 10000000 /dev/null/x
        hook epilog 4000013
        wait_for 30 eval "[[ \$(ls $WORK/place) == elastic-$USER_ID-4000013.0-n1 ]]"
        wait_for 30 no_sweep
        # Where somebody needs the place nothing stays that cannot be saved.
        head -c 40000000 /dev/zero >"$WORK/place/busy"
        hook prolog 4000099
        wait_for 30 eval "[[ \$(ls $WORK/place) == busy ]]"'
}

# many_left: after another prolog there are more directories than the user may keep.
many_left() {
    hook prolog 4000099
    wait_for 30 no_sweep
    (($(find "$WORK/place" -mindepth 1 -maxdepth 1 | wc -l) > 20))
}

# cover PATH dead|alive [MODE]: a file system of the user over it, whose root has that mode. Alive, it never answers, and
# its process is not of the job.
cover() {
    /usr/bin/python3 - "$1" "$2" "${3:-40000}" "$USER_ID" <<'PY' &
import ctypes, os, sys, time
path, kind, mode, uid = sys.argv[1:]
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode={mode},user_id={uid},group_id=65534"
if ctypes.CDLL(None).mount(b"x,user_id=0", path.encode(), b"fuse.user_id=0", 6, options.encode()):
    os._exit(77)
open(os.environ["OUT"], "w").close()
if kind == "alive":
    time.sleep(1000)
PY
    echo "$!" >>"$WORK/pids"
    wait_for 30 test -e "$OUT"
    rm "$OUT"
    [[ $2 == alive ]] || wait "$!"
}

# attack KIND: leaves a run directory of job 4000012 with 40 MB that the user's rights cannot remove.
attack() {
    local dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
    own "${dir##*/}"
    as_user mkdir -p "$dir/snapshot/0" "$dir/junk/deep"
    as_user sh -c "head -c 40000000 /dev/zero >$dir/junk/deep/big"
    case $1 in
    covered-*) cover "$dir" "${1#*-}" ;;
    inside-*) cover "$dir/snapshot" "${1#*-}" ;;
    below-*) cover "$dir/junk/deep" "${1#*-}" ;;
    file) cover "$dir/junk/deep/big" dead 100000 ;;
    admin) mount -t tmpfs none "$dir/junk/deep" && echo precious >"$dir/junk/deep/data" ;;
    subordinate) chown -R 100005:100005 "$dir/junk" && chmod -R go= "$dir/junk" ;;
    itself) chown 100005:100005 "$dir" ;;
    other)
        chmod 777 "$dir"
        setpriv --reuid=65532 --regid=65532 --clear-groups sh -c "mkdir -m 700 $dir/other && head -c 1000000 /dev/zero >$dir/other/x"
        ;;
    busy)
        chown 100005 "$dir/junk/deep" && chmod 700 "$dir/junk/deep"
        install -m 666 /dev/null "$OUT"
        as_user sh -c "cd $dir/junk; echo \$\$ >>$OUT; while mkdir x\$i 2>/dev/null; do i=\$((i + 1)); done" &
        wait_for 30 test -s "$OUT"
        cat "$OUT" >>"$WORK/pids"
        rm "$OUT"
        ;;
    esac
}

@test "what a user's rights cannot remove after a job root removes, and nobody else loses a snapshot by it" {
    export -f in_memory wait_for attack cover
    unshare --mount bash -ec '
        in_memory 64M
        kinds=(subordinate itself other busy)
        [[ ! -e /dev/fuse ]] || kinds+=(file {covered,inside,below}-{dead,alive})
        for kind in "${kinds[@]}"; do
            USER_ID=65533 attack "$kind"
            USER_ID=65533 hook epilog 4000012
            wait_for 30 eval "[[ -z \$(ls $WORK/place) ]]" || { echo "$kind stays"; find "$WORK/place"; exit 1; }
            leave 4000013 1000000 /dev/null/x
            hook epilog 4000013
            [[ -e $WORK/place/elastic-$USER_ID-4000013.0-n1/snapshot/0/complete.json ]] || { echo "$kind: lost"; exit 1; }
            wait_for 30 rm -rf "$WORK/place/elastic-$USER_ID-4000013.0-n1" # a sweep may look at it
        done
        # Of jobs whose epilog never ran, the next sweep finds it.
        USER_ID=65533 attack subordinate
        touch "$WORK/place/elastic-65533-4000012.0-n1/agent.lock"
        chown 65533 "$WORK/place/elastic-65533-4000012.0-n1/agent.lock"
        hook prolog 4000099
        wait_for 30 eval "[[ -z \$(ls $WORK/place) ]]"
        ! grep " $WORK/place/" /proc/self/mountinfo || exit 1'
}

@test "the same where the kernel has no openat2, as before Linux 5.6" {
    command -v strace >/dev/null && [[ -e /dev/fuse ]] || skip 'needs strace and FUSE'
    export -f in_memory wait_for attack cover
    unshare --mount bash -ec '
        in_memory 64M
        for kind in {covered,inside,below}-alive file; do
            USER_ID=65533 attack "$kind"
            strace -f -qqq -o /dev/null -e trace=openat2 -e inject=openat2:error=ENOSYS "$LIBEXEC/elastic-runs" epilog \
                --gid=65534 --limit=20 --age=1 -- elastic-65533-4000012.0-n1 "$WORK/place"
            wait_for 30 eval "[[ -z \$(ls $WORK/place) ]]" || { echo "$kind stays"; exit 1; }
        done'
}

@test "what an admin has mounted below a run directory, to where a user has moved it, stays" {
    export -f in_memory wait_for attack cover nobody_removes
    unshare --mount bash -ec '
        in_memory 64M
        USER_ID=65533 attack admin
        USER_ID=65533 hook epilog 4000012
        wait_for 30 nobody_removes
        [[ $(<"$WORK/place/elastic-65533-4000012.0-n1/junk/deep/data") == precious ]]'
}

@test "what the user's rights cannot remove, and what root has removed, is said" {
    export -f in_memory wait_for attack cover
    unshare --mount bash -ec '
        in_memory 64M
        USER_ID=65533 attack subordinate
        "$LIBEXEC/elastic-runs" epilog --gid=65534 --limit=5 --age=1 -- elastic-65533-4000012.0-n1 "$WORK/place" >"$WORK/said"'
    cat "$WORK/said"
    [[ $(wc -l <"$WORK/said") == 2 ]]
    grep -q '^elastic-flush: not removed: .*; junk: Permission denied$' "$WORK/said"
    grep -q "/elastic-65533-4000012.0-n1: removed by root: junk belongs to uid 100005\$" "$WORK/said"
}

# holds JOB FILE: a process of the user holds its lock, of that job as far as it says itself.
holds() {
    install -m 666 /dev/null "$OUT"
    as_user SLURM_JOB_ID="$1" setsid -f flock "$2" sh -c "echo \$\$ >>$OUT; exec sleep 1000"
    wait_for 30 test -s "$OUT"
    cat "$OUT" >>"$WORK/pids"
    rm "$OUT"
}

@test "a process of another job that holds the lock of a directory keeps nothing in memory" {
    local dir=$WORK/place/elastic-$USER_ID-4000012.0-n1 script=epilog job=4000012
    install -d -m 700 -o "$USER_ID" "$WORK/checkpoint"
    for script in epilog prolog; do
        [[ $script == epilog ]] || job=4000099
        leave 4000012 10 "$WORK/checkpoint"
        holds 4000012 "$dir/agent.lock"
        hook "$script" "$job"
        wait_for 60 nobody_removes # else it gets the lock before the next process does
        [ -e "$dir/snapshot/0/complete.json" ]
        kill -KILL "$(tail -n 1 "$WORK/pids")"
        holds 4000013 "$dir/agent.lock"
        hook "$script" "$job"
        wait_for 30 eval '[[ ! -e $dir ]]'
        [ -e "$WORK/checkpoint/.flushed-1.0.1.1-n1" ]
        rm -r "$WORK/checkpoint/.flushed-1.0.1.1-n1"
    done
}

# put_into_job PID JOB: into a cgroup that is named as Slurm names a job's. Sets CGROUP.
put_into_job() {
    local base
    for base in /sys/fs/cgroup/pids /sys/fs/cgroup; do
        CGROUP=$base/${WORK##*/}/job_$2
        [[ -e $base/cgroup.procs ]] && mkdir -p "$CGROUP" && echo "$1" >"$CGROUP/cgroup.procs" && return
        rmdir -p "$CGROUP" || true
    done 2>/dev/null
    return 1
}

nobody_removes() { ! pgrep -f "elastic-runs .*$WORK/place" >/dev/null; }

@test "Slurm's cgroup says of which job a process is, and not its environment" {
    local dir=$WORK/place/elastic-$USER_ID-4000012.0-n1 said job holder
    for job in 4000013 4000012; do
        leave 4000012 10 /dev/null/x
        # It says the other one.
        holds "$((8000025 - job))" "$dir/agent.lock"
        holder=$(tail -n 1 "$WORK/pids")
        put_into_job "$(ps -o ppid= "$holder" | xargs)" "$job" || skip 'no cgroups here'
        said=$("$LIBEXEC/elastic-runs" epilog --gid=65534 --limit=20 --age=86400 -- "${dir##*/}" "$WORK/place")
        echo "$job: $said"
        kill -KILL "$holder"
        wait_for 30 rmdir "$CGROUP" "${CGROUP%/*}" 2>/dev/null
        if ((job == 4000012)); then
            [[ $said == 'nothing to flush: it is in use' ]]
        else
            [[ $said == *'not flushed: snapshot/0 of 1.0'* ]]
            wait_for 30 nobody_removes
            rm -rf "$dir"
        fi
    done
}

@test "a cgroup that a user has named as Slurm names a job's says nothing" {
    local dir=$WORK/place/elastic-$USER_ID-4000012.0-n1 holder
    leave 4000012 10 /dev/null/x
    holds 4000013 "$dir/agent.lock"
    holder=$(tail -n 1 "$WORK/pids")
    put_into_job "$(ps -o ppid= "$holder" | xargs)" 4000012 || skip 'no cgroups here'
    chown "$USER_ID" "$CGROUP"
    run "$LIBEXEC/elastic-runs" epilog --gid=65534 --limit=20 --age=86400 -- "${dir##*/}" "$WORK/place"
    kill -KILL "$holder"
    wait_for 30 rmdir "$CGROUP" "${CGROUP%/*}" 2>/dev/null
    echo "$output"
    [[ $output == *'not flushed: snapshot/0 of 1.0'* ]]
}

@test "what a sweep's flush could not remove stays if it may be that of a job which begins" {
    export -f in_memory wait_for nobody_removes
    stub 'echo "elastic-flush: not removed, unseen: x" >&2'
    unshare --mount bash -ec '
        in_memory 64M
        dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
        own "${dir##*/}"
        as_user touch "$dir/state"
        hook prolog 4000099
        wait_for 30 test -s "$OUT"
        wait_for 30 nobody_removes
        [[ -e $dir/state ]]
        # Nobody has begun in it for the time of snapshot_keep.
        printf "snapshot_keep = 0\n" >>"$WORK/elastic.conf"
        wait_for 60 eval "hook prolog 4000099; wait_for 30 nobody_removes; [[ ! -e $dir ]]"'
}

# move PLACE [PATH]: user 65533 moves into his run directory there what another one has let him write into, with what that
# one has kept for himself below. PATH leads to the same place.
move() {
    local dir=$1/elastic-65533-4000012.0-n1 path=${2:-$1} shared
    shared=${path%/*}/shared
    sed -i "s|^snapshot_dir = .*|snapshot_dir = $1|" "$WORK/elastic.conf"
    install -d -m 711 "${path%/*}" "$path"
    install -d -m 777 "$shared"
    install -d -m 700 -o 65533 -g 65534 "$dir"
    install -d -m 777 -o 65532 -g 65532 "$shared/project"
    install -d -m 700 -o 65532 -g 65532 "$shared/project/own"
    install -m 600 -o 65532 -g 65532 /dev/null "$shared/project/own/data"
    USER_ID=65533 as_user mv "$shared/project" "$path/${dir##*/}/"
    USER_ID=65533 hook epilog 4000012
    wait_for 30 nobody_removes
    [[ $(stat -c "%n %u" "$dir/project" "$dir/project/own" "$dir/project/own/data" | grep -c " 65532$") == 3 ]]
}

@test "root removes nothing that a user has moved into a run directory from elsewhere" {
    export -f move wait_for nobody_removes
    mkdir "$WORK/mem" "$WORK/bound"
    unshare --mount bash -ec '
        move "$WORK/disk/place"
        mount -t tmpfs none "$WORK/mem"
        move "$WORK/mem/a/place"
        mkdir -p "$WORK/mem/b/place"
        mount --bind "$WORK/mem/b/place" "$WORK/bound"
        move "$WORK/bound" "$WORK/mem/b/place"'
}

@test "subvolumes of a user (btrfs) go with the run directory" {
    command -v mkfs.btrfs >/dev/null || skip 'needs btrfs-progs'
    export -f wait_for nobody_removes
    truncate -s 200M "$WORK/image"
    mkfs.btrfs -q "$WORK/image"
    run unshare --mount bash -ec '
        mount -o loop "$WORK/image" "$WORK/place" || exit 77
        chmod 711 "$WORK/place"
        dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
        own "${dir##*/}"
        as_user btrfs -q subvolume create "$dir/sub"
        as_user sh -c "mkdir $dir/sub/deep && echo x >$dir/sub/deep/data"
        hook epilog 4000012
        wait_for 30 nobody_removes
        [[ -z $(ls "$WORK/place") ]]'
    ((status != 77)) || skip 'no loop device here'
    ((status == 0))
}

@test "what cannot be opened for want of memory is kept, and flushed later" {
    command -v strace >/dev/null || skip 'needs strace'
    local dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
    install -d -m 700 -o "$USER_ID" "$WORK/checkpoint"
    stub 'exec strace -f -qqq -o /dev/null -e trace=openat2 -e inject=openat2:error=ENOMEM:when=1 "${0%/*}/real" "$@"'
    install -m 755 "$LIBEXEC/elastic-flush" "$STUB/real"
    leave 4000012 10 "$WORK/checkpoint"
    hook epilog 4000012
    wait_for 30 nobody_removes
    [ -s "$OUT" ]
    [ -e "$dir/snapshot/0/complete.json" ]
    STUB='' hook epilog 4000012
    [ -e "$WORK/checkpoint/.flushed-1.0.1.1-n1" ]
}

@test "root reads the environment of no process of a user" {
    command -v strace >/dev/null || skip 'needs strace'
    export -f in_memory holds wait_for
    unshare --mount bash -ec '
        in_memory 64M
        dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
        leave 4000012 10 /dev/null/x
        holds 4000012 "$dir/agent.lock"
        chown 100005:100005 "$dir"
        strace -f -qqq -e trace=openat -o "$WORK/trace" "$LIBEXEC/elastic-runs" epilog --gid=65534 --limit=20 \
            --age=86400 -- "${dir##*/}" "$WORK/place" >"$WORK/said"
        kill -KILL "$(tail -n 1 "$WORK/pids")"'
    cat "$WORK/said"
    grep -q 'agent.lock\|/proc/locks' "$WORK/trace"
    run -1 grep '"environ"' "$WORK/trace"
}

@test "of what cannot be saved a user keeps the newest twenty directories" {
    export -f in_memory wait_for no_sweep sweeps many_left
    unshare --mount bash -ec '
        in_memory 64M
        leave 4000101 100 /dev/null/x
        for job in {4000102..4000150}; do
            cp -a "$WORK/place/elastic-$USER_ID-4000101.0-n1" "$WORK/place/elastic-$USER_ID-$job.0-n1"
        done
        for try in 1 2 3 4 5 6; do
            many_left || break
        done
        ls "$WORK/place"
        [[ $(ls "$WORK/place") == "$(printf "elastic-$USER_ID-%s.0-n1\n" {4000131..4000150})" ]]'
}

@test "a place where others could replace a directory is not used" {
    chmod 777 "$WORK/place"
    hook prolog 4000012 SPANK_ELASTIC_SIZES=1:2
    [ -z "$(ls -A "$WORK/place")" ]
    chmod 711 "$WORK/place"
    chmod 777 "$WORK"
    hook prolog 4000012 SPANK_ELASTIC_SIZES=1:2
    [ -z "$(ls -A "$WORK/place")" ]
    chmod 1777 "$WORK"
    hook prolog 4000012 SPANK_ELASTIC_SIZES=1:2
    [ -d "$WORK/place/elastic-$USER_ID-4000012.0-n1" ]
    # Of a job with roles.
    hook prolog 4000013 SPANK_ELASTIC_ROLES_NODES=0
    [ -d "$WORK/place/elastic-$USER_ID-4000013.0-n1" ]
}

@test "links lead to a place if they are root's" {
    mkdir -m 1777 "$WORK/open"
    mkdir -m 711 "$WORK/target"
    as_user ln -s ../target "$WORK/open/of-user"
    ln -s ../target "$WORK/open/of-root"
    ln -s "$WORK/open/of-user" "$WORK/way-of-user"
    ln -s open/of-root "$WORK/way-of-root"
    ln -s round "$WORK/round"
    for name in open/of-user way-of-user open/of-user/. open/of-user/../target round; do
        sed -i "s|^snapshot_dir = .*|snapshot_dir = $WORK/$name|" "$WORK/elastic.conf"
        hook prolog 4000012 SPANK_ELASTIC_SIZES=1:2
        [ -z "$(ls -A "$WORK/target")" ]
    done
    for name in target open/of-root way-of-root ./open/../way-of-root//; do
        sed -i "s|^snapshot_dir = .*|snapshot_dir = $WORK/$name|" "$WORK/elastic.conf"
        hook prolog 4000012 SPANK_ELASTIC_SIZES=1:2
        rmdir "$WORK/target/elastic-$USER_ID-4000012.0-n1"
    done
}

@test "other users of the node do not learn from arguments what a job is called or commented" {
    stub true
    printf '#!/bin/bash\ntr "\\0" "\\n" <"/proc/$PPID/cmdline" >>%s\nexit 3\n' "$OUT" >"$STUB/elastic-runs"
    chmod 755 "$STUB/elastic-runs"
    hook prolog 4000012 SPANK_ELASTIC_SIZES=1:2 SPANK_TOKEN=private-1 SLURM_JOB_COMMENT=private-2 SLURM_JOB_NAME=private-3
    hook epilog 4000013 SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT=elastic-extension-of=1.0/private-4
    cat "$OUT"
    grep -qx SLURM_JOB_ID=4000012 "$OUT" && grep -qx SLURM_JOB_ID=4000013 "$OUT"
    run -1 grep private "$OUT"
}

@test "prolog and epilog end within the limit that slurm.conf has for them" {
    stub 'while [[ -e '"$WORK/hangs"' ]]; do sleep 0.1; done'
    printf '#!/bin/sh\nsleep 600\n' >"$STUB/elastic-notice"
    chmod 755 "$STUB/elastic-notice"
    touch "$WORK/hangs"
    printf 'snapshot_dir = %s\nreclaim_drain = drain\nepilog_flush = 300\n' "$WORK/place" >"$WORK/elastic.conf"
    printf 'ClusterName=x # PrologEpilogTimeout=2\nInclude limits.conf\n' >"$WORK/slurm.conf"
    printf 'prologepilogtimeout = 6\n' >"$WORK/limits.conf"
    own "elastic-$USER_ID-4000012.0-n1"
    # Without a limit it is five minutes.
    timeout 100 bash -c 'hook epilog 4000012 SPANK_ELASTIC_SIZES=1:2 SLURM_CONF="$WORK/slurm.conf"'
    rm "$WORK/hangs"
}

# crammed PROGRAM JOB SUFFIX: calls it as epilog of the job, with the largest environment with which it starts. That is
# tried with a program of the same length, which does nothing. SUFFIX ends the names in it.
crammed() {
    if [[ $(head -c 2 "$1") == '#!' ]]; then
        { head -n 1 "$1"; echo 'exit 0'; } >"${1%?}_"
        chmod 755 "${1%?}_"
    else
        cp /bin/true "${1%?}_"
    fi
    /usr/bin/python3 - "$1" "$2" "$3" "$USER_ID" "$WORK/elastic.conf" <<'PY'
import os, resource, sys
script, job, suffix, uid, conf = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))  # room for 2 MB
env = {"SLURM_SCRIPT_CONTEXT": "epilog_slurmd", "SLURM_JOB_ID": job, "SLURM_JOB_UID": uid, "SLURM_JOB_GID": "65534",
       "SLURM_JOB_RESTART_COUNT": "0", "SLURMD_NODENAME": "n1", "SLURM_NODELIST": "n1", "ELASTIC_CONF": conf,
       "SLURM_CONF": "/nonexistent/slurm.conf", "SLURM_JOB_COMMENT": "elastic-extension-of=1.0",
       "SPANK_ELASTIC_SIZES": "1:2"}

def cram(length):
    for i in range(25):
        env[f"SPANK_{10 + i}{suffix}"] = "x" * max(0, min(100000, length - i * 100000))

def starts(length):
    cram(length)
    try:
        return os.waitpid(os.posix_spawn(script[:-1] + "_", [script], env), 0)[1] == 0
    except OSError:
        return False

few, many = 0, 2500000
while many - few > 1:
    middle = (few + many) // 2
    few, many = (middle, many) if starts(middle) else (few, middle)
cram(few)
os.execve(script, [script], env)
PY
}

@test "an environment that leaves no room for the arguments of a program keeps nothing from being done" {
    own "elastic-$USER_ID-4000012.0-n1" "elastic-$USER_ID-4000013.0-n1"
    cp -R "$LIBEXEC" "$WORK/copy"
    crammed "$WORK/copy/epilog.d/50-elastic" 4000012 .x
    [ ! -e "$WORK/place/elastic-$USER_ID-4000012.0-n1" ]
    install -m 755 "$LIBEXEC/elastic-hook" "$WORK/50-elastic"
    crammed "$WORK/50-elastic" 4000013 ''
    [ ! -e "$WORK/place/elastic-$USER_ID-4000013.0-n1" ]
}

# Slurm drains a node whose prolog or epilog has failed.
@test "elastic-hook ends well beside a script that is torn, that is no script, or that is not there" {
    mkdir -p "$WORK/beside/epilog.d"
    install -m 755 "$LIBEXEC/elastic-hook" "$WORK/beside/elastic-hook"
    hook() { env -i SLURM_SCRIPT_CONTEXT=epilog_slurmd SLURM_JOB_ID=4000012 "$WORK/beside/elastic-hook"; }
    printf '#!/bin/bash\necho begun\nif true; then\n' >"$WORK/beside/epilog.d/50-elastic"
    chmod 755 "$WORK/beside/epilog.d/50-elastic"
    hook
    printf '#!/bin/bash\necho "${BASH_SOURCE[0]} $0 $#"\nfalse\nexit 3\n' >"$WORK/beside/epilog.d/50-elastic"
    run -0 hook
    [[ $output == "$WORK/beside/epilog.d/50-elastic $WORK/beside/epilog.d/50-elastic "* ]]
    install -m 755 "$LIBEXEC/elastic-hook" "$WORK/beside/epilog.d/50-elastic"
    hook
    rm "$WORK/beside/epilog.d/50-elastic"
    hook
}

# bash takes half a minute of processor time to read so many.
@test "however many variables a user has made, prolog and epilog begin at once" {
    own "elastic-$USER_ID-4000012.0-n1"
    /usr/bin/python3 - "$LIBEXEC/elastic-hook" "$USER_ID" "$WORK/elastic.conf" <<'PY'
import os, resource, subprocess, sys
hook, uid, conf = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))  # room for 2 MB
env = {f"SPANK_{i:x}": "" for i in range(60000)}
env |= {"SLURM_SCRIPT_CONTEXT": "epilog_slurmd", "SLURM_JOB_ID": "4000012", "SLURM_JOB_UID": uid, "SLURM_JOB_GID": "65534",
        "SLURM_JOB_RESTART_COUNT": "0", "SLURMD_NODENAME": "n1", "SLURM_NODELIST": "n1", "ELASTIC_CONF": conf,
        "SLURM_CONF": "/nonexistent/slurm.conf", "SLURM_JOB_COMMENT": "elastic-extension-of=1.0",
        "SPANK_ELASTIC_SIZES": "1:2"}
subprocess.run([hook], env=env, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.2f} s of processor time")
sys.exit(used.ru_utime + used.ru_stime > 4)
PY
    [ ! -e "$WORK/place/elastic-$USER_ID-4000012.0-n1" ]
}

@test "where everybody may write, names that another user has taken in advance are in nobody's way" {
    local job run="$WORK/place/elastic-$USER_ID"
    local -a other=(setpriv --reuid=65533 --regid=65534 --clear-groups)
    chmod 1777 "$WORK/place"
    "${other[@]}" mkdir -p "$WORK/place/.lock/x" "$WORK/place/.lock-n1/x" "$run-4000012.0-n1" "$run-4000013.0-n1/x"
    "${other[@]}" ln -s /etc "$run-4000014.0-n1"
    # By the numbers of the processes to come.
    "${other[@]}" /usr/bin/python3 - "$WORK/place/.not-${run##*/}-4000015.0-n1-" <<'PY'
import os, sys
for pid in range(os.getpid(), os.getpid() + 2000):
    os.mkdir(f"{sys.argv[1]}{pid}")
PY
    for job in 4000012 4000013 4000014 4000015; do
        hook prolog "$job" SPANK_ELASTIC_SIZES=1:2
        [ "$(stat -c '%F %u %a' "$run-$job.0-n1")" = "directory $USER_ID 700" ]
    done
    leave 4000016 10 "$WORK/checkpoint"
    install -d -m 700 -o "$USER_ID" "$WORK/checkpoint"
    hook epilog 4000016
    [ -e "$WORK/checkpoint/.flushed-1.0.1.1-n1" ]
    [ ! -e "$run-4000016.0-n1" ]
}

@test "what another user has mounted on a name, and says is anybody's, is nobody's run directory" {
    local said
    unshare --mount bash -ec '
        chmod 1777 "$WORK/place"
        dir=$WORK/place/elastic-$USER_ID-4000012.0-n1
        setpriv --reuid=65533 --regid=65534 --clear-groups mkdir "$dir"
        mount -t tmpfs -o "mode=700,uid=$USER_ID" none "$dir" # as FUSE of his with allow_other
        runs() { "$LIBEXEC/elastic-runs" "$@" -- "${dir##*/}" "$WORK/place"; }
        runs prolog --gid=65534 --limit=2 --age=86400 --make && exit 1
        status=0
        runs epilog --gid=65534 --limit=2 --age=86400 || status=$?
        ((status == 3))' >"$OUT"
    cat "$OUT"
    said=$(<"$OUT")
    [[ $said == "no run directory: "*": Device or resource busy" ]]
}

# service UID: a program of that user that says at port 127.0.0.1:$port that the node goes; it ends with the test.
service() {
    setpriv --reuid="$1" --regid=65534 --clear-groups /usr/bin/python3 - 3>&- <<'PY' &
import http.server, os
class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", int(os.environ["port"])), Service)
server.serve_forever()
PY
    echo "$!" >>"$WORK/pids"
    wait_for 30 answers
}

answers() { (exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

@test "a service of another user at an address of the node takes no node out of service" {
    export port
    port=$(/usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    printf 'reclaim = http://127.0.0.1:%s\nreclaim_drain = drain\n' "$port" >"$WORK/elastic.conf"
    service "$USER_ID"
    run -1 "$LIBEXEC/elastic-notice" "$WORK/elastic.conf"
    [[ $output == *"a user other than root listens at port $port of this node"* ]]
    kill "$(tail -n 1 "$WORK/pids")"
    wait_for 30 eval '! answers'
    service 0
    run -0 "$LIBEXEC/elastic-notice" "$WORK/elastic.conf"
    [ -z "$output" ]
}

@test "Slurm's commands are those beside slurmd, whatever other Slurm is in /usr/bin" {
    mkdir -p "$WORK/slurm/bin" "$WORK/slurm/sbin"
    cp /bin/bash "$WORK/slurm/sbin/slurmd"
    printf '#!/bin/sh\necho "$*" >>%s\n' "$OUT" >"$WORK/slurm/bin/scontrol"
    chmod 755 "$WORK/slurm/bin/scontrol"
    # It asks which of the job's nodes is the first.
    "$WORK/slurm/sbin/slurmd" -c \
        'hook epilog 4000012 SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT= "SLURM_NODELIST=n[1-2]"; true'
    [ "$(cat "$OUT")" = "show hostnames n[1-2]" ]
}

# Between its begin and its first command of Slurm, the epilog waits for elastic-runs: here as long as the test wants.
@test "a process of a user that gets slurmd's number after its end names no commands for root" {
    unshare --pid --fork --mount-proc test -w /proc/sys/kernel/ns_last_pid || skip 'no process can have a chosen number'
    stub :
    export EVIL=$WORK/evil
    printf '#!/bin/sh\n: >%s/waits\nuntil [ -e %s/goes ]; do sleep 0.05; done\n' "$WORK" "$WORK" >"$STUB/elastic-runs"
    printf '#!/bin/sh\necho "$(id -u) $1" >>%s\n' "$OUT" >"$STUB/elastic-fit"
    install -d -m 755 "$WORK"/slurm/{sbin,bin} "$EVIL"/{sbin,bin}
    install -m 755 /bin/bash "$WORK/slurm/sbin/slurmd"
    install -m 755 /bin/bash "$EVIL/sbin/slurmd"
    printf '#!/bin/sh\necho "$(id -u) stolen" >>%s\n' "$OUT" >"$EVIL/bin/chroot"
    chmod 755 "$STUB"/elastic-{runs,fit} "$EVIL/bin/chroot"
    # The process with the number 1 ends the others.
    unshare --pid --fork --mount-proc --kill-child bash -c '
        wait_until() { local i; for ((i = 0; i < 600; i++)); do ! "$@" || return 0; sleep 0.05; done; return 1; }
        is_evil() { [[ $(readlink "/proc/$slurmd/exe") == "$EVIL/sbin/slurmd" ]]; }
        "$WORK/slurm/sbin/slurmd" -c "hook epilog 4000012 SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_COMMENT=; :" &
        slurmd=$!
        wait_until test -e "$WORK/waits"
        kill -KILL "$slurmd"
        wait "$slurmd"
        for ((i = 0; i < 20; i++)); do
            echo $((slurmd - 1)) >/proc/sys/kernel/ns_last_pid
            (exec setpriv --reuid="$USER_ID" --regid=65534 --clear-groups "$EVIL/sbin/slurmd" -c "while :; do sleep 1; done") &
            [[ $! != "$slurmd" ]] || break
        done
        wait_until is_evil || exit 77
        : >"$WORK/goes"
        wait_until test -s "$OUT"' || { (($? == 77)) && skip 'the number went to another process'; }
    cat "$OUT"
    [ "$(cat "$OUT")" = "$USER_ID revoke" ]
}

@test "without slurm.conf's directory elastic.conf is that of /etc/slurm, as in configless Slurm" {
    mkdir -p /etc/slurm
    unshare --mount bash -ec '
        mount -t tmpfs none /etc/slurm
        mv "$WORK/elastic.conf" /etc/slurm/
        own "elastic-$USER_ID-4000012.0-n1"
        hook epilog 4000012 ELASTIC_CONF= SLURM_CONF=/run/slurm/conf/slurm.conf
        [[ ! -e $WORK/place/elastic-$USER_ID-4000012.0-n1 ]]'
}

@test "the program that an admin copies starts the hook, and does nothing where that is missing" {
    mkdir "$WORK/copied"
    install -m 755 "$LIBEXEC/elastic-hook" "$WORK/copied/50-elastic"
    own "elastic-$USER_ID-4000012.0-n1" "elastic-$USER_ID-4000013.0-n1"
    HOOK=$WORK/copied/50-elastic hook epilog 4000012
    [ ! -e "$WORK/place/elastic-$USER_ID-4000012.0-n1" ]
    unshare --mount bash -ec 'mount -t tmpfs none "$LIBEXEC" && HOOK=$WORK/copied/50-elastic hook epilog 4000013'
    [ -e "$WORK/place/elastic-$USER_ID-4000013.0-n1" ]
}

@test "the script that earlier versions gave an admin to copy goes on to start the hook" {
    own "elastic-$USER_ID-4000012.0-n1"
    printf '%s\n' '#!/bin/bash -p' "hook=$LIBEXEC/epilog.d/50-elastic" '[[ ! -x $hook ]] || . "$hook"' 'exit 0' >"$WORK/50-elastic"
    chmod 755 "$WORK/50-elastic"
    HOOK=$WORK/50-elastic hook epilog 4000012 SPANK_ELASTIC_SIZES=1:2
    [ ! -e "$WORK/place/elastic-$USER_ID-4000012.0-n1" ]
}
