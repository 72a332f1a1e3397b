# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers of the system tests that run elastic jobs. Load after helpers.
# shellcheck shell=bash

# train SIZES STEPS STEP_SECONDS [unaware | samples] [-- SBATCH-OPTION...]: submits tests/system/steps.py; prints the job id. Its logs
# are in TB_WORK/log-JOB, its output in TB_WORK/JOB.out.
train() {
    local sizes=$1 steps=$2 seconds=$3 mode=
    shift 3
    if [[ ${1:-} == unaware || ${1:-} == samples ]]; then
        mode=$1
        shift
    fi
    [[ ${1:-} != -- ]] || shift
    submit --elastic="$sizes" --elastic-grow-delay=2 --exclusive -t 60 "$@" --wrap \
        "srun elasticrun /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID $steps $seconds $mode"
}

# paced_python: prints a directory for the front of PYTHONPATH. With it, a script sleeps, after each
# step, only until steps_are_fast. So a training cannot end before the test has seen all it waits
# for, and then ends soon. The library sleeps as ever.
paced_python() {
    cp -rT "$TB_HOME/python" "$TB_WORK/paced"
    cat "$TB_HOME/python/sitecustomize.py" - >"$TB_WORK/paced/sitecustomize.py" <<'PY'
import faulthandler, os, sys, time

faulthandler.enable()  # a worker that is aborted says where it was
FAST = os.path.join(os.path.dirname(__file__), "fast")
sleep = time.sleep


def pause(seconds):
    if sys._getframe(1).f_globals.get("__name__") != "__main__" or not os.path.exists(FAST):
        sleep(seconds)


time.sleep = pause
PY
    chmod -R a+rX "$TB_WORK/paced"
    printf '%s\n' "$TB_WORK/paced"
}

# Of all trainings with paced_python.
steps_are_fast() { touch "$TB_WORK/paced/fast"; }
steps_are_slow() { rm -f "$TB_WORK/paced/fast"; }

# mpi_up OPTION...: testbed_up for programs of Open MPI. Exports MPI_NETWORK, by which processes of different nodes talk. Open MPI 6 takes
# no address of a peer that the own node has as well (its pull request 14371). So there each node has an address of its own.
mpi_up() {
    local -a own=()
    export MPI_NETWORK=lo
    if ! printf '%s\n' "$(ompi_info --version | sed -n 's/^Open MPI v//p')" 6 | sort -VC; then
        ((UID == 0)) || skip "Open MPI 6 needs nodes with addresses of their own, which only root can make"
        MPI_NETWORK=198.18.0.0/15 own=(--netns)
    fi
    testbed_up "${own[@]}" "$@"
}

