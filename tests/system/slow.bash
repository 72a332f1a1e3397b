# SPDX-License-Identifier: GPL-2.0-or-later
# Jobs whose extensions can be held at a moment of their start, by what may be slow in real life. Load after elastic.
# shellcheck shell=bash
#
#     slow_things                     once, in setup_file
#     hold WHAT [NAME]                before the extensions of the job of that name (train) come to it
#     job=$(slow_train NAME SIZES [SBATCH-OPTION...])
#     let_go [NAME]
#
# WHAT is srun (it has not asked for the extension's step yet) or agent (the step exists, elasticrun does not run and Slurm's signals
# are ignored). A file at-WHAT.JOB of the extension tells that it is there.

slow_things() {
    as_user mkdir "$TB_WORK/bin"
    slow_srun
    slow_agent
}

# First in the job's PATH.
slow_srun() {
    script bin/srun <<SH
#!/bin/bash
real=\$(PATH=\${PATH#*:} && command -v srun)
words=("\$@")
hold=$TB_WORK/hold.\${SLURM_JOB_NAME%+}
if [[ "\${words[-1]}" == --extension ]]; then
    case \$(cat "\$hold" 2>/dev/null) in
    srun)
        touch $TB_WORK/at-srun.\$SLURM_JOB_ID
        while [[ -e \$hold ]]; do sleep 0.1; done
        ;;
    agent) words[-2]=$TB_WORK/bin/slow-agent ;;
    esac
fi
exec "\$real" "\${words[@]}"
SH
}

slow_agent() {
    script bin/slow-agent <<SH
#!/bin/bash
trap '' TERM
touch $TB_WORK/at-agent.\$SLURM_JOB_ID
while [[ -e $TB_WORK/hold.\${SLURM_JOB_NAME%+} ]]; do sleep 0.1; done
exec "\$ELASTIC_RUN" "\$@"
SH
}

hold() { as_user sh -c "echo $1 >$TB_WORK/hold.${2:-train}"; }

let_go() { as_user rm "$TB_WORK/hold.${1:-train}"; }

slow_train() {
    submit -J "$1" --elastic="$2" --elastic-grow-delay=2 --exclusive -t 30 "${@:3}" --wrap "export PATH=$TB_WORK/bin:\$PATH
        srun elasticrun /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.2"
}
