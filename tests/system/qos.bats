#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A site with accounting, where QOS preempts QOS: extensions have the pool's, and leave for jobs of the others.
# Takes 75 s

# shellcheck disable=SC2030,SC2031,SC2034
load helpers
load elastic

GRACE=300

setup_file() {
    has_database || return 0
    testbed_up --nodes 4 --grace "$GRACE" --dbd
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    # Else Slurm tells users nothing of others: no leader who is an operator, nobody whose a job is.
    sed -i '/^PrivateData=/d' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    on_testbed sacctmgr -i --quiet add user games Account=testbed AdminLevel=Operator
}

teardown_file() { testbed_down; }

setup() { need_database; }

teardown() { ! has_database || cancel_all; }

@test "extensions get the pool's QOS, leave for a job of a higher one, and are accounted as what they are" {
    job=$(train 2:4 100000 0.2)
    wait_for 60 size_is "$job" 4
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    extensions=$(extensions_of "$job")
    for extension in $extensions; do
        [[ $(job_field "$extension" QOS) == elastic ]]
    done
    [[ $(job_field "$job" QOS) == normal ]]
    # In the partition of the extensions itself, so that only the QOS counts.
    rival=$(submit -p elastic --qos high -N1 --exclusive -t 5 --wrap 'sleep 2')
    wait_for 120 job_is "$rival" RUNNING COMPLETED
    waited_less "$rival" $((GRACE / 3))
    wait_for 60 job_is "$rival" COMPLETED
    wait_for 60 size_is "$job" 4
    goes_on "$job"
    wait_for 60 is_counted_while_it_runs "$job"
    reasons=$(history_json "$job" | json_value '[g["reason"] for g in s["generations"] if g["kind"] == "shrink"]')
    echo "it shrank: $reasons"
    [[ $reasons == *preempted* ]]
    an_operator_may_look "$job"
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
    steps_were_made_once "$job"
    # One left in order, and Slurm's records are one job after another as for any others.
    wait_for 60 accounted
    adds_up "$job"
}

# As scontrol: an operator of the accounting database may, another user may not.
an_operator_may_look() {
    as_other games selastic show "$1" | grep -q "^Job $1.0 .* of $TB_USER: running, 4 nodes"
    run as_other games selastic resize "$1" 9
    [[ $output == *'9 nodes: allowed are 2:4'* ]]
    run as_other games selastic resize "$1" 1
    [[ $output == *'error: 1 node: allowed are 2:4'* ]]
    run as_other nobody selastic show "$1"
    ((status == 1)) && [[ $output == *"not permitted: job $1 belongs to $TB_USER" ]]
}

# In some versions of Slurm slurmdbd has no mark of it yet.
is_counted_while_it_runs() {
    local sum
    sum=$(as_user selastic usage "$1" --json)
    echo "$sum"
    [[ $(json_value '[(j["state"], j["runs"], j["most_nodes"], [p["pool"] for p in j["pools"]]) for j in s["jobs"]]' <<<"$sum") == "[('RUNNING', 1, 4, ['base', 'elastic'])]" ]]
}

as_other() { on_testbed setpriv --reuid="$1" --regid=nogroup --clear-groups -- "${@:2}"; }