# compile COMPILER SOURCE TARGET [PACKAGE...]: a program of tests/system that needs these packages, for the ordinary user to run.
compile() {
    local -a flags=()
    (($# < 4)) || read -ra flags < <(pkg-config --cflags --libs "${@:4}")
    "$1" -O1 -Wall -Wextra -I"$TREE" -o "$3" "$TREE/tests/system/$2" "${flags[@]}"
    chmod 0755 "$3"
}

# enough JOB: a training that was submitted by train ends, and the job has ended well.
enough() {
    as_user touch "$TB_WORK/log-$1.enough"
    wait_for 60 job_is "$1" COMPLETED
}

# lasting SBATCH-OPTION...: a job that ends well when it is told to, by over JOB; prints its id once it runs.
lasting() {
    local job
    job=$(submit -t 60 "$@" --wrap "until [ -e $TB_WORK/over.\$SLURM_JOB_ID ]; do sleep 0.2; done") &&
        wait_for 60 job_is "$job" RUNNING && printf '%s\n' "$job"
}

over() {
    as_user touch "$TB_WORK/over.$1"
    wait_for 60 job_is "$1" COMPLETED
}

# patient: agents that stand still for a while, as this machine has other work, do not count as lost. For files whose jobs lose no
# leader: the next one would wait as long.
patient() { sed -i '1aheartbeat_timeout = 20' "$TB_DIR/etc/elastic.conf"; }

show_json() { as_user selastic show "$1" --json 2>/dev/null; }

# testbed_up calls this: begins the process that answers json_value. It ends with bats' process for the file, at the latest.
# The FIFO is opened before that process begins: what is asked while nobody has it open is lost.
know_json() {
    local fifo
    mkfifo -m 600 "$TB_HOME/json"
    exec {fifo}<>"$TB_HOME/json"
    setpriv --pdeathsig KILL /usr/bin/python3 -I -S "$TREE/tests/system/json_value.py" serve \
        <&"$fifo" >"$TB_HOME/json.err" 2>&1 3>&- &
    export JSON_PID=$!
    exec {fifo}>&-
}

# json_value EXPRESSION: of the JSON on stdin, bound to s. It is called while tests wait, again and again: it must be cheap. So a
# process that is there already answers, through a pipe of this shell's own.
json_value() {
    local answer pipe
    if [[ ! ${JSON_PID:-} || ! -d /proc/$JSON_PID ]]; then
        /usr/bin/python3 -I -S "$TREE/tests/system/json_value.py" once "$1"
        return
    fi
    exec {pipe}<> <(:)
    # In one line: bash writes each line by itself, and another one's may come between.
    printf '%d %d %s\0' "$BASHPID" "$pipe" "${1//$'\n'/ }" 1<>"$TB_HOME/json"
    IFS= read -r -t 120 -d '' -u "$pipe" answer || answer='1 no answer'
    exec {pipe}>&-
    if [[ $answer == 0\ * ]]; then
        printf '%s' "${answer#0 }"
    else
        printf '%s' "${answer#1 }" >&2
        return 1
    fi
}

# led_by JOB NODE, works_for_it JOB NODE
led_by() { show_json "$1" | json_value 's["leader"]' 2>/dev/null | grep -qx "$2"; }
works_for_it() { show_json "$1" | json_value '*[m["node"] for m in s["members"]]' 2>/dev/null | grep -qw "$2"; }

# Tests wait for this more than for anything else. As long as the leader's file has another number of
# nodes, nobody is asked.
size_is() {
    local size line count=0 file=$TB_DIR/jobs/$TB_USER-$1/generation.json
    local -a lines
    if { mapfile -t lines <"$file"; } 2>/dev/null; then
        for line in "${lines[@]}"; do
            [[ $line != *'"name":'* ]] || count=$((count + 1))
        done
        ((count == $2)) || return 1
    fi
    size=$(show_json "$1" | json_value 's["size"] if s["phase"] == "running" else 0' 2>/dev/null) && [[ $size == "$2" ]]
}

# waits_beside NAME ARGUMENT...: selastic wait in the background; its output and status are in TB_HOME/wait.NAME.
waits_beside() {
    (as_user selastic wait "${@:2}" >"$TB_HOME/wait.$1" 2>&1 && status=0 || status=$?
        echo "status $status" >>"$TB_HOME/wait.$1") 3>&- &
}

generation_of() { show_json "$1" | json_value 's["generation"]'; }

steps_of() {
    local -a files=("$TB_WORK/log-$1"/rank-*-0)
    [[ -e ${files[0]} ]] || files=(/dev/null)
    awk '/^step/ { count++ } END { print count + 0 }' "${files[@]}"
}

steps_exceed() { (($(steps_of "$1") > $2)); }

# The job makes another step. After a fault of the world this proves nothing: the workers that were there may still make it. See
# goes_on_after.
goes_on() {
    local steps
    steps=$(steps_of "$1")
    wait_for 60 steps_exceed "$1" "$steps"
}

# goes_on_after JOB GENERATION: a later world than this one makes steps.
goes_on_after() { wait_for 60 steps_made_after "$1" "$2"; }

steps_made_after() {
    local generation
    generation=$(generation_of "$1" 2>/dev/null) && [[ $generation ]] && ((generation > $2)) &&
        steps_made_by "$1" "$generation"
}

steps_made_by() { grep -q '^step' "$TB_WORK/log-$1/rank-$2-0" 2>/dev/null; }

history_json() { as_user selastic history "$1" --json; }

sizes_of() { history_json "$1" | json_value '",".join(str(g["size"]) for g in s["generations"])'; }

generation_count() { history_json "$1" | json_value 'len(s["generations"])'; }

sizes_are_among() {
    local job=$1 size
    shift
    for size in $(sizes_of "$job" | tr ',' ' '); do
        [[ " $* " == *" $size "* ]] || { echo "size $size was formed"; return 1; }
    done
}

# Rank 0 has made every step from 1 on exactly once.
steps_were_made_once() {
    cat "$TB_WORK/log-$1"/rank-*-0 | awk -v job="$1" '
        /^step/ { sub("step=", "", $3); step = $3 + 0; count[step]++; if (step > last) last = step }
        END {
            for (i = 1; i <= last; i++)
                if (count[i] != 1 && bad++ < 5) printf "job %s: step %d was made %d times\n", job, i, count[i]
            exit bad || last == 0
        }' || { cat "$TB_WORK/$1.out"; return 1; }
}

# No node was in the worlds of two of these jobs at the same time. (A worker that has started early may have been given up: it counts
# from its first step.)
no_node_was_shared() {
    local job
    for job; do
        awk -v job="$job" '
            /^start/ { split($3, a, "="); node = a[2]; begun = 0; next }
            !begun { print node, $2, "start", job; begun = 1 }
            { last[FILENAME] = $2; where[FILENAME] = node }
            END { for (f in last) print where[f], last[f], "end", job }' "$TB_WORK/log-$job"/rank-*
    done | sort -k1,1 -k2,2n | awk '
        $3 == "start" { if (n[$1] > 0 && owner[$1] != $4) { print "node " $1 " is in two worlds at " $2; bad = 1 } n[$1]++; owner[$1] = $4 }
        $3 == "end" { n[$1]-- }
        END { exit bad }'
}

cluster_is_full() { [[ -z $(as_user sinfo -h -t idle -o %N) ]]; }

# Extension jobs of a base that are still in the queue.
extensions_of() { marked_jobs "$1"; }

running_extensions_of() { marked_jobs "$1" -t R; }

# marked_jobs BASE SQUEUE-OPTION...
marked_jobs() {
    as_user squeue -h "${@:2}" -o '%A %k' |
        awk -v mark="elastic-extension-of=$1." 'index($2, mark) == 1 { print $1 }'
}

# has_pending_extension JOB [REASON]: the beginning of Slurm's word for what it waits for.
has_pending_extension() { [[ $(as_user squeue -h -t PD -o '%k %r') == *"elastic-extension-of=$1."*" ${2:-}"* ]]; }

# waited_less JOB SECONDS: from its submission to its start.
waited_less() {
    local asked started
    asked=$(date -d "$(job_field "$1" SubmitTime)" +%s)
    started=$(date -d "$(job_field "$1" StartTime)" +%s)
    echo "job $1 waited for $((started - asked)) s"
    ((started - asked < $2))
}

# agent_of JOB [NODE]: the pid of its elasticrun there, not of srun, not of the one that only waits for it and not of a worker's shim.
agent_of() {
    local pid name
    local -a words
    for pid in $(job_processes "$@"); do
        { mapfile -d '' -t words <"/proc/$pid/cmdline" && read -r name <"/proc/$pid/comm"; } 2>/dev/null || continue
        if [[ ${words[0]:-} == */bin/elasticrun && $name != elasticrun-wait ]] &&
            grep -qz ^SLURM_STEP_ID= "/proc/$pid/environ" 2>/dev/null &&
            ! grep -qz ^ELASTIC_GENERATION= "/proc/$pid/environ" 2>/dev/null; then
            echo "$pid"
            return
        fi
    done
}

# Processes, run directories and extension jobs of a base.
remains_of() {
    extensions_of "$1" | sed 's/^/extension job /'
    # The number is another testbed's too: only processes of this one count.
    processes_with "ELASTIC_JOB_ID=$1" | while read -r pid; do
        echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
    done
    find "$TB_DIR/snapshots" /dev/shm -maxdepth 1 -name "elastic-*-$1.*" 2>/dev/null
}

nothing_is_left_of() {
    local left
    left=$(remains_of "$1")
    [[ -z $left ]] || { echo "$left"; return 1; }
}

# keep_mails ELASTIC_MAIL: from now on, Slurm's mails go through that program into files.
keep_mails() {
    mkdir -m 1777 "$TB_HOME/mails"
    cat >"$TB_HOME/mail" <<SH
#!/bin/bash
cd "$TB_HOME/mails" && { printf '%s\n' "\$2" "to \$3" && cat; } >".new.\$\$" && mv ".new.\$\$" "\$SLURM_JOB_ID.\$\$"
SH
    # What the site's own script says: which program sends.
    printf '#!/bin/bash\n%s\nexec %s "$@"\n' "$TB_ENV" "$1 $TB_HOME/mail" >"$TB_HOME/mailprog"
    chmod 755 "$TB_HOME/mail" "$TB_HOME/mailprog"
    sed -i "s|^MailProg=.*|MailProg=$TB_HOME/mailprog|" "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
}

# has_mail JOB WORD: Slurm has sent one of the job with this word; prints the subject, whom it is for, and its text.
has_mail() { grep -lE "^Slurm Job_id=$1 .* $2" "$TB_HOME"/mails/* 2>/dev/null | xargs -r cat | grep .; }

# mailing_jobs: those of which there are mails.
mailing_jobs() { (cd "$TB_HOME/mails" && printf '%s\n' * | cut -d. -f1 | sort -nu | xargs); }

# start_again JOB...: jobs that were put back into the queue wait two minutes unless they are told not to; in the second
# that their nodes have become free these would refuse them.
start_again() {
    local job
    for job; do
        job_is "$job" PENDING || return
    done
    sleep 2
    for job; do
        on_testbed scontrol update jobid="$job" starttime=now
    done
}
