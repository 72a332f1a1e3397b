# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers of all system tests. Load with: load helpers
# shellcheck shell=bash
#
# A file brings its testbed up in setup_file and takes it down in teardown_file:
#
#     setup_file()    { testbed_up --nodes 8; }
#     teardown_file() { testbed_down; }
#
#     @test "a job runs" {
#         id=$(submit -N2 script.sh)
#         wait_for 10 job_is "$id" COMPLETED
#     }
#
# TB_DIR is the testbed's directory, TB_USER the ordinary user, TB_WORK a directory of that user
# where as_user and submit run and where jobs write. Jobs never run as the user of the test.

bats_require_minimum_version 1.8.0

TREE=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd -P)
TESTBED=$TREE/scripts/testbed

# What trainings run with. scripts/check sets it to another interpreter for some files, which then has
# another version of PyTorch.
export PYTHON=${PYTHON:-/usr/bin/python3}

# A test that hangs fails. A file with longer tests sets its own limit before it loads this one.
# A test that passes does not get near it, however slow the machine is.
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-900}

# After a test that has failed, bats 1.13 does not know any more which process counts its time, and waits
# for the end of that time. This process is the first that a test has in the background.
if [[ $BATS_VERSION =~ ^1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= 13)); then
    bats_abort_timeout_countdown() { kill "${BATS_killer_pid:-$(jobs -p %1)}" 2>/dev/null || true; }
fi

# A pipe for wait_for. It is made here, before a test has anything in the background: it changes $!.
exec {WAIT_FD}<> <(:)

# testbed_up OPTION...: starts the file's testbed; the options are those of scripts/testbed up.
# Exports TB_DIR, TB_USER, TB_WORK. scripts/check names the installation ($prefix) and, when it is
# run by root, may name the ordinary user ($ELASTIC_TEST_USER). The form is the realistic one where the machine allows it:
# nodes and jobs have a /tmp of their own, so TMPDIR must lie elsewhere. ELASTIC_TESTBED=--simple gives every file the
# simple form, ELASTIC_TESTBED=--real fails where the realistic one is not possible. ELASTIC_SLURM=PREFIX is the Slurm of all
# testbeds, where it is not the one that PATH finds.
testbed_up() {
    local -a options=()
    [[ -z ${ELASTIC_TESTBED:-} ]] || options+=("$ELASTIC_TESTBED")
    [[ ! -d ${prefix:-} ]] || options+=(--prefix "$prefix")
    ((UID)) || [[ -z ${ELASTIC_TEST_USER:-} ]] || options+=(--user "$ELASTIC_TEST_USER")
    TB_HOME=$(mktemp -d "${TMPDIR:-/var/tmp}/elastic-test.XXXXXX")
    TB_DIR=$TB_HOME/testbed TB_WORK=$TB_HOME/work
    export TB_HOME TB_DIR TB_WORK TB_USER
    chmod 0755 "$TB_HOME"
    mkdir "$TB_WORK"
    "$TESTBED" up --dir "$TB_DIR" "${options[@]}" "$@" || return 1
    know_testbed || return 1
    chown "$TB_USER" "$TB_WORK"
}

# know_testbed: what all functions below need to know of a testbed that is up. faults_up (faults.bash) does not ask for it.
know_testbed() {
    TB_ENV=$("$TESTBED" env --dir "$TB_DIR") TB_ENV_OF=$TB_DIR
    export TB_ENV TB_ENV_OF
    TB_USER=$(eval "$TB_ENV" && printf '%s' "$TESTBED_USER")
    if [[ $TB_USER == root ]]; then
        echo "no ordinary user: scripts/setup makes one" >&2
        return 1
    fi
    hasty_python
    know_user
    [[ $(type -t know_json) != function ]] || know_json
}

# What the Python of jobs does first. TRUE_LIBRARIES=yes: PyTorch has all libraries that it asks for.
# It imports all modules at once, too.
hasty_python() {
    local libraries=${top_builddir:-$TREE/build}/tests/libraries
    mkdir "$TB_HOME/python"
    cp "$TREE/tests/python/first/sitecustomize.py" "$TB_HOME/python/"
    if [[ -z ${TRUE_LIBRARIES:-} ]]; then
        [[ -d $libraries ]] || /usr/bin/python3 "$TREE/tests/python/first/sitecustomize.py" "$libraries"
        cp -r "$libraries" "$TB_HOME/python/"
    fi
    chmod -R a+rX "$TB_HOME/python"
}

# Processes that Slurm ends have a minute to say and save what they should, not ten seconds.
long_kill_wait() {
    sed -i 's/^KillWait=.*/KillWait=60/' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
}

