#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What a fit consists of is killed at each step that is persisted, in both modes: it ends as it would have. This is a sample with
# each step, and each victim, of both modes. All pairs: scripts/soak --fit
# Takes 120 s

load helpers
load elastic
load roles
load serve
load fit

setup_file() {
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    export SERVICE=fk$$ TRAINER=tk$$ # services outlive jobs and testbeds
    testbed_up --nodes 4 --cpus-per-node 8
    gcc -O1 -Wall -Wextra -shared -fPIC -o "$TB_WORK/fit_stop.so" "$TREE/tests/system/fit_stop.c"
    chmod 0755 "$TB_WORK/fit_stop.so"
    fit_file fit 2 'within: {start: 600s, fit: 600s, target: 600s}'
    as_user sh -c 'mkdir first && printf 0 >first/model && selastic states push models/m first'
    begin_trainer -w n4
    begin_job
}

setup() {
    away='' crashed='' job=$(<"$TB_WORK/job")
    rm -f "$TB_WORK"/stop*
}

teardown() {
    job=$(<"$TB_WORK/job")
    [[ -z $away ]] || "$TESTBED" start-controller --dir "$TB_DIR"
    [[ $BATS_TEST_COMPLETED ]] || {
        tail -v -n 40 "$TB_WORK/$job.out" "$TB_HOME"/other/*.out
        as_user selastic fit show "$SERVICE"
    }
    [[ -z $crashed && $BATS_TEST_COMPLETED ]] || another_job
}

teardown_file() {
    on_testbed scancel --user=nobody || true
    end_service
    testbed_down
}

# begin_job: the next job of the service.
begin_job() {
    submit -N2 --exclusive --open-mode=append -t 60 --wrap "export FIT_STOP=$TB_WORK/stop LD_PRELOAD=$TB_WORK/fit_stop.so
        exec srun elasticrun --roles=$TB_WORK/fit.yaml" >"$TB_WORK/job"
    job=$(<"$TB_WORK/job")
}

# Of the one that there is, something is lost. It cannot say that it has ended: the next one would wait for 40 s.
another_job() {
    as_user scancel "$job"
    # Slurm waits for a node that it has not given up.
    [[ -z $crashed ]] || "$TESTBED" boot --dir "$TB_DIR" "$crashed"
    crashed=
    wait_for 60 job_ended "$job"
    as_user sh -c "sed -i 's/\"ended\":false/\"ended\":true/' ~/.slurm-elastic/services/$SERVICE/leader.json"
    begin_job
}

# ---- the victims -----------------------------------------------------------------------------------

# stopped: the runner stands at its step. $runner is its number.
stopped() {
    [[ -s $TB_WORK/stop.at ]] && runner=$(<"$TB_WORK/stop.at") && [[ $(ps -o stat= -p "$runner") == T* ]]
}

# kill_VICTIM ACTION [NEXT]: at that action. If another kill follows, no runner of before goes on: it might come there.

kill_runner() { kill -KILL "$runner"; }

# kill_both [PROCESS...]: the runner, and its leader before that one starts it again. In this order: the kernel has a stopped process
# go on when its parent has ended.
kill_both() {
    # shellcheck disable=SC2046 # ps puts blanks before it
    kill -KILL "$runner" $(ps -o ppid= -p "$runner") "$@" 2>/dev/null || true
}

# What stood at its step goes on, if it can: as a process that has been slow.
goes_on() { kill -CONT "$runner" 2>/dev/null || true; }

# Its parent, which is started again.
kill_leader() {
    if [[ ${2:-} ]]; then
        kill_both
        return
    fi
    # shellcheck disable=SC2046
    kill -KILL $(ps -o ppid= -p "$runner")
    goes_on
}

# The leader's and the runner's.
kill_node() {
    crashed=$(tr '\0' '\n' <"/proc/$runner/environ" | sed -n 's/^SLURMD_NODENAME=//p')
    kill_both
    "$TESTBED" crash --dir "$TB_DIR" "$crashed"
}

# It comes back when the fit has come to another action, or does not.
kill_slurmctld() {
    have_written_down "$job"
    kill -KILL "$("$TESTBED" status --dir "$TB_DIR" | awk '$1 == "slurmctld" { print $2 }')"
    away=yes
    goes_on
    for ((i = 0; i < 20; i++)); do
        acts "$1" || break
        sleep 0.1
    done
    "$TESTBED" start-controller --dir "$TB_DIR"
    away=
}

# All that runs of it, with no time to clean up.
kill_job() {
    mapfile -t pids < <(job_processes "$job")
    kill_both "${pids[@]}"
    another_job
}

# By the user. No other kill can follow.
cancel_job() {
    as_user scancel "$job"
    goes_on
    another_job
}

# ---- a fit -----------------------------------------------------------------------------------------

# served: as many replicas as there should be have the current state.
served() { serves_all "$(current)" 2; }

# kills MODE END [ACTION:VICTIM]...: a fit in which they are killed, in this order. END is well, fails (the training does) or broken
# (no server takes the new state).
kills() {
    local mode=$1 end=$2 kill action now before='' path='INITIAL > WAIT_FOR_START > WAIT_FOR_FIT' options=()
    shift 2
    if [[ $mode == multi ]]; then
        options=("--trainer=$TRAINER@nobody")
        path='INITIAL > WAIT_FOR_TRAINING_CONTAINER > WAIT_FOR_FIT'
        [[ $end == fails ]] || path+=' > WAIT_FOR_TARGET_CONTAINER'
    fi
    wait_for 60 runs_it
    wait_for 60 served
    before=$(current)
    was=$(as_user cat "$TB_WORK/models/m/$before/model")
    secret_data first "$BATS_TEST_NUMBER" "${end%s}"
    stop_at "$1"
    begin first "${options[@]}"
    for kill; do
        wait_for 60 stopped
        rm "$TB_WORK/stop.at"
        action=${kill%:*}
        echo "killing $kill"
        stop_at "${2:-}"
        shift
        case ${kill#*:} in
        cancel) cancel_job ;;
        *) "kill_${kill#*:}" "$action" "${1:-}" ;;
        esac
    done
    wait_for 120 has_ended
    now=$(current)
    if [[ $end == well ]]; then
        ended_as SUCCESS
        [[ $(path_of) == "$path > SUCCESS" && $now != "$before" ]]
        [[ $(as_user cat "$TB_WORK/models/m/$now/model") == "$was $BATS_TEST_NUMBER" ]]
    else
        ended_as FAILED
        [[ $(path_of) == "$path > FAILED" && $now == "$before" ]]
    fi
    # How many replicas there are is recorded before the first one is replaced.
    [[ $end == fails || $(fit_json | json_value 's["count"]') == 2 ]]
    wait_for 60 served
    nothing_is_left
}

# stop_at ACTION:VICTIM: there the runner stops next. Without a word nowhere.
stop_at() { [[ ! $1 ]] || as_user sh -c 'echo "$1" >"$2/stop.new" && mv "$2/stop.new" "$2/stop"' sh "${1%:*}" "$TB_WORK"; }

has_ended() { [[ $(fit_json 2>/dev/null | json_value 's["status"]') == [SFC][UA][CIN]* ]]; }

# No access, no partial state, no replica that trains; the state that counts is complete.
nothing_is_left() {
    [[ $(partials) == 0 && -z $(find "$TB_WORK/models" -name '.incoming*') ]]
    [[ -z $(as_user sh -c "find ~/.slurm-elastic/services/$SERVICE/fits -name '*grant*.json'") ]]
    as_user selastic states show "$TB_WORK/models/m" --verify
    wait_for 30 trains_nobody
    wait_for 30 trainer_is_free
    all_closed
}

# ---- the sample ------------------------------------------------------------------------------------

@test "single, well: each step" {
    kills single well prepare:slurmctld dedicate:leader stage:runner fit:node complete:runner \
        end-replica:slurmctld count:job point:leader replace:runner nothing:runner
}

@test "single, fails: discard:runner end-replica:cancel" { kills single fails discard:runner end-replica:cancel; }
@test "single, broken: point-back:leader restore:slurmctld" { kills single broken point-back:leader restore:slurmctld; }

@test "multi, well: each step" {
    kills multi well prepare:leader ensure:runner stage:slurmctld grant:node fit:runner complete:slurmctld \
        count:runner point:job replace:leader revoke:slurmctld nothing:runner
}

@test "multi, fails: revoke:job discard:leader" { kills multi fails revoke:job discard:leader; }
@test "multi, broken: revoke:runner point-back:slurmctld restore:cancel" { kills multi broken revoke:runner point-back:slurmctld restore:cancel; }
