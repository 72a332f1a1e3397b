#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What a job has in the memory of its nodes when it ends otherwise than well: the epilog makes it durable, and the job goes on from there.
# Takes 110 s

load helpers
load elastic
load hook

setup_file() {
    testbed_up --nodes 5 --grace 2
    # A busy machine may need more than the usual 20 s.
    sed -i '1a epilog_flush = 200' "$TB_DIR/etc/elastic.conf"
    cp "$TREE/tests/system/snapshots.py" "$TB_WORK/"
    gcc -O1 -Wall -Wextra -Werror -I"$prefix/include" -o "$TB_WORK/snapshots" "$TREE/tests/system/snapshots.c" \
        -L"$prefix/lib" -lelastic -Wl,-rpath,"$prefix/lib"
    chmod 0755 "$TB_WORK/snapshots"
    find_hook
    export MEMORY=$TB_DIR/snapshots
    if ((UID == 0)); then
        # As on a site: only the prolog can make anything there.
        MEMORY=$TB_DIR/memory
        mkdir -m 711 "$MEMORY"
        sed -i "s|^snapshot_dir = .*|snapshot_dir = $MEMORY|" "$TB_DIR/etc/elastic.conf"
    fi
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# --mpi=none: the mpi/pmix of a slurmstepd that was killed leaves a socket in the node's spool directory, and the step of that
# number cannot start there any more.
# keeper SIZES EVERY [WORD...] [-- SBATCH-OPTION...]: submits snapshots.py, or $TRAINING; prints the job id. Its log is TB_WORK/log-JOB.
keeper() {
    local sizes=$1
    local -a words=("$2")
    shift 2
    while (($#)) && [[ $1 != -- ]]; do
        words+=("$1")
        shift
    done
    submit --elastic="$sizes" --elastic-grow=ask --exclusive -t 30 --requeue --open-mode=append "${@:2}" --wrap \
        "srun --mpi=none elasticrun ${TRAINING:-/usr/bin/python3 $TB_WORK/snapshots.py} $TB_WORK/log-\$SLURM_JOB_ID ${words[*]}"
}

made() { (($(last_step "$1" 2>/dev/null || echo 0) >= $2)); }

last_step() { awk '/^step/ { step = $2 } END { print step + 0 }' "$TB_WORK/log-$1"; }

# Of the second run of the job: the step that it began with.
began_again() { awk '/^start/ && $2 ~ /\.1$/ { print $4; exit }' "$TB_WORK/log-$1"; }

# Of the first: the last that it made.
ended_with() { awk '/^start/ && $2 ~ /\.1$/ { exit } /^step/ { step = $2 } END { print step + 0 }' "$TB_WORK/log-$1"; }

has_begun_again() { [[ -n $(began_again "$1") ]]; }

checkpoints_of() { ls -A "$TB_DIR/jobs/$TB_USER-$1/checkpoint"; }

# All that this job has on these nodes is killed at the same moment: workers, agents, and those of Slurm that watch over them.
# Not the one that has made the job's file system (job_container/tmpfs): Slurm 24.11 could not begin the job there again.
kill_all() {
    local job=$1 node
    shift
    {
        grep -lzE "^slurmstepd: \[$job\.(batch|[0-9]+)\]" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | while read -r pid; do
            # Another testbed has jobs of the same number.
            [[ -z $(find "/proc/$pid/fd" -lname "$TB_DIR/*" -print -quit 2>/dev/null) ]] || echo "$pid"
        done
        job_processes "$job"
    } | sort -u | xargs -r kill -KILL || true # some have ended by themselves
}

nothing_is_in_memory_of() {
    local left
    left=$(find "$MEMORY" -path "*/elastic-*-$1.*")
    [[ -z $left ]] || { echo "$left" && return 1; }
}

all_nodes_are_idle() { nodes_are 5 idle; }

@test "after the loss of everything a job goes on from its snapshot; a checkpoint that is newer wins" {
    local lost saved in_c
    lost=$(keeper 2:2 10)
    saved=$(keeper 2:2 10 save=25)
    in_c=$(TRAINING=$TB_WORK/snapshots keeper 1:1 10)
    wait_for 40 made "$lost" 33
    wait_for 40 made "$saved" 33
    wait_for 40 made "$in_c" 33
    # Not in the fallback: the prolog has made the place on each of the nodes.
    [[ $(find "$MEMORY" -maxdepth 1 -name "elastic-$(uid)-$lost.0-*" | wc -l) == 2 ]]
    kill_all "$lost"
    kill_all "$saved"
    kill_all "$in_c"
    as_user scontrol requeue "$lost,$saved,$in_c"
    # Of that one another node has more to write than an epilog waits for.
    as_user setsid -f sh -c "mkdir '$TB_DIR/jobs/$TB_USER-$saved/checkpoint/.flushing-$saved.0.1.1-n9-1'
        cd '$TB_DIR/jobs/$TB_USER-$saved/checkpoint/.flushing-$saved.0.1.1-n9-1'
        while [ ! -e '$TB_WORK/written' ] && echo >>state; do sleep 0.5; done; rm -r ../.flushing-*" 3>&-
    # Somebody else who may write there lets no job wait.
    as_user mkdir -p "$TB_DIR/jobs/$TB_USER-$lost/checkpoint"
    # Nor does he take its numbers, or say which one counts.
    ((UID)) || (
        cd "$TB_DIR/jobs/$TB_USER-$lost/checkpoint"
        install -d -o nobody 00000001/there 99999999999999999/there
        chown nobody 00000001 99999999999999999
        ln -s 00000000 latest
        chown -h nobody latest
    )
    setsid -f sh -c "cd '$TB_DIR/jobs/$TB_USER-$lost/checkpoint'
        install -d -o nobody .flushing-$lost.0.1.1-n9-1
        while [ ! -e '$TB_WORK/written' ] && echo >>.flushing-$lost.0.1.1-n9-1/state; do sleep 0.5; done
        rm -r .flushing-$lost.0.1.1-n9-1" 3>&-
    wait_for 40 start_again "$lost" "$saved" "$in_c"
    wait_for 40 has_begun_again "$lost"
    wait_for 40 grep -q "waits for a snapshot of an earlier run, which is being written" "$TB_WORK/$saved.out"
    run ! has_begun_again "$saved"
    touch "$TB_WORK/written"
    wait_for 40 has_begun_again "$saved"
    wait_for 40 has_begun_again "$in_c"
    cat "$TB_WORK/$lost.out" "$TB_WORK/$in_c.out"
    echo "in C: $(ended_with "$in_c") -> $(began_again "$in_c")"
    (($(began_again "$in_c") >= 30 && $(ended_with "$in_c") - $(began_again "$in_c") <= 10))
    as_user scancel "$in_c"
    echo "lost: $(ended_with "$lost") -> $(began_again "$lost"); saved: $(ended_with "$saved") -> $(began_again "$saved")"
    (($(began_again "$lost") >= 30 && $(ended_with "$lost") - $(began_again "$lost") <= 10))
    (($(began_again "$saved") == 25))
    grep -q "goes on from a snapshot of run 0, generation 1, step $(began_again "$lost")" "$TB_WORK/$lost.out"
    [[ $(checkpoints_of "$lost") != *flush* && $(checkpoints_of "$saved") != *flush* ]]
    # It has all that the other had: the run goes on, and saves in order.
    wait_for 20 made "$lost" $(($(began_again "$lost") + 20))
    as_user scancel "$lost" "$saved"
    wait_for 30 job_ended "$lost"
    wait_for 30 job_ended "$saved"
    nothing_is_in_memory_of "$lost"
    nothing_is_in_memory_of "$saved"
    cat "$TB_WORK/$lost.out"
    if ((UID == 0)); then
        [[ $(checkpoints_of "$lost") == $'00000001\n00000002\n00000003\n99999999999999999\nlatest' ]]
    fi
}

# lost_less_than JOB STEPS: what was flushed of this job can be loaded, and is so much older, at the most, than what it had.
lost_less_than() {
    local dir=$TB_DIR/jobs/$TB_USER-$1/checkpoint step name
    name=$(ls -A "$dir")
    [[ $name == .flushed-"$1".0.1.*-n[1-5] ]] || { echo "job $1: $name" && return 1; }
    as_user mv "$dir/$name" "$dir/00000001"
    step=$(as_user /usr/bin/python3 -c 'import slurm_elastic as s, sys; print(s.load_latest(sys.argv[1])["step"])' "$dir")
    echo "job $1 ($(job_state "$1")): step $(last_step "$1"), $name has $step"
    (($(last_step "$1") - step <= $2))
}

@test "a job that does not save is flushed after scancel, its time limit and a preemption; one that loses a node goes on from the queue" {
    local cancelled limited preempted lost job node
    cancelled=$(keeper 1:1 5 deaf -- --elastic-grace=1)
    limited=$(keeper 1:1 5 deaf -- --elastic-grace=1 -t 20)
    preempted=$(keeper 1:1 5 deaf -- -p elastic --elastic-grace=1)
    lost=$(keeper 2:2 5 -- --elastic-fault-wait=1 --elastic-requeue=fault)
    for job in "$cancelled" "$limited" "$preempted" "$lost"; do
        wait_for 40 made "$job" 12
    done
    # While all nodes are busy: else it may have another one in time.
    node=$(job_nodes "$lost" | tail -n 1)
    job_processes "$lost" "$node" | xargs kill -KILL || true # some end by themselves
    wait_for 40 start_again "$lost"
    on_testbed scontrol update jobid="$limited" endtime=now+1
    as_user scancel "$cancelled"
    submit -w "$(job_field "$preempted" NodeList)" --exclusive --wrap true
    wait_for 30 job_ended "$cancelled"
    lost_less_than "$cancelled" 5
    wait_for 30 job_ended "$preempted"
    lost_less_than "$preempted" 5
    wait_for 40 has_begun_again "$lost"
    echo "lost: $(ended_with "$lost") -> $(began_again "$lost")"
    grep -q "goes on from a snapshot of run 0, generation 1, step $(began_again "$lost")" "$TB_WORK/$lost.out"
    (($(ended_with "$lost") - $(began_again "$lost") <= 5))
    as_user scancel "$lost"
    wait_for 70 job_ended "$limited"
    lost_less_than "$limited" 5
    wait_for 30 all_nodes_are_idle
    for job in "$cancelled" "$limited" "$preempted" "$lost"; do
        wait_for 30 nothing_is_in_memory_of "$job"
    done
}

@test "workers that are started again after a failure go on from the snapshot of a node that is left" {
    local job node
    job=$(keeper 2:2 5)
    wait_for 40 made "$job" 12
    node=$(job_nodes "$job" | tail -n 1)
    # shellcheck disable=SC2046
    grep -lz "^RANK=1$" $(job_processes "$job" "$node" | sed 's|.*|/proc/&/environ|') 2>/dev/null | cut -d/ -f3 | xargs kill -KILL || true
    wait_for 40 grep -q '^start .* 2 ' "$TB_WORK/log-$job"
    cat "$TB_WORK/$job.out"
    awk '/^start/ && $3 == 2 { print "goes on from", $4, "after", last; exit last - $4 > 5 || $4 < 5 } /^step/ { last = $2 }' "$TB_WORK/log-$job"
    # A file system that hangs, where no signal ends what waits: the workers are started again all the same, and no node counts as lost.
    hold "$MEMORY/elastic-$(uid)-$job.0-$node" .
    wait_for 30 test -s "$TB_WORK/pids"
    wait_for 40 has_started "$job" 2
    # shellcheck disable=SC2046
    grep -lz "^RANK=1$" $(job_processes "$job" "$node" | sed 's|.*|/proc/&/environ|') 2>/dev/null | cut -d/ -f3 | xargs kill -KILL || true
    wait_for 20 flush_is_stopped "$MEMORY/elastic-$(uid)-$job.0-$node"
    wait_for 40 has_started "$job" 3
    release
    cat "$TB_WORK/$job.out"
    grep -q "$node: its snapshot is not at the checkpoints after 9 s" "$TB_WORK/$job.out"
    run ! pgrep -f "elastic-flush.*$MEMORY/elastic-$(uid)-$job.0-$node"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
}

has_started() { grep -q "^start .* $2 " "$TB_WORK/log-$1"; }

flush_is_stopped() {
    local pid
    pid=$(pgrep -o -f "elastic-flush --keep-time=8 $1") && kill -STOP "$pid"
}

@test "an elasticrun that follows another in the same job goes on from its checkpoints" {
    local counts job
    counts=$(script counts.py <<'PY'
#!/usr/bin/python3
import os, sys
import slurm_elastic
before = slurm_elastic.load_latest()
slurm_elastic.save((before or 0) + 1)
print("generation", os.environ["ELASTIC_GENERATION"], "goes on from", before, flush=True)
sys.exit(os.environ["ELASTIC_GENERATION"] == "1")
PY
    )
    job=$(submit --elastic=1:1 -t 20 --wrap "srun elasticrun $counts; srun elasticrun $counts; srun elasticrun $counts")
    wait_for 60 job_is "$job" COMPLETED
    [[ $(grep '^generation' "$TB_WORK/$job.out") == "generation 1 goes on from None
generation 2 goes on from 1
generation 3 goes on from 2
generation 4 goes on from 3" ]] || { cat "$TB_WORK/$job.out" && false; }
    # … and from the snapshot of one that was killed.
    job=$(submit --elastic=1:1 -t 20 --wrap "for i in 1 2; do
        srun elasticrun /usr/bin/python3 $TB_WORK/snapshots.py $TB_WORK/log-\$SLURM_JOB_ID 5; done")
    wait_for 40 made "$job" 12
    kill -KILL "$(agent_of "$job")"
    wait_for 40 grep -q '^start .*\.0 2 ' "$TB_WORK/log-$job"
    awk '/^start/ && $3 == 2 { print "goes on from", $4, "after", last; exit last - $4 > 5 || $4 < 5 } /^step/ { last = $2 }' "$TB_WORK/log-$job"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    nothing_is_in_memory_of "$job"
}

# leave NAME STEP [CHECKPOINT [ROOT]]: makes a run directory as a killed agent leaves it, with a snapshot for that directory.
leave() {
    local dir=${4:-$MEMORY}/$1 checkpoint=${3:-$TB_WORK/checkpoint}
    ((UID)) || install -d -m 700 -o "$TB_USER" -g "$(id -g "$TB_USER")" "$dir"
    as_user /usr/bin/python3 - "$dir" "$2" "$checkpoint" <<'PY'
import hashlib, json, os, sys
run_dir, step, checkpoint = sys.argv[1:]
os.makedirs(run_dir, 0o700, exist_ok=True)
os.makedirs(run_dir + "/snapshot/0", 0o700, exist_ok=True)
os.makedirs(checkpoint, exist_ok=True)
open(run_dir + "/agent.lock", "w").close()
state = b"x" * 100000
with open(run_dir + "/snapshot/0/state.flat", "wb") as file:
    file.write(state)
job = os.path.basename(run_dir).split("-")[2]
files = {"state.flat": {"bytes": len(state), "blake2b": hashlib.blake2b(state, digest_size=32).hexdigest()}}
with open(run_dir + "/snapshot/0/complete.json", "w") as file:
    json.dump({"format": 1, "incarnation": job, "generation": 1, "step": int(step), "checkpoint": checkpoint, "files": files}, file)
PY
}

gone() { [[ ! -e $1 && ! -L $1 ]]; }

# hold DIR FILE: somebody of the directory's job lives there, until the test ends.
hold() {
    local job=${1##*/elastic-"$(uid)"-}
    # shellcheck disable=SC2016
    as_user SLURM_JOB_ID="${job%%.*}" setsid -f flock "$1/$2" sh -c 'echo $$ >>pids; exec sleep 1000'
}

release() {
    while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done < <(cat "$TB_WORK/pids" 2>/dev/null)
    rm -f "$TB_WORK/pids"
}

# swept JOB...: after another prolog, with $TB_WORK/short.conf, nothing of these is left on n1.
swept() {
    local job
    hook prolog 902 0 n1 ELASTIC_CONF="$TB_WORK/short.conf"
    for job; do
        gone "$MEMORY/elastic-$(uid)-$job.0-n1" || return
    done
}

@test "what a crashed node has left is flushed by the prolog of anybody's next job, and by the next elasticrun" {
    local stranger=(SLURM_JOB_UID=65534 SLURM_JOB_GID=65534) checkpoint=$TB_WORK/checkpoint conf=$TB_WORK/level0.conf job
    ((UID == 0)) || stranger=()
    leave "elastic-$(uid)-70.0-n1" 7
    leave "elastic-$(uid)-71.0-n1" 8
    hold "$MEMORY/elastic-$(uid)-71.0-n1" agent.lock
    leave "elastic-$(uid)-72.0-n1" 9
    rm "$MEMORY/elastic-$(uid)-72.0-n1/agent.lock"
    wait_for 30 test -s "$TB_WORK/pids"
    hook prolog 900 0 n1 "${stranger[@]}"
    wait_for 20 gone "$MEMORY/elastic-$(uid)-70.0-n1"
    [[ $(ls -A "$checkpoint") == .flushed-70.0.1.7-n1 ]]
    # That one's agent lives, and this one's is about to begin …
    [[ -e $MEMORY/elastic-$(uid)-71.0-n1/snapshot/0/complete.json && -e $MEMORY/elastic-$(uid)-72.0-n1/snapshot ]]
    # … but not after so long: nobody keeps memory by using it without an agent, or with something else in the place of its lock.
    sed 's/^munge_socket/snapshot_keep = 1\n&/' "$TB_DIR/etc/elastic.conf" >"$TB_WORK/short.conf"
    leave "elastic-$(uid)-75.0-n1" 5
    as_user sh -c "rm '$MEMORY/elastic-$(uid)-75.0-n1/agent.lock'; mkfifo '$MEMORY/elastic-$(uid)-75.0-n1/agent.lock'"
    wait_for 20 swept 72 75
    [[ -e $MEMORY/elastic-$(uid)-71.0-n1/snapshot/0/complete.json ]]
    [[ -d $checkpoint/.flushed-72.0.1.9-n1 && -d $checkpoint/.flushed-75.0.1.5-n1 ]]
    # An earlier run of the same job: before the script of the next one starts.
    leave "elastic-$(uid)-73.0-n1" 3
    hook prolog 73 1 n1
    [[ -d $checkpoint/.flushed-73.0.1.3-n1 ]]
    gone "$MEMORY/elastic-$(uid)-73.0-n1"
    release
    # Without prolog and epilog it is elasticrun that finds them.
    sed "s|^snapshot_dir = .*|snapshot_dir = $TB_DIR/snapshots|" "$TB_DIR/etc/elastic.conf" >"$conf"
    leave "elastic-$(uid)-74.0-n2" 4 "$checkpoint" "$TB_DIR/snapshots"
    job=$(ELASTIC_CONF=$conf as_user ELASTIC_CONF="$conf" sbatch --parsable -w n2 --export=ALL -o "$TB_WORK/%j.out" --wrap \
        "srun elasticrun --elastic=1:1 sh -c 'echo \$ELASTIC_RUN_DIR; sleep 1'")
    wait_for 30 job_is "$job" COMPLETED
    grep -qx "$TB_DIR/snapshots/elastic-$(uid)-$job.0-n2" "$TB_WORK/$job.out" || { cat "$TB_WORK/$job.out" && false; }
    wait_for 30 test -d "$checkpoint/.flushed-74.0.1.4-n2"
    wait_for 30 gone "$TB_DIR/snapshots/elastic-$(uid)-74.0-n2"
    wait_for 30 gone "$TB_DIR/snapshots/elastic-$(uid)-$job.0-n2"
}

@test "a file system that hangs does not hold the epilog, and what waits for it is flushed when it goes on" {
    local began dir
    dir=$MEMORY/elastic-$(uid)-80.0-n1
    leave "${dir##*/}" 7
    # Stands in for a file system: elastic-flush waits for the lock of the directory as it would there.
    hold "$dir" .
    wait_for 30 test -s "$TB_WORK/pids"
    sed -i 's/^epilog_flush.*//; s/^munge_socket/epilog_flush = 2\n&/' "$TB_DIR/etc/elastic.conf"
    began=$EPOCHREALTIME
    hook epilog 80 0 n1
    (($(seconds_since "$began") >= 2 && $(seconds_since "$began") < 200))
    [[ -e $dir/snapshot/0/complete.json && ! -d $TB_WORK/checkpoint/.flushed-80.0.1.7-n1 ]]
    release
    wait_for 20 test -d "$TB_WORK/checkpoint/.flushed-80.0.1.7-n1"
    wait_for 20 gone "$dir/snapshot"
    # What cannot be flushed stays for the next prolog, what is torn does not.
    rm -rf "$dir"
    leave "${dir##*/}" 8
    as_user chmod 500 "$TB_WORK/checkpoint"
    leave "elastic-$(uid)-81.0-n1" 8
    as_user sh -c "echo y >>'$MEMORY/elastic-$(uid)-81.0-n1/snapshot/0/state.flat'"
    hook epilog 80 0 n1
    hook prolog 901 0 n1
    hook epilog 81 0 n1
    gone "$MEMORY/elastic-$(uid)-81.0-n1"
    [[ -e $dir/snapshot/0/complete.json && ! -e $TB_WORK/checkpoint/.flushed-80.0.1.8-n1 ]]
    as_user chmod 700 "$TB_WORK/checkpoint"
    # Who does not wait has it flushed, too.
    sed -i 's/^epilog_flush.*/epilog_flush = 0/' "$TB_DIR/etc/elastic.conf"
    hook epilog 80 0 n1
    wait_for 20 test -d "$TB_WORK/checkpoint/.flushed-80.0.1.8-n1"
    sed -i 's/^epilog_flush.*/epilog_flush = 200/' "$TB_DIR/etc/elastic.conf"
    rm -rf "$dir"
}

# Without the processes that they have for a directory.
flushes_of() { pgrep -f "elastic-flush.* $1" | xargs -r ps -o comm= -p | grep -cx elastic-flush || true; }

one_flush_waits() { (($(flushes_of "$MEMORY/elastic-$(uid)-82") == 1)); }

@test "a later run that lives on the node is left alone; however many prologs find what hangs, one process waits for it" {
    local dir
    dir=$MEMORY/elastic-$(uid)-82.1-n1
    leave "${dir##*/}" 8
    hold "$dir" agent.lock
    # shellcheck disable=SC2016
    as_user ELASTIC_RUN_DIR="$dir" ELASTIC_JOB_ID=82 SLURM_JOB_ID=82 setsid -f sh -c 'echo $$ >>pids; exec sleep 1000'
    wait_for 30 lines_are 2 "$TB_WORK/pids"
    hook epilog 82 1 n1
    [[ -e $dir/snapshot/0/complete.json ]]
    while read -r pid; do kill -0 "$pid"; done <"$TB_WORK/pids"
    release
    # Now the directory itself is locked, as by one that flushes it.
    hold "$dir" .
    wait_for 30 test -s "$TB_WORK/pids"
    for _ in 1 2 3; do
        hook prolog 903 0 n1
    done
    wait_for 20 one_flush_waits
    release
    wait_for 20 gone "$dir"
    [[ -d $TB_WORK/checkpoint/.flushed-82.1.1.8-n1 || -d $TB_WORK/checkpoint/.flushed-82.0.1.8-n1 ]]
}

@test "a job that a worker has submitted to its node lives on when the job of the worker has ended" {
    local next worker dir
    next=$(script next.sh <<'JOB'
#!/bin/bash
env >next.env
export ELASTIC_JOB_ID=$1 ELASTIC_RUN_DIR=$2 # as without the plugin
exec sleep 6170
JOB
    )
    worker=$(script worker.sh <<'JOB'
#!/bin/bash
echo "$(sbatch --parsable -w "$SLURMD_NODENAME" -o /dev/null "$1" "$ELASTIC_JOB_ID" "$ELASTIC_RUN_DIR") $ELASTIC_RUN_DIR" >ids
sleep 3600
JOB
    )
    job=$(submit --elastic=1:1 -w n1 -t 60 --wrap "srun elasticrun $worker $next")
    wait_for 30 lines_are 1 "$TB_WORK/ids"
    read -r next dir <"$TB_WORK/ids"
    wait_for 20 pgrep -x -u "$TB_USER" -f 'sleep 6170'
    as_user scancel "$job"
    wait_for 30 gone "$dir"
    wait_for 20 job_ended "$job"
    job_is "$next" RUNNING
    run ! grep -E '^ELASTIC_(JOB_ID|RUN_DIR)=' "$TB_WORK/next.env"
}

lines_are() { [[ $(wc -l 2>/dev/null <"$2") == "$1" ]]; }

# swap DIR: until the test ends the user exchanges the buffer, its files and their directory with links to a secret and a FIFO.
swap() {
    as_user setsid -f /usr/bin/python3 - "$@" <<'PY'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
run_dir, secret = sys.argv[1:]
with open("pids", "a") as file:
    print(os.getpid(), file=file)
other = os.path.join(run_dir, "other")
os.mkdir(other)
os.symlink(os.path.dirname(secret), other + "/0")
os.symlink(secret, other + "/state.flat")
os.mkfifo(other + "/fifo")
pairs = [("snapshot/0", "other/0"), ("snapshot/0/state.flat", "other/state.flat"), ("snapshot/0/state.flat", "other/fifo"), ("snapshot", "other")]
while os.path.exists(run_dir):
    for one, two in pairs:
        for _ in range(2):
            libc.renameat2(-100, os.path.join(run_dir, one).encode(), -100, os.path.join(run_dir, two).encode(), 2)
PY
}

@test "hostile run directories: nothing outside of them is read, written or removed, and the node stays in service" {
    [[ $(id -u) == 0 ]] || skip 'needs root to be another user'
    local secrets=$TB_WORK/secrets user checkpoint=$TB_WORK/out dir before
    user=$(uid)
    # What only root may read, in the user's own directory, and what root alone may change.
    install -d -m 755 "$secrets" "$secrets/0"
    head -c 100000 /dev/zero | tr '\0' s >"$secrets/state.flat"
    cp "$secrets/state.flat" "$secrets/0/state.flat"
    chmod 600 "$secrets/state.flat" "$secrets/0/state.flat"
    before=$(cd "$secrets" && find . -printf '%p %u %m %s %T@\n' | sort)
    # Where anybody can make something, too: in the place of the directory.
    sed -i "s|^snapshot_dir = .*|snapshot_dir = $TB_DIR/snapshots|" "$TB_DIR/etc/elastic.conf"
    MEMORY=$TB_DIR/snapshots
    as_user ln -s "$secrets" "$MEMORY/elastic-$user-60.0-n1"
    mkdir -m 755 "$MEMORY/elastic-$user-60.1-n1"
    touch "$MEMORY/elastic-$user-60.1-n1/of-root"
    leave "elastic-$user-60.2-n1" 1 "$secrets"
    leave "elastic-$user-60.3-n1" 1 /etc
    leave "elastic-$user-60.4-n1" 1 "$checkpoint"
    dir=$MEMORY/elastic-$user-60.4-n1
    as_user sh -c "rm '$dir/snapshot/0/state.flat' && ln -s '$secrets/state.flat' '$dir/snapshot/0/' && mkfifo '$dir/fifo' &&
        rm '$dir/agent.lock' && mkfifo '$dir/agent.lock' && truncate -s 8T '$dir/huge' &&
        mkdir '$dir/snapshot/1' && truncate -s 8T '$dir/snapshot/1/complete.json' && touch '$dir/two
lines' '$dir/-rf' && ln -s '$secrets' '$dir/link' && mkdir -p '$dir/a/b' && touch '$dir/a/b/c' && chmod 500 '$dir/a/b' '$dir/a'"
    leave "elastic-$user-60.5-n1" 1 "$checkpoint"
    dir=$MEMORY/elastic-$user-60.5-n1
    as_user sh -c "rm -r '$dir/snapshot/0' && ln -s '$secrets/0' '$dir/snapshot/0'"
    as_user sh -c "mkfifo '$MEMORY/elastic-$user-60.6-n1'"
    as_user mkdir "$MEMORY/elastic-$user-60.7-n1"$'\n'"x" "$MEMORY/elastic-$user-60.7-../n1"  2>/dev/null || true
    # Without a snapshot that can be used, and deeper than a process has descriptors.
    leave "elastic-$user-60.9-n1" 1 "$checkpoint"
    as_user /usr/bin/python3 -c "import os, sys
os.chdir(sys.argv[1])
os.unlink('agent.lock')
os.unlink('snapshot/0/complete.json')
for _ in range(1500): os.mkdir('d'), os.chdir('d')" "$MEMORY/elastic-$user-60.9-n1"
    leave "elastic-$user-60.8-n1" 1 "$checkpoint"
    swap "$MEMORY/elastic-$user-60.8-n1" "$secrets/state.flat"
    wait_for 30 test -s "$TB_WORK/pids"
    for _ in 1 2 3 4 5 6 7 8; do
        hook epilog 60 8 n1
        hook prolog 61 0 n1
        hook prolog 60 9 n1
        [[ $(cd "$secrets" && find . -printf '%p %u %m %s %T@\n' | sort) == "$before" ]]
        ! grep -rqs sss "$checkpoint"
        [[ ! -e $MEMORY/elastic-$user-60.8-n1 ]] || break
        leave "elastic-$user-60.8-n1" 1 "$checkpoint" 2>/dev/null || true
    done
    release
    hook epilog 60 9 n1
    gone "$MEMORY/elastic-$user-60.9-n1"
    gone "$MEMORY/elastic-$user-60.4-n1"
    [[ -e $MEMORY/elastic-$user-60.1-n1/of-root ]]
    gone "$MEMORY/elastic-$user-60.0-n1"
    gone "$MEMORY/elastic-$user-60.6-n1"
    [[ -z $(find /etc -maxdepth 1 -name '.flush*') ]]
    # All that was flushed is whole and the user's own.
    find "$checkpoint" -name state.flat -exec sh -c 'tr -d x <"$1" | grep -q . && exit 1; true' _ {} \;
    [[ -z $(find "$checkpoint" ! -user "$user") ]]
    # The same in jobs, whose epilogs slurmd runs.
    job=$(submit -w n1,n2 -N2 --wrap "srun sh -c 'for i in 0 1 2; do ln -s $secrets $MEMORY/elastic-$user-\$SLURM_JOB_ID.\$i-\$SLURMD_NODENAME; done'")
    wait_for 30 job_is "$job" COMPLETED
    wait_for 30 all_nodes_are_idle
    [[ $(cd "$secrets" && find . -printf '%p %u %m %s %T@\n' | sort) == "$before" ]]
}

@test "the prolog makes the place of all run directories once, as a file system of its own" {
    [[ $(id -u) == 0 ]] || skip 'needs root to mount'
    export CONF=$TB_WORK/default.conf
    printf 'epilog_flush = 5\n' >"$CONF"
    chmod 755 "$TB_WORK"
    hooks() {
        local job
        hook prolog 50 0 n1 ELASTIC_CONF="$CONF" # a rigid job
        [[ -e /run/slurm-elastic ]] && echo made
        # Several at the same moment; no user can get in the way of that.
        for job in 50 51 52 53 54 55; do
            hook prolog "$job" 1 n1 ELASTIC_CONF="$CONF" SPANK_ELASTIC_SIZES=1:2 &
        done
        wait
        hook prolog 51 0 n1 ELASTIC_CONF="$CONF" SPANK_ELASTIC_EXTEND=50
        hook prolog 51 0 n1 ELASTIC_CONF="$CONF" SPANK_ELASTIC_EXTEND=50
        findmnt -n -o FSTYPE /run/slurm-elastic
        find /run/slurm-elastic -printf '%P %u %m\n' | sort
        find /run/slurm-elastic.lock -printf '%u %m\n'
        for job in 51 52 53 54 55; do
            hook epilog "$job" 1 n1 ELASTIC_CONF="$CONF"
        done
        find /run/slurm-elastic -name 'elastic-*' -printf '%P\n'
        # Somebody has unmounted it.
        umount /run/slurm-elastic
        hook prolog 56 0 n1 ELASTIC_CONF="$CONF" SPANK_ELASTIC_SIZES=1:2
        findmnt -n -o FSTYPE /run/slurm-elastic
        find /run/slurm-elastic -name 'elastic-*' -printf '%P\n'
    }
    export -f hooks hook uid as_user take_testbed_env
    # /run of the machine is not touched.
    unshare --mount true 2>/dev/null || skip 'no file system can be mounted here'
    run unshare --mount bash -c 'mount -t tmpfs none /run && hooks'
    [ "$output" = "tmpfs
 root 711
elastic-$(uid)-50.1-n1 $TB_USER 700
elastic-$(uid)-51.0-n1 $TB_USER 700
elastic-$(uid)-51.1-n1 $TB_USER 700
elastic-$(uid)-52.1-n1 $TB_USER 700
elastic-$(uid)-53.1-n1 $TB_USER 700
elastic-$(uid)-54.1-n1 $TB_USER 700
elastic-$(uid)-55.1-n1 $TB_USER 700
root 600
elastic-$(uid)-50.1-n1
tmpfs
elastic-$(uid)-56.0-n1" ]
}
