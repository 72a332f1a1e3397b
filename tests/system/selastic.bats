#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# selastic on a Slurm without plugins. The leaders of these jobs are played by fake_leader, which gives the answers of
# tests/unit/selastic; how selastic works with a real one is in main_path.bats.
# Takes 130 s

bats_require_minimum_version 1.5.0
load helpers
load elastic

setup_file() {
    testbed_up --nodes 4 --stock
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/fake_leader" "$TB_WORK/"
    cd "$TREE/tests/unit/selastic" || return 1
    answers state-growing.json history.json >"$TB_WORK/good.json"
    echo '{"history": {"t": "history", "generations": null}}' >"$TB_WORK/short.json"
    answers state-hostile.json history.json "$(printf 'no: \033[31m\007')" >"$TB_WORK/hostile.json"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# answers STATE HISTORY [REFUSAL]: what the leader shall say.
answers() {
    /usr/bin/python3 - "$@" <<'PYTHON'
import json, sys
resize = {"t": "done", "message": "job 12: grows, as nodes become free, to 6 nodes"}
if len(sys.argv) > 3:
    resize = {"t": "error", "message": sys.argv[3]}
state, history = (json.load(open(name)) for name in sys.argv[1:3])
scale = [{"t": "done", "message": "job 12: collector: 8 replicas (was 4)"}, {"t": "error", "message": "rollout: MIN is 0"}]
fail = {"t": "done", "message": "job 12: collector-3 is replaced"}
roles = json.load(open("roles.json" if len(sys.argv) == 3 else "roles-hostile.json"))
json.dump({"show": state, "history": history, "resize": resize, "roles": roles, "scale": scale, "fail": fail}, sys.stdout)
PYTHON
}

# lead ANSWERS MODE [SBATCH-OPTION...]: a job with such a leader; prints its id once the leader is there.
lead() {
    local job
    job=$(submit "${@:3}" --wrap "exec srun -n1 ${SRUN_OPTIONS:-} $TB_WORK/fake_leader $TB_WORK/$1.json $2")
    wait_for 20 says "$TB_WORK/$job.out" '^listening' && printf '%s\n' "$job"
}

# A job that ends when FILE appears.
until_exists() { submit "${@:2}" --wrap "until [ -e $1 ]; do sleep 0.1; done"; }

# same FILE: the output is what the file of tests/unit/selastic has.
same() { diff <(printf '%s\n' "$output") <(printf '%s\n' "$(cat "$TREE/tests/unit/selastic/$1")"); }

# harmless: the output has no control characters but newlines.
harmless() { ! LC_ALL=C grep -q '[[:cntrl:]]' <<<"$output"; }

# as_other COMMAND...: as a user that has no jobs.
as_other() { on_testbed setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"; }

# state_directory JOB: makes it, as the job's user; prints it.
state_directory() {
    local dir=$TB_DIR/jobs/$TB_USER-$1
    as_user mkdir -m 0700 -p "$dir" && printf '%s\n' "$dir"
}

# write_history JOB: what a leader leaves behind, with torn lines.
write_history() {
    local dir
    dir=$(state_directory "$1")
    # The file of the tree may be in a directory that the user cannot enter.
    as_user tee "$dir/history.jsonl" <"$TREE/tests/unit/selastic/history.jsonl" >/dev/null
}

@test "wrong usage is told in one line, with status 2" {
    run -2 as_user selastic
    [[ $output == "Usage: selastic COMMAND"* ]]
    for wrong in "frob" "list 12" "show" "show twelve" "resize 12" "resize 12 0" "show 12 --watch=0" "list --frob" \
        "scale 12 collector-2" "fail 12 collector" "endpoints 12 --format=yaml"; do
        # shellcheck disable=SC2086
        run -2 as_user selastic $wrong
        [[ ${#lines[@]} == 1 && $output == "selastic: "* ]]
    done
}

# old_directory NAME JOB: a state directory of that job, not changed in 40 days.
old_directory() {
    local dir=$TB_DIR/jobs/$1
    as_user mkdir -p "$dir/checkpoint"
    as_user tee "$dir/job.json" >/dev/null <<<"{\"cluster\": \"$(cluster)\", \"job\": $2, \"user\": \"$TB_USER\",
        \"restarts\": 0, \"submit\": 1, \"first_submit\": 1}"
    as_user ln -s / "$dir/checkpoint/latest"
    as_user find "$dir" -depth -exec touch -h -d '40 days ago' {} +
}

# actions: what `clean --json` says of each job.
actions() {
    /usr/bin/python3 -c '
import json, sys
print(";".join("{job} {action}".format(**entry) for entry in json.load(sys.stdin)["directories"]))'
}

cluster() { on_testbed scontrol show config | sed -n 's/^ClusterName *= *//p'; }

@test "clean removes what ended jobs have left, and nothing of a job that Slurm knows" {
    local jobs=$TB_DIR/jobs name=$TB_USER live
    live=$(until_exists "$TB_WORK/over")
    old_directory "$name-90001" 90001
    old_directory "$name-90002.old-20260301T120000" 90002
    old_directory "$name-$live" "$live"
    old_directory "$name-90003" 90003
    as_user touch "$jobs/$name-90003/checkpoint" # used a moment ago
    old_directory "$name-90004" 90004
    as_user rm "$jobs/$name-90004/job.json"
    as_user ln -s "$jobs/$name-$live" "$jobs/$name-90005"

    run -0 as_user selastic clean --dry-run --json
    echo "$output"
    run -0 actions <<<"$output"
    [[ $output == "$live kept;90001 would remove;90002 would remove;90003 kept;None kept" ]]
    [ -e "$jobs/$name-90001" ]

    run -0 as_user selastic clean
    echo "$output"
    [[ $output == *"Slurm knows job $live"* ]]
    [ ! -e "$jobs/$name-90001" ] && [ ! -e "$jobs/$name-90002.old-20260301T120000" ]
    [ -d "$jobs/$name-$live/checkpoint" ] && [ -d "$jobs/$name-90003" ] && [ -d "$jobs/$name-90004" ]
    [ -L "$jobs/$name-90005" ] && [ -d /usr ]
    as_user touch "$TB_WORK/over"
    as_user rm -r "$jobs/$name-90003" "$jobs/$name-90004" "$jobs/$name-90005" "$jobs/$name-$live"
}

@test "plan checks a job file, and says what of it fits on the nodes of a partition" {
    local file=$TB_WORK/rl.yaml cpus
    cpus=$(on_testbed sinfo -h -n n1 -p batch -o %c)
    as_user tee "$file" >/dev/null <<<"roles: {a: {leads: yes, run: [a]}, b: {run: [b], replicas: 4:9, cpus: $cpus}}"
    run -1 as_user selastic plan "$file" --partition=batch
    [[ $output == *$'\nb        4  9 wanted, and batch has no room for more\n'* ]]
    [[ $output == *$'\nwhat is guaranteed needs 5 nodes, and batch has 4' ]]
    as_user sed -i 's/4:9/3:9/' "$file"
    run -0 as_user selastic plan "$file" --partition=batch
    [ "${lines[-1]}" = "sbatch --elastic-roles=$file --partition=batch --nodes=4 --ntasks-per-node=1 --cpus-per-task=$cpus" ]
    run -1 as_user selastic plan "$file" --partition=none
    [ "$output" = "selastic: error: no partition 'none' that is up has nodes; sinfo lists them" ]
    as_user sed -i 's/cpus/cpu/' "$file"
    run -1 as_user selastic plan "$file"
    [[ ${#lines[@]} == 1 && $output == "selastic: error: $file:1:"*"did you mean 'cpus'?" ]]
}

@test "help and version" {
    run -0 as_user selastic --help
    for command in list top show resize history usage roles replicas scale fail endpoints clean plan; do
        [[ $output == *"$command"* ]]
        run -0 as_user selastic help "$command"
        [[ $output == "Usage: selastic $command"* ]]
        run -0 as_user selastic "$command" --help
        [[ $output == "Usage: selastic $command"* ]]
        run -0 as_user selastic help
    done
    run -0 as_user selastic --version
    [[ $output =~ ^selastic\ [0-9.]+\ \(Slurm\ [0-9.]+\)$ ]]
}

@test "a job that nobody knows" {
    run -1 as_user selastic show 999999
    [[ $output == "selastic: error: Slurm knows no job 999999"* && ${#lines[@]} == 1 ]]
    run -1 as_user selastic resize 999999 2
    run -1 as_user selastic history 999999
    [[ $output == "selastic: error: Slurm knows no job 999999 (any more), and there is no history to read ("*")" ]]
    ((${#lines[@]} == 1))
    run -1 as_user selastic logs 999999
    [[ $output == "selastic: error: Slurm knows no job 999999 (any more)" ]]
}

@test "a job that waits, and one that has ended" {
    job=$(submit --hold --wrap true)
    run -1 as_user selastic show "$job"
    [[ $output == *"job $job has not started yet (PENDING, JobHeldUser)" ]]
    job=$(submit --wrap true)
    wait_for 20 job_is "$job" COMPLETED
    run -1 as_user selastic show "$job"
    [[ $output == *"job $job has ended (COMPLETED); 'selastic history $job' shows what it did" ]]
}

@test "a job without elasticrun" {
    job=$(until_exists "$TB_WORK/never")
    wait_for 20 job_is "$job" RUNNING
    began=$EPOCHREALTIME
    run -1 as_user selastic show "$job"
    (($(seconds_since "$began") < 60))
    [[ $output == "selastic: error: job $job runs, but no elasticrun answers in it: "*"; its script starts one by 'srun elasticrun ...'" ]]
    ((${#lines[@]} == 1))
    run -0 as_user selastic list
    [[ ${#lines[@]} == 1 && $output == *JOBID*WHY* ]]
}

@test "show, as text and as JSON" {
    job=$(lead good answer)
    run -0 as_user selastic show "$job"
    [[ ${lines[0]} == "Job 12.0 (train) of ada: running, 4 nodes, 8 workers" ]]
    [[ $output == *"Why not more     extension job 17 (1 node) is powering up, 45 s"* ]]
    wait_for 10 says "$TB_WORK/$job.out" '^\{"t":"show",'
    as_user selastic show "$job" --json >"$TB_HOME/show.json"
    diff "$TB_HOME/show.json" <(cat "$TREE/tests/unit/selastic/state-growing.out.json" && echo)
}

@test "top shows the jobs, one of them and its history, until q" {
    job=$(lead good answer)
    install -m 0755 "$TREE/tests/system/terminal.py" "$TB_WORK/"
    run -0 as_user "$TB_WORK/terminal.py" selastic top --interval 2 <<STEPS
see jobs 1, nodes 4, pending extensions 0
press \\r
see Why not more
press h
see training paused
press \\e
see WAITS FOR
press q
STEPS
    run -1 as_user selastic top
    [[ $output == *"top needs a terminal; for programs there is 'selastic top --json'" ]]
}

@test "top --json prints a line at each look" {
    job=$(lead good answer)
    as_user timeout 60 selastic top --json --interval=2 | tee "$TB_HOME/looks" | grep -qm 1 '"steps_per_s": *[0-9]' || true
    [[ $(json_value '[(j["job"], j["size"], j["steps_per_s"]) for j in s["jobs"]]' <<<"$(head -n 1 "$TB_HOME/looks")") == "[($job, 4, None)]" ]]
    [[ $(json_value '[j["steps_per_s"] == 0 for j in s["jobs"]]' <<<"$(tail -n 1 "$TB_HOME/looks")") == "[True]" ]]
}

@test "resize sends what was asked, and prints the answer" {
    job=$(lead good answer)
    run -0 as_user selastic resize "$job" 6
    [[ $output == "job 12: grows, as nodes become free, to 6 nodes" ]]
    wait_for 10 says "$TB_WORK/$job.out" '^\{"t":"resize",.*"nodes":6[,}]'
    run -0 as_user selastic resize "$job" -2 --json
    [[ $output == *'"message":"job 12: grows, as nodes become free, to 6 nodes"'* ]]
    wait_for 10 says "$TB_WORK/$job.out" '^\{"t":"resize",.*"delta":-2[,}]'
    run -0 as_user selastic resize "$job" +1
    wait_for 10 says "$TB_WORK/$job.out" '^\{"t":"resize",.*"delta":1[,}]'
}

@test "roles, replicas and endpoints print what the leader says" {
    job=$(lead good "")
    run -0 as_user selastic roles "$job"
    [[ $output == "NAME "*$'\nlearner      world              1/2  1:2\n'* ]]
    run -0 as_user selastic roles "$job" --json
    same roles.out.json
    run -0 as_user selastic replicas "$job" rollout
    [[ $output == "NAME "*$'\nrollout-0  ready  '*"  gpu[07-08,10]  http=31001 master=31002 ..." ]]
    run -0 as_user selastic replicas "$job" rollout --json
    same replicas.out.json
    run -1 as_user selastic replicas "$job" server
    [ "$output" = "selastic: error: job 12 has no role 'server'; its roles: coordinator, learner, collector, rollout" ]
    for format in text:txt hosts:hosts haproxy:haproxy json:out.json prometheus:prometheus.json; do
        run -0 as_user selastic endpoints "$job" --format="${format%%:*}"
        same "endpoints.${format#*:}"
    done
    run -0 as_user selastic endpoints "$job" --json
    same endpoints.out.json
    run -0 as_user selastic endpoints "$job" --role=collector --format=hosts
    [ "$output" = $'10.0.0.1 collector-0\nfd00::2 collector-1' ]
    run -1 as_user selastic endpoints "$job" --role=server
    [[ $output == "selastic: error: job 12 has no role 'server'"* ]]
}

@test "scale and fail send what was asked; scale stops at the first change that is refused" {
    job=$(lead good "")
    run -1 as_user selastic scale "$job" collector=8 rollout=-2 collector=+1
    diff - <(echo "$output") <<'OUT'
job 12: collector: 8 replicas (was 4)
selastic: error: rollout=-2 (done before it: collector=8): rollout: MIN is 0
OUT
    run -1 as_user selastic scale "$job" collector=0
    [ "$output" = "selastic: error: rollout: MIN is 0" ]
    run -0 as_user selastic fail "$job" collector-3
    [ "$output" = "job 12: collector-3 is replaced" ]
    run -0 as_user selastic fail "$job" collector-3 --json
    [[ $output == *"\"job\":$job,"*'"message":"job 12: collector-3 is replaced"'* ]]
    all_are_there() { (($(grep -c '^{"t":"\(scale\|fail\)' "$TB_WORK/$job.out") == 5)); }
    wait_for 20 all_are_there
    diff - <(sed -n 's/"release.*"oldest":[0-9]*,//; /^{"t":"\(scale\|fail\)/p' "$TB_WORK/$job.out") <<'OUT'
{"t":"scale","role":"collector","count":8}
{"t":"scale","role":"rollout","delta":-2}
{"t":"scale","role":"collector","count":0}
{"t":"fail","replica":"collector-3"}
{"t":"fail","replica":"collector-3"}
OUT
}

@test "history of a running job, with a timeline" {
    job=$(lead good answer)
    run -0 as_user selastic history "$job" --timeline
    [[ ${lines[0]} == *GEN*TIME*KIND*PAUSE*REASON* ]]
    [[ $output == *"3 changes, training paused for 14 s in all."* ]]
    [[ $output == *$'\nn3 '*'|'* ]]
    run -0 as_user selastic history "$job" --json
    [[ $output == "{"*"\"job\":$job,"*'"generations":['*"Slurm preempts extension 13"* ]]
    # A leader that leaves it to its file: it is too long for a message, or others led before.
    job=$(lead short answer)
    write_history "$job"
    run -0 as_user selastic history "$job"
    [[ $output == *"3 changes, training paused for "* ]]
}

@test "list finds a running elastic job that nothing marks, and counts extensions" {
    job=$(lead good answer --job-name=train)
    run -0 as_user selastic list
    [[ ${#lines[@]} == 2 ]]
    [[ ${lines[1]} =~ ^\ *$job\ +train\ +$TB_USER\ +running\ +4\ +2:6\ +3\ +0\ +extension\ job\ 17 ]]
    extension=$(until_exists "$TB_WORK/never" --comment="elastic-extension-of=$job.0")
    held=$(submit --hold --comment="elastic-extension-of=$job.0" --wrap true)
    wait_for 20 job_is "$extension" RUNNING
    run -0 as_user selastic list --json
    /usr/bin/python3 -c '
import json, sys
(job,) = json.load(sys.stdin)["jobs"]
assert (job["pending"], job["running"], job["sizes"]) == (1, 1, "2:6"), job' <<<"$output"
    run -1 as_user selastic show "$held"
    [[ $output == *"job $held is an extension of job $job: name that one" ]]
}

@test "list shows a job whose leader is gone with what Slurm knows" {
    job=$(until_exists "$TB_WORK/never" -N2)
    extension=$(until_exists "$TB_WORK/never" --comment="elastic-extension-of=$job.0")
    wait_for 20 job_is "$job" RUNNING
    wait_for 20 job_is "$extension" RUNNING
    run -0 as_user selastic list
    [[ ${#lines[@]} == 2 ]]
    [[ ${lines[1]} =~ ^\ *$job\ +wrap\ +$TB_USER\ +RUNNING\ +3\ +-\ +-\ +0\ +no\ elasticrun\ answers$ ]]
}

@test "a leader on another than the first node is found" {
    job=$(submit -N3 --wrap "srun -N1 -n1 --relative=2 $TB_WORK/fake_leader $TB_WORK/good.json")
    wait_for 20 says "$TB_WORK/$job.out" '^listening'
    run -0 as_user selastic show "$job"
    [[ ${lines[0]} == "Job 12.0 (train) of ada"* ]]
}

@test "a hostile leader cannot move the terminal's cursor" {
    job=$(lead hostile answer)
    for command in "show $job" "show $job --json" "list" "list --json" "history $job --timeline" "roles $job" \
        "replicas $job" "replicas $job --json" "endpoints $job"; do
        # shellcheck disable=SC2086
        run -0 as_user selastic $command
        harmless
    done
    run -1 as_user selastic resize "$job" 3
    harmless
    [[ $output == "selastic: error: no: "* ]]
}

@test "a leader that does not answer, or breaks off" {
    job=$(lead good silent)
    began=$EPOCHREALTIME
    run -1 as_user selastic show "$job"
    [[ $output == *"the leader is there, but does not answer"* && ${#lines[@]} == 1 ]]
    (($(seconds_since "$began") < 60))
    scancel_and_wait "$job"
    job=$(lead good break)
    run -1 as_user selastic show "$job"
    [[ $output == *"job $job runs, but no elasticrun answers in it"* && ${#lines[@]} == 1 ]]
}

scancel_and_wait() {
    as_user scancel "$1"
    wait_for 20 job_ended "$1"
}

@test "another user's job: root may ask, others may not" {
    [[ $(id -u) == 0 ]] || skip "only root can be two users"
    job=$(lead good answer)
    if grep -q ^PrivateData= "$TB_DIR/etc/slurm.conf"; then
        run -1 as_other selastic show "$job"
        [[ $output == "selastic: error: Slurm knows no job $job "* && ${#lines[@]} == 1 ]]
        sed -i '/^PrivateData=/d' "$TB_DIR/etc/slurm.conf"
        on_testbed scontrol reconfigure
    fi
    for command in "show $job" "resize $job 3" "history $job"; do
        # shellcheck disable=SC2086
        run -1 as_other selastic $command
        [[ $output == "selastic: error: not permitted: job $job belongs to $TB_USER" ]]
        # shellcheck disable=SC2086
        run -0 on_testbed selastic $command
    done
    run -0 as_other selastic list
    [[ ${#lines[@]} == 1 ]]
    run -0 as_other selastic list --all
    [[ ${#lines[@]} == 1 ]]
    run -0 on_testbed selastic list --all
    [[ ${lines[1]} == *"$TB_USER"* ]]
}

@test "a slurmctld that does not answer" {
    pid=$(cat "$TB_DIR/state/slurmctld.pid")
    kill -STOP "$pid"
    began=$EPOCHREALTIME
    run as_user selastic list
    took=$(seconds_since "$began")
    kill -CONT "$pid"
    [[ $status == 1 && $output == *"Slurm did not answer within 5 s"* ]]
    ((took >= 4 && took < 60))
    wait_for 20 as_user squeue
}

@test "a munged that does not answer" {
    pid=$(cat "$TB_DIR/munge/pid")
    kill -STOP "$pid"
    run as_user selastic list
    kill -CONT "$pid"
    [[ $status == 1 && $output == *"selastic: "*"did not answer within 5 s"* ]]
}

@test "--watch looks again until the job has ended" {
    job=$(lead good answer)
    (as_user selastic show "$job" --watch=0.5 --json >"$TB_HOME/watch.out" 2>"$TB_HOME/watch.err" && status=0 || status=$?
        echo "$status" >"$TB_HOME/watch.status") &
    wait_for 20 eval '(($(wc -l <"$TB_HOME/watch.out") >= 2))'
    as_user scancel "$job"
    wait_for 20 test -s "$TB_HOME/watch.status"
    [[ $(cat "$TB_HOME/watch.status") == 1 ]]
    says "$TB_HOME/watch.err" "^selastic: error: job $job (has ended|runs, but)"
    [[ $(sort -u "$TB_HOME/watch.out" | wc -l) == 1 ]]
}

# requests: how many slurmctld has got from the user since sdiag -r.
requests() {
    on_testbed sdiag | awk -v user="$TB_USER" '/^Remote Procedure Call statistics by user/ { ours = 1 }
        ours && $1 == user && match($0, /count:[0-9]+/) { print substr($0, RSTART + 6, RLENGTH - 6); exit }'
}

# asks JOB: how often its leader has been asked.
asks() { grep -c '"show"' "$TB_WORK/$1.out" || true; }

# asked TIMES JOB: … so often at least.
asked() { (($(asks "$2") >= $1)); }

@test "wait: what has come, the time, the end of the job; Slurm is asked only while no leader answers" {
    /usr/bin/python3 - <<PYTHON
import json
state = json.load(open("$TREE/tests/unit/selastic/state-growing.json"))
states = [dict(state, size=2)] * 3 + [dict(state, size=4, steps=9)]
json.dump({"show": states}, open("$TB_WORK/steps.json", "w"))
PYTHON
    job=$(lead steps answer)
    # The fourth answer has four nodes.
    on_testbed sdiag -r >/dev/null
    run -0 as_user selastic wait "$job" --size 4:5 --json
    [[ $(json_value 's["job"], s["outcome"], s["state"]["size"]' <<<"$output") == "$job reached 4" ]]
    wait_for 20 asked 4 "$job"
    [[ $(asks "$job") == 4 ]]
    before=$(requests)
    echo "# $before requests to slurmctld for one wait" >&3
    ((before <= 4))
    run -3 as_user selastic wait "$job" --step 10 --timeout 16
    [[ $output == "selastic: error: job $job: the time is over" ]]
    wait_for 20 asked 7 "$job"
    # … and the requests are those of the start only.
    (($(requests) <= 2 * before))
    run -0 as_user selastic wait "$job" --step 9 --state running
    [[ -z $output ]]
    run -1 as_user selastic wait "$job" --size 7
    [[ $output == "selastic: error: the job never has this size: it allows 2 to 6 nodes" ]]
    run -1 as_user selastic wait 999999 --ended
    [[ $output == *"Slurm knows no job 999999"* && ${#lines[@]} == 1 ]]
    run -1 as_other selastic wait "$job" --ended
    [[ ${#lines[@]} == 1 ]]

    # It goes on while slurmctld stands still.
    times=$(asks "$job")
    waits_beside step "$job" --step 10
    wait_for 20 asked "$((times + 1))" "$job"
    pid=$(cat "$TB_DIR/state/slurmctld.pid")
    kill -STOP "$pid"
    times=$(asks "$job")
    wait_for 20 asked "$((times + 3))" "$job"
    kill -CONT "$pid"
    times=$(asks "$job")
    waits_beside ended "$job" --ended
    wait_for 20 asked "$((times + 3))" "$job"
    as_user scancel "$job"
    wait_for 60 says "$TB_HOME/wait.step" '^status 4'
    says "$TB_HOME/wait.step" "^selastic: error: job $job: the job has ended before"
    wait_for 60 says "$TB_HOME/wait.ended" '^status 0'
    run -0 as_user selastic wait "$job" --ended
}

@test "wait: for a job that is pending, and a requeued one" {
    job=$(submit --hold --wrap "exec srun -n1 $TB_WORK/fake_leader $TB_WORK/good.json answer")
    run -0 as_user selastic wait "$job" --state pending
    run -3 as_user selastic wait "$job" --size 4 --timeout 1
    waits_beside start "$job" --size 4 --step 1234
    as_user scontrol release "$job"
    wait_for 60 says "$TB_HOME/wait.start" '^status 0'
    times=$(asks "$job")
    waits_beside pending "$job" --state pending
    wait_for 20 asked "$((times + 1))" "$job"
    as_user scontrol requeuehold "$job"
    wait_for 60 says "$TB_HOME/wait.pending" '^status 0'
}

@test "the history of a job that has ended comes from its files" {
    job=$(submit --wrap true)
    write_history "$job"
    wait_for 20 job_is "$job" COMPLETED
    run --separate-stderr -0 as_user selastic history "$job" --json
    [[ $stderr == "selastic: "*"skipped 8 lines that cannot be read"* ]]
    /usr/bin/python3 -c '
import json, sys
generations = json.load(sys.stdin)["generations"]
assert [g["size"] for g in generations] == [2, 4, 2, 2], generations
assert [g["pause"] for g in generations] == [0, 1.25, None, 2.5], generations' <<<"$output"
    run --separate-stderr -0 as_user selastic history "$job" --timeline
    [[ $output == *$'\nn1 '*'|'* ]]
    # Where Slurm has forgotten the job, and where it lies elsewhere.
    write_history 999999
    run -0 as_user selastic history 999999
    run -0 as_user selastic history 5 --state-dir "$TB_DIR/jobs/$TB_USER-$job"
    [[ $(id -u) == 0 ]] || skip "only root can read another user's"
    run -0 on_testbed selastic history "$job"
    run -0 on_testbed selastic history 999999 --user "$TB_USER"
    run -1 as_other selastic history 999999 --user "$TB_USER"
    # The pictures are root's, where only root may write.
    mkdir -m 0700 "$TB_WORK/closed"
    run -0 on_testbed selastic history 999999 --user "$TB_USER" --svg "$TB_WORK/closed/a.svg" --html "$TB_WORK/closed/a.html"
    [[ $(stat -c %u:%g "$TB_WORK/closed/a.svg" "$TB_WORK/closed/a.html") == $'0:0\n0:0' ]]
    run -1 on_testbed selastic history 999999 --user "no-such-user"
    [[ $output == *"--user=no-such-user: there is no such user"* ]]
}

@test "root does not read what a user's history leads to" {
    [[ $(id -u) == 0 ]] || skip "needs root"
    printf '{"generation": 1, "time": 1700000000, "kind": "secret"}\n' >"$TB_HOME/secret"
    chmod 0600 "$TB_HOME/secret"
    dir=$(state_directory 999998)
    as_user ln -s "$TB_HOME/secret" "$dir/history.jsonl"
    run -1 on_testbed selastic history 999998 --user "$TB_USER"
    [[ $output != *secret\ * ]]
    run -1 on_testbed selastic history 999998 --state-dir "$dir"
    [[ $output != *secret\ * ]]
    # Root has moved it to where its user cannot get.
    as_user rm "$dir/history.jsonl"
    as_user cp "$(state_directory 999999)/history.jsonl" "$dir"
    mkdir -m 0700 "$TB_HOME/moved"
    cp -a "$dir" "$TB_HOME/moved/job"
    run -0 on_testbed selastic history 999998 --state-dir "$TB_HOME/moved/job"
    as_user rm "$dir/history.jsonl"
    as_user mkfifo "$dir/history.jsonl"
    run -1 on_testbed selastic history 999998 --user "$TB_USER"
    [[ $output == *history.jsonl* ]]
}
