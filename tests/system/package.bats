#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The Python package, installed by pip into a user's own virtual environment, and an elastic job in it.
# Takes 25 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 4
    patient
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    # A clone that is not the user's: pip writes nothing into it.
    mkdir -p "$TB_WORK/slurm-elastic/client"
    cp -R "$TREE/client/python" "$TB_WORK/slurm-elastic/client/"
    find "$TB_WORK/slurm-elastic" -name __pycache__ -prune -exec rm -r {} +
    chmod -R a+rX,a-w "$TB_WORK/slurm-elastic"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# The testbed offers the installed package in PYTHONPATH. Not here.
as_user_alone() { as_user env --unset=PYTHONPATH "$@"; }

# where_from PYTHON: the directory from which it imports the package.
where_from() { as_user_alone "$1" -c 'import os, slurm_elastic; print(os.path.dirname(slurm_elastic.__file__))'; }

@test "pip installs it into a virtual environment, from a clone and without a network" {
    run where_from /usr/bin/python3
    ((status != 0))
    as_user_alone /usr/bin/python3 -m venv --system-site-packages venv
    as_user_alone venv/bin/pip install --no-index --no-build-isolation ./slurm-elastic/client/python
    run -0 where_from venv/bin/python
    [[ $output == "$TB_WORK"/venv/lib/python3.*/site-packages/slurm_elastic ]]
    run -0 as_user_alone venv/bin/pip show slurm-elastic
    [[ $output == *"Version: "[0-9]*"Requires: "* ]]
    # Outside of an elastic job a script with it runs like any other.
    run -0 as_user_alone venv/bin/python -c \
        'import slurm_elastic as s; print(s.is_elastic(), s.elastic_event_detected(), s.ElasticSampler(5, 5).batch_size())'
    [[ $output == "False None 5" ]]
}

@test "the source archive of it makes a wheel, which needs nothing else" {
    as_user_alone env --chdir=slurm-elastic/client/python PYTHONDONTWRITEBYTECODE=1 \
        /usr/bin/python3 -c "import _build; _build.build_sdist('$TB_WORK')"
    as_user_alone venv/bin/pip wheel --quiet --no-index --no-build-isolation --no-deps \
        "$(basename "$TB_WORK"/slurm?elastic-*.tar.gz)"
    as_user_alone /usr/bin/python3 -m venv --without-pip bare
    as_user_alone venv/bin/pip --python bare/bin/python install --no-index \
        "$(basename "$TB_WORK"/slurm_elastic-*-py3-none-any.whl)"
    run -0 where_from bare/bin/python
    [[ $output == "$TB_WORK"/bare/lib/python3.*/site-packages/slurm_elastic ]]
}

@test "an elastic job runs with the Python of that environment, on its first nodes and on those that join" {
    script job.sh <<'SH'
#!/bin/bash
. venv/bin/activate
srun elasticrun python worker.py log-$SLURM_JOB_ID 100000 0.2
SH
    cat >"$TB_WORK/worker.py" <<'PY'
import os, runpy, sys
import slurm_elastic
with open("workers", "a") as file:
    print(os.environ["ELASTIC_NODES"], sys.prefix, slurm_elastic.__file__, slurm_elastic.init(), file=file)
runpy.run_path("steps.py", run_name="__main__")
PY
    job=$(answer=$(as_user_alone sbatch --parsable -N2 --elastic=2:4 --elastic-grow-delay=1 --exclusive -t 10 \
        --output="$TB_WORK/%j.out" job.sh) && printf '%s\n' "${answer%%;*}")
    wait_for 60 size_is "$job" 4
    wait_for 30 steps_made_by "$job" "$(generation_of "$job")"
    as_user selastic resize "$job" 3
    wait_for 60 size_is "$job" 3
    wait_for 30 steps_made_by "$job" "$(generation_of "$job")"
    cat "$TB_WORK/$job.out" "$TB_WORK/workers"
    [[ $(sizes_of "$job") == 2,*4,3 ]]
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
    grep -q '^4 ' "$TB_WORK/workers"
    run -1 grep -vE "^[234] $TB_WORK/venv $TB_WORK/venv/lib/python3\.[0-9]+/site-packages/slurm_elastic/__init__\.py True\$" "$TB_WORK/workers"
}