# slurm_at_least YEAR.MONTH[.MICRO]: whether the testbed's Slurm is that or later. What tests expect of
# some versions only asks this.
slurm_at_least() { [[ $(printf '%s\n' "$1" "$(slurm_version)" | sort -V | head -n 1) == "$1" ]]; }

# slurm_is YEAR.MONTH: whether it is of that release.
slurm_is() { [[ $(slurm_version) == "$1".* ]]; }

slurm_version() { on_testbed sinfo -V | sed 's/.* //'; } # slurm-wlm 22.05.8, slurm 24.11.5

# Skips a test that needs the realistic form where the machine has only the simple one.
need_real_form() {
    local why
    why=$(take_testbed_env && printf '%s' "$TESTBED_SIMPLE")
    [[ -z $why ]] || skip "simple form: $why"
}

# has_plugin NAME: whether this plugin of slurmctld was built, which takes Slurm's source.
has_plugin() {
    local top=${prefix:-$TREE/build/inst}
    compgen -G "$top/lib*/slurm*/$1.so" >/dev/null || compgen -G "$top/lib*/*/slurm*/$1.so" >/dev/null
}

# Skips a test that needs it. A file of such tests has this as its setup, and no testbed without it.
need_plugin() { has_plugin "$1" || skip "no $1.so: it is built with Slurm's source"; }

# has_database: whether slurmdbd has its database. Without MariaDB's headers a Slurm from source is made without that part.
has_database() {
    [[ -z ${ELASTIC_SLURM:-} ]] || compgen -G "$ELASTIC_SLURM/lib*/slurm/accounting_storage_mysql.so" >/dev/null
}

need_database() { has_database || skip "this Slurm has no accounting_storage_mysql.so: it was made without libmariadb-dev"; }

# Takes down whatever testbed_up began.
testbed_down() {
    [[ ! ${JSON_PID:-} ]] || kill -KILL "$JSON_PID" 2>/dev/null || true
    [[ ! -e ${TB_DIR:-/nonexistent} ]] || "$TESTBED" down --dir "$TB_DIR"
    [[ -z ${TB_HOME:-} ]] || rm -rf -- "$TB_HOME"
}

# take_testbed_env: what "scripts/testbed env" says; for the file's own testbed without asking again.
take_testbed_env() {
    if [[ ${TB_ENV_OF:-} == "$TB_DIR" ]]; then
        eval "$TB_ENV"
    else
        eval "$("$TESTBED" env --dir "$TB_DIR")"
    fi
}

# on_testbed PROGRAM...: runs it as the user of the test (root, if that is root), with the
# testbed's environment.
on_testbed() {
    (
        trap - DEBUG
        take_testbed_env
        exec "$@"
    )
}

# as_user COMMAND...: runs it in TB_WORK as the ordinary user, with the environment that this one
# has after login and eval of "scripts/testbed env". Leading NAME=VALUE words are added to it.
# It is called while tests wait, again and again: it must be cheap.
as_user() {
    (
        trap - DEBUG
        cd "$TB_WORK" || exit 1
        PATH=/usr/local/bin:/usr/bin:/bin
        unset LD_LIBRARY_PATH PYTHONPATH
        take_testbed_env
        # shellcheck disable=SC2086 # a list of words
        exec "$TB_BECOME" $TB_AS HOME="$TB_USER_HOME" SHELL="$TB_USER_SHELL" USER="$TB_USER" \
            LOGNAME="$TB_USER" LANG=C.UTF-8 PATH="$PATH" SLURM_CONF="$SLURM_CONF" \
            ELASTIC_CONF="$ELASTIC_CONF" \
            ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} \
            PYTHONPATH="$TB_HOME/python${PYTHONPATH:+:$PYTHONPATH}" ${USE_LIBUV:+USE_LIBUV="$USE_LIBUV"} \
            ${PYTORCH_DISABLE_LIBRARY:+PYTORCH_DISABLE_LIBRARY="$PYTORCH_DISABLE_LIBRARY"} "$@"
    )
}

