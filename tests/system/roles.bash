# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For tests of jobs of several programs (doc/user/roles.md).

roles_up() { cp "$TREE"/tests/system/{light,replica}.py "$TB_WORK/"; }

# job_file NAME <<EOF: the roles besides the coordinator, with PROGRAM for the test's program.
job_file() {
    {
        printf 'roles:\n'
        printf '  coordinator: {leads: yes, run: [PROGRAM, lead], shield: no}\n'
        cat
    } | sed "s|PROGRAM|/usr/bin/python3, -S, $TB_WORK/replica.py|" >"$TB_WORK/$1"
    chmod 0644 "$TB_WORK/$1"
}

# run_roles FILE NODES: prints the job.
run_roles() {
    submit -N"$2" --exclusive -t 60 --wrap "
        export LOG=$TB_WORK/log-\$SLURM_JOB_ID
        mkdir \$LOG
        srun elasticrun --roles=$TB_WORK/$1"
}

# submit_roles FILE NODES SBATCH-OPTION...: the same with the plugins; prints the job.
submit_roles() {
    submit --elastic-roles="$TB_WORK/$1" -N"$2" --exclusive -t 60 "${@:3}" --wrap "
        export LOG=$TB_WORK/log-\$SLURM_JOB_ID
        mkdir \$LOG
        srun elasticrun"
}

roles_json() { as_user selastic roles "$1" --json 2>/dev/null; }

# ready_are JOB ROLE COUNT
ready_are() {
    [[ $(roles_json "$1" | json_value "[r['ready'] for r in s['roles'] if r['name'] == '$2'][0]" 2>/dev/null) == "$3" ]]
}

# endpoints JOB: lines "NAME ADDRESS PORT" of the replicas that are ready.
endpoints() {
    as_user selastic replicas "$1" --json | json_value "'\n'.join(f'{r[\"name\"]} {t[\"address\"]} {t[\"ports\"][\"http\"]}'
        for r in s['replicas'] if r['state'] == 'ready' for t in r['tasks'] if 'http' in t['ports'])"
}

each_answers() {
    local name address port
    while read -r name address port; do
        [[ $(as_user curl -sf "http://$address:$port/") == "$name.0."* ]] || return 1
    done < <(endpoints "$1")
}

# pid_of JOB NAME: of the newest start of the replica's first task.
pid_of() {
    local file
    file=$(find "$TB_WORK/log-$1" -name "$2.0.*" ! -name '*.*.*.*' | sort -t. -k3n | tail -n 1)
    cat "$file"
}
