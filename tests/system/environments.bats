#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Where and as what workers run: in a container, under names and paths that are not ASCII, without an environment.
# Takes 30 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 2
    WORK="$TB_WORK/Größe 1"
    export WORK
    mkdir "$WORK"
    cp "$TREE"/examples/container/*.{sh,py} "$WORK/"
    chown -R "$TB_USER" "$WORK"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

needs_containers() {
    as_user bwrap --tmpfs / --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 \
        --dev /dev --proc /proc /usr/bin/true || skip "bubblewrap cannot make namespaces here"
}

says() { grep -q -- "$1" "$TB_WORK/$job.out" || { cat "$TB_WORK/$job.out" && false; }; }

show_says() { as_user selastic show "$job" | tee "$TB_WORK/shown" | grep -q -- "$1"; }

@test "a worker in a container has what it needs of the node, on nodes that join as well, whatever its job is called" {
    needs_containers
    job=$(submit --elastic=1:2 --elastic-grow-delay=0 -t 30 --exclusive --job-name='Größe & Maß' \
        --chdir="$WORK" "$WORK/job.sh")
    wait_for 40 size_is "$job" 2
    show_says '(Größe & Maß)' || { cat "$TB_WORK/shown" && false; }
    show_says "elastic.conf *$TB_DIR/etc/elastic.conf" || { cat "$TB_WORK/shown" && false; }
    [[ $(as_user squeue -h -o %j) == *'Größe & Maß+'* ]]
    wait_for 20 grep -q 'rank 1 of 2 on .*: 0 files in /dev/shm' "$TB_WORK/$job.out"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    run ! grep 'cannot be loaded\|not in the container\|No events' "$TB_WORK/$job.out"
}

@test "elasticrun in a container does not grow out of it, and says so" {
    needs_containers
    # Nodes have another /tmp. Then the testbed has a copy of the installation.
    installed=$TREE,
    [[ $TREE != /tmp/* ]] || installed=
    job=$(submit --elastic=1:2 --elastic-grow-delay=0 -t 30 --exclusive --chdir="$WORK" <<SH
#!/bin/bash
export ELASTIC_DEBUG=1 ELASTIC_BIND=$installed$TB_DIR,/run,/var,$TB_USER_HOME
srun "$WORK/bubblewrap.sh" / env PATH="\$PATH" elasticrun --pmix=no sleep 1800
SH
    )
    wait_for 40 show_says 'Why not more .*elasticrun runs in a container'
    wait_for 20 says 'cannot grow: elasticrun runs in a container'
    says "elasticrun: debug: n1: elastic.conf: $TB_DIR/etc/elastic.conf"
    [[ -z $(extensions_of "$job") ]]
}

# An environment named train, and a conda that activates it as the real one does: by functions of the shell.
fake_conda() {
    mkdir -p "$WORK/envs/train/bin"
    cat >"$WORK/conda" <<SH
#!/bin/bash
[[ \$* != 'shell.bash hook' ]] || cat <<'HOOK'
conda() {
    export CONDA_DEFAULT_ENV=\$2 CONDA_PREFIX="$WORK/envs/\$2" CONDA_SHLVL=1
    export PATH="\$CONDA_PREFIX/bin:\$PATH"
}
HOOK
SH
    printf '#!/bin/sh\nexec /usr/bin/python3 "$@"\n' >"$WORK/envs/train/bin/python"
    chmod 755 "$WORK/conda" "$WORK/envs/train/bin/python"
    cat >"$WORK/where.py" <<'PY'
import os, shutil, time
import slurm_elastic
slurm_elastic.init()
print(os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["CONDA_DEFAULT_ENV"], shutil.which("python"), flush=True)
while not slurm_elastic.elastic_event_detected():
    time.sleep(0.1)
PY
}

@test "what conda activates before srun holds for workers on nodes that join" {
    fake_conda
    job=$(submit --elastic=1:2 --elastic-grow-delay=0 -t 30 --exclusive --chdir="$WORK" <<SH
#!/bin/bash
eval "\$(./conda shell.bash hook)"
conda activate train
export PYTHONPATH="$prefix/share/slurm-elastic/python"
srun elasticrun python where.py
SH
    )
    wait_for 40 size_is "$job" 2
    wait_for 20 says "^1 2 train $WORK/envs/train/bin/python\$"
    as_user scancel "$job"
}

@test "srun --export=NONE is told how elasticrun is found" {
    run as_user srun -N1 -t 10 --export=NONE elasticrun true
    echo "$output"
    ((status != 0))
    [[ $output == *'this step has no PATH (--export=NONE)'*'srun --export=ALL elasticrun'* ]]
}