# What as_user needs to know of the ordinary user: TB_AS is his number, his group, and other groups.
know_user() {
    local torch
    TB_AS="- - -"
    if [[ $(id -un) != "$TB_USER" ]]; then
        TB_AS="$(id -u "$TB_USER") $(id -g "$TB_USER") $(id -G "$TB_USER" | tr ' ' ,)"
    fi
    TB_BECOME=${top_builddir:-$TREE/build}/tests/system/become
    if [[ ! -x $TB_BECOME ]]; then
        # The tests' programs are not built.
        TB_BECOME=$TB_HOME/become
        # shellcheck disable=SC2016 # the other shell's
        printf '#!/bin/sh\n%s\n%s\n' 'user=$1 group=$2 groups=$3; shift 3; [ "$user" != - ] || exec env -i "$@"
case $groups in none) groups=--clear-groups ;; *) groups=--groups=$groups ;; esac' \
            'exec setpriv --reuid="$user" --regid="$group" "$groups" -- env -i "$@"' >"$TB_BECOME"
        chmod 0755 "$TB_BECOME"
    fi
    IFS=: read -r _ _ _ _ _ TB_USER_HOME TB_USER_SHELL < <(getent passwd "$TB_USER")
    export TB_BECOME TB_AS TB_USER_HOME TB_USER_SHELL
    # shellcheck disable=SC2016 # dpkg-query's own field
    torch=$(dpkg-query -W -f '${Version}' python3-torch 2>/dev/null) || true
    # Debian builds PyTorch 2 without libuv, and it wants to use it if nobody says that it must not.
    [[ $torch != 2.* ]] || export USE_LIBUV=0
    # A tenth of the import of PyTorch 1.13 is what it computes with tensors that have no data. No training here has some.
    [[ $PYTHON != /usr/bin/python3 || $torch != 1.* ]] || export PYTORCH_DISABLE_LIBRARY=1
}

# submit SBATCH-ARGUMENT...: as the ordinary user; prints the job id. Output goes to
# TB_WORK/JOBID.out unless -o says otherwise.
submit() {
    local answer
    local -a base
    mapfile -t base < <(nodes_of_base "$@")
    answer=$(as_user sbatch --parsable --output="$TB_WORK/%j.out" "${base[@]}" "$@") || return 1
    printf '%s\n' "${answer%%;*}"
}

# Without job_submit/elastic it is the user who gives the base its MIN nodes. Options that follow win.
nodes_of_base() {
    local argument
    ! has_plugin job_submit_elastic || return 0
    for argument; do
        [[ ! $argument =~ ^--elastic=([0-9]+) ]] || printf -- '-N%d\n' "${BASH_REMATCH[1]}"
    done
}

# script FILE <<EOF: writes an executable file into TB_WORK and prints its path.
script() {
    cat >"$TB_WORK/$1"
    chmod 0755 "$TB_WORK/$1"
    printf '%s\n' "$TB_WORK/$1"
}

