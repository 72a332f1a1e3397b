# SPDX-License-Identifier: GPL-2.0-or-later
# Starting daemons, knowing them again later, and finding every process of one cluster.
# shellcheck shell=bash

# Sets PROCESS_STATE, PROCESS_PARENT and PROCESS_START (in ticks since boot); fails if it is gone.
# It is called for each process of the machine, again and again. (read asks the kernel for each byte
# of what has no lines, or comes through a pipe.)
read_process() {
    local -a lines=() fields
    local stat
    # The name may hold any character, so all is read, and what counts begins after the last ')'.
    { mapfile lines <"/proc/$1/stat"; } 2>/dev/null || return 1
    stat=${lines[*]}
    [[ $stat ]] || return 1
    # shellcheck disable=SC2206 # a list of numbers
    fields=(${stat##*) })
    PROCESS_STATE=${fields[0]} PROCESS_PARENT=${fields[1]} PROCESS_START=${fields[19]}
}

# same_process PID START: a pid alone may belong to somebody else by now. A zombie is gone:
# only its parent, which may be anybody, can remove it.
same_process() {
    read_process "$1" && [[ $PROCESS_START == "$2" && $PROCESS_STATE != [ZX] ]]
}

# start_daemon NAME COMMAND...: in a session, directory and environment of its own. Until its pid
# is recorded it is a job of this shell, so an interrupted up knows all that it started.
start_daemon() {
    local name=$1
    shift
    (
        trap - EXIT INT TERM HUP
        [[ -z ${LOCK_FD:-} ]] || exec {LOCK_FD}>&-
        exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- # of whoever has called us, and may wait for their end
        cd /
        exec setsid env -i PATH="$PATH" LC_ALL=C SLURM_CONF="$CONF" "${DAEMON_ENV[@]}" "$@" \
            </dev/null >>"$DIR/log/$name.out" 2>&1
    ) &
    if read_process "$!"; then
        printf '%s %s %s\n' "$name" "$!" "$PROCESS_START" >>"$PIDS"
    fi
    disown "$!" 2>/dev/null || true # it may have ended already
}
DAEMON_ENV=()

# daemon_alive NAME
daemon_alive() {
    local name pid start
    [[ -r $PIDS ]] || return 1
    while read -r name pid start; do
        if [[ $name == "$1" ]] && same_process "$pid" "$start"; then
            return 0
        fi
    done <"$PIDS"
    return 1
}

# Prints "NAME PID START" of each daemon of ours that lives.
living_daemons() {
    local name pid start
    [[ -r $PIDS ]] || return 0
    while read -r name pid start; do
        if same_process "$pid" "$start"; then
            printf '%s %s %s\n' "$name" "$pid" "$start"
        fi
    done <"$PIDS"
}

no_daemon_alive() {
    [[ -z $(living_daemons) ]]
}

# signal_daemons SIGNAL
signal_daemons() {
    local name pid start
    while read -r name pid start; do
        kill -s "$1" "$pid" 2>/dev/null || true
    done < <(living_daemons)
}

# Prints the pids of all job processes of this cluster: the slurmstepds (and helpers of daemons that
# were killed), which have its log open, everything below them, and what has left that tree but carries the environment of one of its
# jobs. Clients (srun, salloc, sbatch --wait) that would wait for a dead cluster count as well.
job_processes() {
    local name pid start exe
    local -A parent=() ours=() spared=()
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        if read_process "$pid" && [[ $PROCESS_STATE != [ZX] ]]; then
            parent[$pid]=$PROCESS_PARENT
        fi
    done
    for ((pid = BASHPID; pid > 1; pid = ${parent[$pid]:-0})); do
        spared[$pid]=1
    done
    while read -r name pid start; do
        spared[$pid]=1
    done < <(living_daemons)

    while read -r pid; do
        exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || continue
        if [[ ${exe##*/} =~ ^(slurm|munged|mariadbd) ]]; then
            ours[$pid]=1
        fi
    done < <(find /proc/[0-9]*/fd -maxdepth 1 -lname "$DIR/*" 2>/dev/null | cut -d/ -f3 | sort -u)
    while IFS=/ read -r _ _ pid _; do
        exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || continue
        if [[ ${exe##*/} =~ ^(srun|salloc|sbatch|sattach)$ ]] ||
            grep -qzE '^SLURMD_NODENAME=' "/proc/$pid/environ" 2>/dev/null; then
            ours[$pid]=1
        fi
    done < <(grep -lzxF -e "SLURM_CONF=$CONF" /proc/[0-9]*/environ 2>/dev/null)

    while read -r pid; do
        ours[$pid]=1
    done < <(group_processes)

    local grown=yes
    while [[ $grown == yes ]]; do
        grown=no
        for pid in "${!parent[@]}"; do
            if [[ -z ${ours[$pid]:-} && -n ${ours[${parent[$pid]}]:-} ]]; then
                ours[$pid]=1 grown=yes
            fi
        done
    done
    for pid in "${!ours[@]}"; do
        [[ -n ${spared[$pid]:-} || -z ${parent[$pid]:-} ]] || printf '%s\n' "$pid"
    done
}

# Kills until nothing is found any more: a process may fork between the look and the signal.
kill_job_processes() {
    local round pids
    for ((round = 0; round < 50; round++)); do
        mapfile -t pids < <(job_processes)
        ((${#pids[@]})) || return 0
        thaw_groups
        kill -s KILL "${pids[@]}" 2>/dev/null || true
        sleep 0.05
    done
    return 1
}
