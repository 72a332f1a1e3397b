#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Metrics of one job and of a site, for curl, promtool and Prometheus; the web page; a worker that
# is slow; scripts around training. Most of the time is waiting for the slow one.
# Takes 125 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 4
    cp "$TREE/tests/system/slow_rank.py" "$TB_WORK/"
    job=$(submit -J '<b id="taken">x</b>' -N2 --exclusive --elastic=2:3 -t 60 --wrap "srun elasticrun $PYTHON $TB_WORK/slow_rank.py 100000")
    export job
    wait_for 60 size_is "$job" 3
}

teardown_file() {
    cancel_all
    testbed_down
}

teardown() {
    local each
    [[ ! ${session:-} ]] || browser close "$session" || true
    for each in proxy exporter prometheus chromedriver; do
        [[ ! -s $TB_WORK/$each.pid ]] || as_user kill "$(<"$TB_WORK/$each.pid")" || true
        rm -f "$TB_WORK/$each.pid"
    done
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out "$TB_HOME"/*.err
}

# begin NAME COMMAND...: runs it in the background as the user. Its first line is an URL.
begin() {
    rm -f "$TB_HOME/$1.out" # of the test before
    as_user sh -c "echo \$\$ >$1.pid; exec ${*:2}" >"$TB_HOME/$1.out" 2>"$TB_HOME/$1.err" 3>&- &
    wait_for 30 test -s "$TB_HOME/$1.out"
    read -r url <"$TB_HOME/$1.out"
}

value_of() { curl -s "$url" | sed -nE "s/^$1 //p"; }
is_more() { [[ $(as_user curl -s "$url/metrics" | sed -nE "s/^$1 //p") -gt $2 ]]; }
succeeds() { [[ $(value_of elastic_exporter_success) == 1 ]]; }

@test "selastic proxy serves a job without roles" {
    begin proxy selastic proxy "$job"
    wait_for 20 is_more "elastic_job_steps_total\{jobid=\"$job\"\}" 10
    wait_for 20 is_more "elastic_job_pause_seconds_count\{jobid=\"$job\"\}" 0 # until the new world has made a step
    as_user curl -s "$url/metrics" >"$BATS_TEST_TMPDIR/text"
    for line in "elastic_job_nodes{jobid=\"$job\"} 3" "elastic_job_workers{jobid=\"$job\"} 3" \
        "elastic_job_worlds_total{jobid=\"$job\",kind=\"grow\"} 1" \
        "elastic_job_pause_seconds_count{jobid=\"$job\"} 1" \
        "elastic_job_extensions{jobid=\"$job\",state=\"joined\"} 1" \
        "elastic_job_pool_nodes{jobid=\"$job\",pool=\"elastic\",state=\"ready\"} 1" \
        "elastic_job_slurm_requests_total{jobid=\"$job\",by=\"sbatch\"} 1"; do
        grep -qxF "$line" "$BATS_TEST_TMPDIR/text" || { cat "$BATS_TEST_TMPDIR/text"; return 1; }
    done
    as_user curl -s -D - -H 'Accept: application/openmetrics-text' "$url/metrics" >"$BATS_TEST_TMPDIR/open"
    grep -qi '^content-type: application/openmetrics-text; version=1.0.0' "$BATS_TEST_TMPDIR/open"
    [[ $(tail -n 1 "$BATS_TEST_TMPDIR/open") == '# EOF' ]]
    run -0 as_user curl -s -w '%{http_code}' "$url/v1/roles"
    [[ $output == *"job $job has no roles"*409 ]]
    if command -v promtool >/dev/null; then
        promtool check metrics <"$BATS_TEST_TMPDIR/text"
    fi
}

sockets_of_proxy() { find "/proc/$(<"$TB_WORK/proxy.pid")/fd" -lname 'socket:*' | wc -l; }

@test "selastic proxy serves a page of the jobs, and what it is made of" {
    begin proxy selastic proxy
    # Nobody else comes in, nothing is changed, and no foreign name leads here.
    ((UID)) || { run -0 curl -s -o /dev/null -w '%{http_code}' "$url/" || true; [[ $status != 0 && $output == 000 ]]; }
    run -0 as_user curl -s -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "$url/jobs"
    [[ $output == 403 ]]
    # Another web page holds no connection: what the browser says of it is looked at.
    for header in 'Origin: http://evil.example' 'Origin: null' 'Sec-Fetch-Site: cross-site' 'Sec-Fetch-Site: same-site'; do
        run -0 as_user curl -s -m 60 -o /dev/null -w '%{http_code} %header{connection}' -H "$header" "$url/jobs?after=1"
        [[ $output == '403 close' ]]
        run -0 as_user curl -s -o /dev/null -w '%{http_code}' -H "$header" "$url/"
        [[ $output == 200 ]]
    done
    for header in "Origin: $url" 'Sec-Fetch-Site: same-origin' 'Sec-Fetch-Site: none'; do
        run -0 as_user curl -s -o /dev/null -w '%{http_code}' -H "$header" "$url/jobs"
        [[ $output == 200 ]]
    done
    run -0 as_user curl -s -o /dev/null -w '%{http_code}' -X POST "$url/jobs"
    [[ $output == 405 ]]
    run -0 as_user curl -s -o /dev/null -w '%{http_code}' "$url/../etc/passwd" --path-as-is
    [[ $output == 404 ]]
    run -0 as_user curl -s -o /dev/null -w '%{http_code}' "$url/jobs/0"
    [[ $output == 404 ]]
    run -0 as_user curl -s -o /dev/null -w '%{http_code}' "$url/jobs/99999999"
    [[ $output == 502 ]]
    as_user curl -s -D - -o /dev/null "$url/" | tr -d '\r' >"$BATS_TEST_TMPDIR/head"
    grep -qx "Content-Security-Policy: default-src 'none'; script-src 'self'; .*frame-ancestors 'none'" "$BATS_TEST_TMPDIR/head"
    as_user curl -s "$url/jobs/$job/picture" | grep -q '^<svg'
    # An answer that is known is waited for until it is another one: the job makes steps.
    as_user curl -s -D - "$url/jobs/$job" >"$BATS_TEST_TMPDIR/first"
    version=$(sed -nE 's/^ETag: "([0-9]+)".*/\1/p' "$BATS_TEST_TMPDIR/first")
    run -0 as_user curl -s -m 100 -D - -o /dev/null "$url/jobs/$job?after=$version"
    [[ $output =~ ETag:\ \"([0-9]+)\" ]] && ((BASH_REMATCH[1] > version))
    # Nothing is kept of a client that leaves while it waits: 25 s would be its time.
    sockets=$(sockets_of_proxy)
    run -28 as_user curl -s -m 1 "$url/jobs/99999999?after=1"
    wait_for 30 eval '[[ $(sockets_of_proxy) == "$sockets" ]]'
}

@test "selastic exporter tells of the site, and of Slurm that is away" {
    answers_once() { on_testbed selastic exporter --once >"$BATS_TEST_TMPDIR/text" && grep -qxF 'elastic_exporter_jobs{answer="shown"} 1' "$BATS_TEST_TMPDIR/text"; }
    wait_for 20 answers_once
    for line in 'elastic_site_jobs{state="running"} 1' 'elastic_site_nodes{kind="base"} 2' \
        'elastic_site_nodes{kind="extension"} 1' 'elastic_exporter_jobs{answer="shown"} 1' \
        "elastic_job_nodes{jobid=\"$job\",user=\"$TB_USER\"} 3"; do
        grep -qxF "$line" "$BATS_TEST_TMPDIR/text" || { cat "$BATS_TEST_TMPDIR/text"; return 1; }
    done
    ! command -v promtool >/dev/null || promtool check metrics <"$BATS_TEST_TMPDIR/text"

    port=$(free_port)
    begin exporter selastic exporter --port="$port" --interval=5
    [[ $url == http://127.0.0.1:$port/metrics ]]
    wait_for 20 succeeds
    [[ $(value_of "elastic_job_nodes\{jobid=\"$job\",user=\"$TB_USER\"\}") == 3 ]]
    run -0 curl -s -o /dev/null -w '%{http_code}' "${url%metrics}"
    [[ $output == 404 ]]
    run -0 curl -s -o /dev/null -w '%{http_code}' -X POST -d x "$url"
    [[ $output == 405 ]]
    # The port is taken.
    run -1 as_user timeout 100 selastic exporter --port="$port"
    [[ $output == *'cannot listen at 127.0.0.1, port '"$port"* ]]

    prometheus=$(command -v prometheus || true)
    if [[ -n $prometheus ]]; then
        cat >"$TB_WORK/prometheus.yml" <<YAML
global: {scrape_interval: 1s}
scrape_configs: [{job_name: elastic, static_configs: [{targets: ["127.0.0.1:$port"]}]}]
YAML
        chmod 0644 "$TB_WORK/prometheus.yml"
        prometheus_port=$(free_port)
        as_user sh -c "echo \$\$ >prometheus.pid; exec $prometheus --config.file=$TB_WORK/prometheus.yml \
            --storage.tsdb.path=$TB_WORK/prometheus --web.listen-address=127.0.0.1:$prometheus_port" \
            >"$TB_HOME/prometheus.err" 2>&1 3>&- &
        wait_for 30 knows "elastic_job_nodes{jobid=\"$job\"}" 3
        wait_for 30 knows 'elastic_site_nodes{kind="extension"}' 1
    fi
}

# knows QUERY VALUE: so Prometheus says.
knows() {
    [[ $(curl -s -G --data-urlencode "query=$1" "http://127.0.0.1:$prometheus_port/api/v1/query" |
        json_value 's["data"]["result"][0]["value"][1]' 2>/dev/null) == "$2" ]]
}

is_slow() { show_json "$job" | json_value '*[(r["rank"], r["node"]) for r in s["stragglers"]]' | grep -qx "(1, 'n2')"; }

@test "a slow worker is named" {
    wait_for 150 is_slow
    wait_for 30 grep -q "rank 1 on n2 needs 2.5 times as long for a step as the others" "$TB_WORK/$job.out"
    run -0 as_user selastic show "$job"
    [[ $output == *"Slow "*"rank 1 on n2 needs 2.5 times as long for a step as the others: its"* ]]
    run -0 as_user selastic history "$job"
    [[ $output == *"generation 2: rank 1 on n2 needs 2.5 times as long"* ]]
    on_testbed selastic exporter --once |
        grep -qE "^elastic_job_straggler_ratio\{jobid=\"$job\",user=\"$TB_USER\",node=\"n2\",rank=\"1\",cause=\"[a-z]+\"\} 2.[45]"
}

browser() { /usr/bin/python3 -S "$TREE/tests/system/browser.py" "$@"; }
in_page() { browser script "$session" "return $1" | json_value 's["value"]'; }

# texts SELECTOR: of all elements of the page that it selects, a line each; has_text SELECTOR TEXT
texts() { in_page "[...document.querySelectorAll('$1')].map(e => e.textContent).join('\\n')"; }
has_text() { texts "$1" | grep -qxF -e "$2"; }
has_no_text() { ! has_text "$@"; }
fact() { in_page "[...document.querySelectorAll('dt')].find(e => e.textContent === '$1').nextSibling.textContent"; }
picture_is_there() { [[ $(in_page 'document.querySelector("#picture").checkVisibility()') == True ]]; }
steps_are_more() { (($(fact Steps) > $1)); }

# fields LIST KEY...: of each object in a list of the answer on stdin.
fields() { json_value '"\n".join("–" if o[k] in (None, "") else str(o[k]) for o in s["'"$1"'"] for k in "'"${*:2}"'".split())'; }

open_page() {
    local page
    begin proxy selastic proxy
    page=$url
    begin chromedriver chromedriver --port=0
    wait_for 30 says "$TB_HOME/chromedriver.out" 'successfully on port'
    session=$(browser open "http://127.0.0.1:$(sed -nE 's/.*successfully on port ([0-9]+).*/\1/p' "$TB_HOME/chromedriver.out")" "$page/")
}

@test "Chromium shows the page: all jobs, one of them, and what becomes of them" {
    local other
    command -v chromedriver >/dev/null || skip "Debian's package chromium-driver is not installed"
    open_page
    wait_for 20 has_text '#jobs td' "$job"
    diff <(texts '#jobs td') <(as_user selastic list --json | fields jobs job name state size sizes pending why)
    # The job's name is text, whatever it looks like.
    has_text '#jobs td' '<b id="taken">x</b>'
    [[ $(in_page 'document.querySelector("#taken")') == None ]]

    browser click "$session" "a[href='#$job']"
    wait_for 20 has_text '#nodes td' n3
    show_json "$job" >"$BATS_TEST_TMPDIR/show"
    diff <(texts '#nodes td') <(fields members node job role pool slots state <"$BATS_TEST_TMPDIR/show")
    [[ $(texts h2) == "Job $job.0 (<b id=\"taken\">x</b>)" ]]
    [[ $(fact 'Size') == '3 nodes, 3 workers; allowed 2:3' ]]
    [[ $(fact 'Why this size') == "$(json_value 's["why_size"]' <"$BATS_TEST_TMPDIR/show")" ]]
    [[ $(fact 'Why not more') == "$(json_value 's["why_not_more"]' <"$BATS_TEST_TMPDIR/show")" ]]
    [[ $(fact 'Slow') == 'rank 1 on n2: '* ]]
    wait_for 20 picture_is_there
    [[ $(in_page 'document.querySelector("#picture").naturalWidth') -gt 700 ]]

    # Without being loaded anew, it follows: steps of the job, a job that is new, and one that has gone.
    in_page 'window.mark = "kept"'
    wait_for 20 steps_are_more "$(fact Steps)"
    if has_plugin job_submit_elastic; then # without it Slurm does not say of a job that waits that it is elastic
        other=$(submit -H -N1 --elastic=1:2 -J 'an & other' --wrap true)
        wait_for 20 has_text '#jobs td' 'an & other'
        as_user scancel "$other"
        wait_for 20 has_no_text '#jobs td' 'an & other'
    fi

    # A job that does not run has nothing to show. Who leaves it leaves no request behind: a browser has
    # six connections.
    other=$(submit -H -N1 --elastic=1:2 --wrap true)
    ! has_plugin job_submit_elastic || wait_for 20 has_text '#jobs td' "$other"
    [[ -z $(browser errors "$session") ]]
    in_page '(() => { window.asked = []; const real = fetch;
        fetch = (path, how) => (asked.push([path, how.signal]), real(path, how)); })()'
    if has_plugin job_submit_elastic; then
        browser click "$session" "a[href='#$other']"
    else # who knows its address gets there
        in_page "location.hash = '$other'"
    fi
    wait_for 20 has_text '#news' "job $other does not run, or does not answer"
    browser click "$session" "a[href='#$job']"
    wait_for 20 picture_is_there
    [[ $(in_page "asked.filter(([path, signal]) => path.startsWith('jobs/$other') && signal.aborted).length") -ge 1 ]]
    wait_for 20 eval '[[ $(texts "#news") == "as of "* ]]'
    as_user scancel "$other"
    [[ $(in_page 'window.mark') == kept ]]

    # A script of somebody else does not run in it.
    [[ $(in_page '(() => { const s = document.createElement("script"); s.textContent = "window.taken = 1";
        document.body.append(s); return window.taken ?? null; })()') == None ]]

    as_user kill "$(<"$TB_WORK/proxy.pid")"
    wait_for 20 has_text '#news' 'selastic proxy does not answer'
}

# shellcheck disable=SC2030,SC2031
@test "a script before training that fails is a failure, with its reason" {
    cancel_all
    wait_for 60 no_jobs
    job=$(submit -N1 --exclusive --elastic=1:1 -t 10 --wrap "srun elasticrun --max-restarts=0 --pre-train-script=/bin/false $PYTHON slow_rank.py 1")
    wait_for 60 job_ended "$job"
    [[ $(job_state "$job") == FAILED ]]
    grep -q -- '--pre-train-script /bin/false ended with exit code 1' "$TB_WORK/$job.out"
}

# shellcheck disable=SC2030,SC2031
@test "scripts around training run once for a node and world, with their arguments" {
    # shellcheck disable=SC2016 # of the script
    around=$(script around.sh <<'SH'
#!/bin/sh
echo "$ELASTIC_GENERATION $SLURMD_NODENAME $RANK $# $*" >>"around-$1"
SH
    )
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    job=$(submit -N1 --exclusive --elastic=1:2 --elastic-grow=ask -t 10 --wrap "srun elasticrun --nproc-per-node=2 \
        --pre-train-script=$around --pre-train-args=\"pre 'two words'\" --post-train-script=$around --post-train-args=post \
        $PYTHON $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.1")
    wait_for 60 steps_exceed "$job" 2
    as_user selastic resize "$job" 2
    wait_for 60 steps_made_by "$job" 2
    as_user selastic resize "$job" 1
    wait_for 60 steps_made_by "$job" 3
    enough "$job"
    sort "$TB_WORK/around-pre" "$TB_WORK/around-post"
    read -r first second < <(history_json "$job" | json_value '*s["generations"][1]["nodes"]')
    diff <(sort "$TB_WORK/around-pre") <(printf '%s 2 pre two words\n' "1 $first 0" "2 $first 0" "2 $second 2" "3 $first 0")
    diff <(sort "$TB_WORK/around-post") <(printf '%s 1 post\n' "1 $first 0" "2 $first 0" "2 $second 2" "3 $first 0")
}

# shellcheck disable=SC2030,SC2031
@test "a script after training that fails is a failure, too" {
    job=$(submit -N1 --exclusive --elastic=1:1 -t 10 --wrap "srun elasticrun --max-restarts=0 --post-train-script=/bin/false $PYTHON slow_rank.py 1")
    wait_for 60 job_ended "$job"
    [[ $(job_state "$job") == FAILED ]]
    grep -q -- '--post-train-script /bin/false ended with exit code 1' "$TB_WORK/$job.out"
}