# job_state ID: prints its state as Slurm spells it, GONE if slurmctld has forgotten it.
job_state() {
    local state
    state=$(on_testbed scontrol --oneliner show job "$1" 2>/dev/null) || state=
    state=${state#*JobState=} state=${state%% *}
    printf '%s\n' "${state:-GONE}"
}

# job_field ID FIELD: prints one field of scontrol show job, such as NodeList or StartTime.
job_field() {
    local job
    job=" $(on_testbed scontrol --oneliner show job "$1")" || job=
    [[ $job != *" $2="* ]] || {
        job=${job#*" $2="}
        printf '%s\n' "${job%% *}"
    }
}

# job_nodes ID: a line each.
job_nodes() { on_testbed scontrol show hostnames "$(job_field "$1" NodeList)"; }

# job_is ID STATE...: whether the job is in one of these states.
job_is() {
    local want
    JOB_STATE=$(job_state "$1")
    shift
    for want; do
        [[ $JOB_STATE != "$want" ]] || return 0
    done
    return 1
}

# job_ended ID: whether it is over, well or not.
job_ended() {
    ! job_is "$1" PENDING CONFIGURING RUNNING COMPLETING SUSPENDED REQUEUED
}

# job_processes ID [NODE]: prints the pids of that job's processes, on that node if one is named.
job_processes() { processes_with "SLURM_JOB_ID=$1" ${2:+"SLURMD_NODENAME=$2"}; }

# processes_with NAME=VALUE...: prints the pids of this testbed's processes that have all this in their environment. Each look at an
# environment costs, so there is one at each.
processes_with() {
    local pid
    local -a marks=("SLURM_CONF=$TB_DIR/etc/slurm.conf" "$@")
    local -A found=()
    while IFS=/ read -r -d '' _ _ pid _; do
        found[$pid]+=x
        if ((${#found[$pid]} == ${#marks[@]})); then
            printf '%s\n' "$pid"
        fi
    done < <(grep -HszxF "${marks[@]/#/--regexp=}" /proc/[0-9]*/environ)
}

# nodes_are COUNT STATE: whether so many nodes are in that state (idle, allocated, mixed, ...).
nodes_are() {
    [[ $(on_testbed sinfo -h -p batch -t "$2" -o '%D') == "$1" ]] ||
        [[ $1 == 0 && -z $(on_testbed sinfo -h -p batch -t "$2" -o '%D') ]]
}

# free_port: prints one that nobody has. The kernel gives it to no client, which could take it in
# between; testbeds, leaders and replicas have other ones.
free_port() {
    /usr/bin/python3 -I -S -c '
import random, socket
while True:
    port = random.randrange(28100, 32700)
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        continue
    print(port)
    break'
}

# says FILE PATTERN: whether a line of the file matches the extended regular expression.
says() {
    [[ -e $1 ]] && grep -qE -- "$2" "$1"
}

# no_jobs: whether nothing is queued, running or completing.
no_jobs() {
    [[ -z $(on_testbed squeue -h) ]]
}

# cancel_all: ends all jobs and waits until the nodes are free again; for teardown.
cancel_all() {
    on_testbed squeue -h -o %A | on_testbed xargs -r scancel --quiet
    wait_for 30 no_jobs
}

# Prints what the cluster is doing, for the log of a test that failed.
show_cluster() {
    [[ -e ${TB_DIR:-/nonexistent}/etc/slurm.conf ]] || return 0
    on_testbed squeue -o '%.6i %.9P %.3t %.8M %.3D %.12R %.30k %S'
    on_testbed sinfo -h -N -p batch -o '%N %T %E'
    grep -vE ' debug|sched: |_job_complete|backfill: beg' "$TB_DIR/log/slurmctld.log" | tail -n 12 | cut -c1-160
}

# wait_for SECONDS COMMAND...: runs the command again and again until it succeeds: after 0.1 s, or
# after four times as long as it has taken, or after a fifth of what it has waited, up to 0.8 s. So
# waiting leaves the machine to the processes that are waited for. The pause is the shell's own: nothing
# is ever written to WAIT_FD, and a "sleep" would cost a quarter of what a look does. Fails, and says what it
# waited for, when the time is over: three times as many seconds, because the machine may have other work.
wait_for() {
    local limit=$(($1 * 3)) begun=${EPOCHREALTIME/./} end took pause waited traced failed=0
    # What bats does before each command would be most of what waiting costs.
    traced=$(trap -p DEBUG)
    trap - DEBUG
    end=$((begun + limit * 1000000))
    shift
    until "$@"; do
        took=$((${EPOCHREALTIME/./} - begun))
        # A job that has failed, and that nothing begins again, will not complete.
        [[ $1 == job_is && ${*:3} == COMPLETED && $JOB_STATE == FAILED ]] && failed=$((failed + 1)) || failed=0
        if ((begun + took > end || failed > 10)); then
            eval "$traced"
            printf 'waited in vain, %s s at most, for: %s\n' "$limit" "$*" >&2
            show_cluster >&2
            return 1
        fi
        pause=$((took < 25000 ? 100000 : took < 200000 ? 4 * took : 800000))
        waited=$((begun - end + limit * 1000000))
        waited=$((waited < 4000000 ? waited / 5 : 800000))
        printf -v pause %06d $((waited > pause ? waited : pause))
        read -rt "0.$pause" -u "$WAIT_FD" || :
        begun=${EPOCHREALTIME/./}
    done
    eval "$traced"
}

# seconds_since T: T as EPOCHREALTIME gave it; prints whole seconds.
seconds_since() {
    printf '%d\n' $(((${EPOCHREALTIME/./} - ${1/./}) / 1000000))
}

# processes_of DIR: prints the ids of all processes that belong to the testbed in DIR: by their command
# line, their environment, or an open file; not the one who asks.
processes_of() {
    {
        grep -lzF -e "$1/" /proc/[0-9]*/cmdline
        grep -lzF -e "=$1/" /proc/[0-9]*/environ
        find /proc/[0-9]*/{fd,cwd,exe} -maxdepth 1 -lname "$1/*"
    } 2>/dev/null | cut -d/ -f3 | sort -un | while read -r pid; do
        [[ $pid == "$BASHPID" ]] || ps -o pid=,stat=,args= -p "$pid" | awk '$2 !~ /^Z/'
    done
}

# starts_again ID: a requeued job waits two minutes unless it is told not to. It is told now and then
# only: each time Slurm looks at it anew; and not at once: a node that has only just become free refuses
# the job. True once it runs again, or has ended.
starts_again() {
    if [[ $(job_field "$1" Restarts) == 1 ]] && job_is "$1" PENDING && ((SECONDS >= ${ASKED:=$((SECONDS - 2))} + 4)); then
        on_testbed scontrol update jobid="$1" starttime=now
        ASKED=$SECONDS
    fi
    [[ $(job_field "$1" Restarts) == 1 ]] && job_is "$1" RUNNING COMPLETED FAILED
}