# The sums of selastic are those of sacct.
adds_up() {
    local sum seconds records mark=AdminComment
    # It is job_submit/elastic that writes where no user can.
    has_plugin job_submit_elastic || mark=Comment
    sum=$(as_user selastic usage "$1" --json)
    echo "$sum"
    records=$(as_user sacct -DXnP -S now-1days -o "JobIDRaw,$mark,ElapsedRaw,NNodes")
    echo "$records"
    seconds=$(awk -F'|' -v job="$1" '
        $1 == job || $2 ~ "^elastic-extension-of=" job "[.]" { seconds += $3 * $4 } END { print seconds }' <<<"$records")
    ((seconds > 0))
    [[ $(json_value "[abs(j['node_hours'] * 3600 - $seconds) < 5 and j['runs'] == 1 and j['extensions'] >= 2
        and j['pools'][0]['pool'] == 'base' and 'elastic' in [p['pool'] for p in j['pools']] for j in s['jobs']]" <<<"$sum") == '[True]' ]]
    [[ $(as_user selastic usage "$1") == *$'\n'*" elastic "* ]]
    # A user whom the accounting knows: sacct 25.11 refuses others.
    run -1 as_user selastic usage "$1" --user games
    echo "$output"
    [[ $output == *"has no record of an elastic job $1"* ]]
    as_user selastic usage --svg "$TB_WORK/usage.svg" --title "<$1>"
    grep -q "data-job=\"$1\" data-nodes=\"2\" data-pool=\"base\"" "$TB_WORK/usage.svg"
}

accounted() {
    local records
    records=$(as_user sacct -nPX -u "$TB_USER" -o qos,partition,state)
    [[ $(grep -c '^elastic|elastic|COMPLETED' <<<"$records") -ge 2 && $(grep -c '^normal|batch|CANCELLED' <<<"$records") == 1 ]] &&
        [[ $(grep -c '^high|elastic|COMPLETED' <<<"$records") == 1 && $records != *FAILED* ]]
}

@test "a limit of a pool's QOS: the pool pauses with Slurm's reason, and the next pool is asked" {
    on_testbed sacctmgr -i --quiet add qos small GrpTRES=node=1 Preempt=
    on_testbed sacctmgr -i --quiet modify user "$TB_USER" set qos+=small
    sed -i '/^\[pool elastic\]/,/^$/s/^qos = .*/qos = small/' "$TB_DIR/etc/elastic.conf"
    on_testbed scontrol reconfigure # job_submit reads it then
    job=$(train 1:4 100000 0.2 -- -N1 --elastic-pool=elastic,spare)
    wait_for 60 size_is "$job" 4
    as_user selastic show "$job"
    [[ $(show_json "$job" | json_value "next(p['failure'] for p in s['pools'] if p['pool'] == 'elastic')") == *QOSGrpNodeLimit* ]]
    [[ $(show_json "$job" | json_value "next(p['ready'] for p in s['pools'] if p['pool'] == 'spare')") -ge 2 ]]
    sed -i '/^\[pool elastic\]/,/^$/s/^qos = .*/qos = elastic/' "$TB_DIR/etc/elastic.conf"
    on_testbed scontrol reconfigure
    enough "$job"
}

# ids: of the mistakes that selastic doctor tells the user, of QOS and of associations.
ids() {
    as_user env ELASTIC_CONF="$1" selastic doctor --json |
        json_value '" ".join(sorted(f["id"] for f in s["findings"] if "qos" in f["id"] or f["id"] in ("association", "job-comment")))'
}

@test "selastic doctor knows the QOS of pools, and the limits of the user" {
    cp "$TB_DIR/etc/elastic.conf" "$TB_WORK/site.conf"
    chmod 644 "$TB_WORK/site.conf"
    run -0 ids "$TB_WORK/site.conf"
    [[ -z $output ]]
    on_testbed sacctmgr -i --quiet modify qos elastic set GraceTime=0
    on_testbed sacctmgr -i --quiet modify user "$TB_USER" set MaxSubmitJobs=1
    printf '[pool other]\npartition = elastic\nqos = nowhere\n' >>"$TB_WORK/site.conf"
    run ids "$TB_WORK/site.conf"
    on_testbed sacctmgr -i --quiet modify qos elastic set GraceTime="$GRACE"
    on_testbed sacctmgr -i --quiet modify user "$TB_USER" set MaxSubmitJobs=-1
    echo "$output"
    [[ $output == *association* && $output == *pool-qos* && $output == *qos-grace* ]]
}

# It may make calls for the job's user, as scontrol lets it, but not become that user.
@test "an operator tells a service what to do, but gives it no program" {
    local file=$TB_WORK/serve.yaml service=q$$ # services outlive jobs and testbeds
    as_user mkdir "$TB_WORK/models"
    cat >"$file" <<YAML
service: $service
models: {repository: $TB_WORK/models, every: 1h}
roles:
  server: {kind: shards, shards: 1, run: [sleep, "1000"], ports: [http], ready: told, capacity: 10M}
YAML
    chmod 0644 "$file"
    job=$(submit -N1 --exclusive -t 5 --wrap "srun elasticrun --roles=$file")
    wait_for 60 as_other games selastic apply "$job"
    run -1 as_other games selastic apply "$job" --file "$file"
    as_user scancel "$job"
    wait_for 30 job_is "$job" CANCELLED
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$service"
    [[ $output == *"not permitted: a program is given by the user of the job, or by root" ]]
}

@test "mails of an elastic job say its sizes, its extensions send none, and others are passed on as they are" {
    selastic=$(take_testbed_env && command -v selastic)
    keep_mails "${selastic%/bin/*}/libexec/slurm-elastic/elastic-mail"
    job=$(train 1:2 100000 0.2 -- -N1 --elastic-grow=ask --mail-type=ALL --mail-user=ada)
    # The accounting counts whole seconds: the job shall have had one node for some, and both for some.
    wait_for 60 steps_exceed "$job" 15
    as_user selastic resize "$job" 2
    wait_for 60 size_is "$job" 2
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    sleep 3
    enough "$job"
    rigid=$(submit -N1 --mail-type=END --mail-user=bob --wrap true)
    wait_for 60 has_mail "$rigid" Ended
    wait_for 100 has_mail "$job" Ended
    run -0 has_mail "$job" Ended
    echo "$output"
    [[ ${lines[0]} == *", COMPLETED, ExitCode 0, elastic: 1 to 2 nodes" && ${lines[1]} == "to ada" ]]
    [[ $output == *NODE-HOURS*$'\n'*" base "*$'\n'*" elastic "* ]]
    run -0 has_mail "$rigid" Ended
    [[ ${#lines[@]} == 2 && ${lines[0]} == *", COMPLETED, ExitCode 0" && ${lines[1]} == "to bob" ]]
    [[ $(mailing_jobs) == "$job $rigid" ]]
}

@test "a mail is sent though selastic fails, hangs or is not there" {
    local bin=$TB_HOME/bin
    mkdir -p "$bin/libexec" "$bin/bin"
    cp "$TREE/scripts/elastic-mail" "$bin/libexec/"
    sed -i 's/^LIMIT=.*/LIMIT=1/; s/^TRIES=.*/TRIES=1/' "$bin/libexec/elastic-mail"
    printf '#!/bin/sh\necho "$@"\ncat\n' >"$bin/mail"
    chmod 755 "$bin/mail"
    for broken in 'exit 1' 'sleep 100' 'echo "  \"most_nodes\":\"3 4\","' ''; do
        rm -f "$bin/bin/selastic"
        [[ -z $broken ]] || printf '#!/bin/sh\n%s\n' "$broken" | install -m 755 /dev/stdin "$bin/bin/selastic"
        run -0 env SLURM_JOB_ID=1 SLURM_JOB_USER=ada SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_MAIL_TYPE=Ended "$bin/libexec/elastic-mail" "$bin/mail" -s 'a subject' ada </dev/null
        [[ $output == "-s a subject ada" ]]
    done
    # It is asked again, but not until slurmctld has lost its patience with the mail.
    sed -i "s/^TRIES=.*/TRIES=10/; s/^ALL=.*/ALL=2/" "$bin/libexec/elastic-mail"
    printf '#!/bin/sh\necho >>"%s"\nsleep 100\n' "$bin/asked" | install -m 755 /dev/stdin "$bin/bin/selastic"
    run -0 env SLURM_JOB_ID=1 SLURM_JOB_USER=ada SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_MAIL_TYPE=Ended "$bin/libexec/elastic-mail" "$bin/mail" -s 'a subject' ada </dev/null
    [[ $output == "-s a subject ada" ]]
    (($(wc -l <"$bin/asked") <= 2))
    sed -i "s/^ALL=.*/ALL=10/" "$bin/libexec/elastic-mail"
    # Of a job that runs, the leader tells it.
    sed -i 's/^LIMIT=.*/LIMIT=60/' "$bin/libexec/elastic-mail"
    printf '#!/bin/sh\n[ $1 = show ] && echo "  \\"size\\":3," || echo "$1"\n' | install -m 755 /dev/stdin "$bin/bin/selastic"
    run -0 env SLURM_JOB_ID=1 SLURM_JOB_USER=ada SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_MAIL_TYPE='Reached 80% of time limit' \
        "$bin/libexec/elastic-mail" "$bin/mail" -s 'a subject' ada </dev/null
    [[ $output == $'-s a subject, elastic: 3 nodes ada\nhistory' ]]
    # Who answers may be any program of the job's user: the memory of what asks has a limit.
    printf '#!/bin/sh\n[ "$(ulimit -d)" = 163840 ] && echo "  \\"size\\":3," || exit 1\n' | install -m 755 /dev/stdin "$bin/bin/selastic"
    reached() {
        run -0 env SLURM_JOB_ID=1 SLURM_JOB_USER=ada SPANK_ELASTIC_SIZES=1:2 SLURM_JOB_MAIL_TYPE='Reached 80% of time limit' \
            "$bin/libexec/elastic-mail" "$bin/mail" -s 'a subject' ada </dev/null
    }
    reached
    [[ ${lines[0]} == '-s a subject, elastic: 3 nodes ada' ]]
    # What it says may have any length, and mail(1) may take lines that begin with '~' for commands.
    printf '#!/bin/sh\n[ $1 = show ] && echo "  \\"size\\":3," && exit\nyes "~!true" | head -c 1000000\n' | install -m 755 /dev/stdin "$bin/bin/selastic"
    reached
    [[ ${lines[1]} == ' ~!true' && ${lines[-1]} == '... cut after 65536 bytes: the rest is in selastic history 1' ]]
    ! grep -q '^~' <<<"$output" || false
    # Where too many mails ask already, one more is passed on as it is.
    sed -i 's/^ATONCE=.*/ATONCE=0/' "$bin/libexec/elastic-mail"
    reached
    [[ $output == '-s a subject ada' ]]
    # It is called in another way than slurmctld does.
    run -0 "$bin/libexec/elastic-mail" "$bin/mail" x </dev/null
    [[ $output == x ]]
}
