/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Submit a job past every plugin of the client: forge [NAME=VALUE]... sends these as job control
 * environment. Prints the job's id, or on stderr why not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/slurm_compat.h"

int main(int argc, char **argv)
{
    job_desc_msg_t desc;
    submit_response_msg_t *answer = NULL;
    char *environment[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    char script[] = "#!/bin/sh\ntrue\n", output[] = "/dev/null", directory[] = "/";

    slurm_init(NULL);
    slurm_init_job_desc_msg(&desc);
    desc.user_id = getuid();
    desc.group_id = getgid();
    desc.work_dir = directory;
    desc.std_out = output;
    desc.script = script;
    desc.environment = environment;
    desc.env_size = 1;
    desc.min_cpus = 1;
    desc.spank_job_env = argv + 1;
    desc.spank_job_env_size = (uint32_t)(argc - 1);
    if (slurm_submit_batch_job(&desc, &answer) != SLURM_SUCCESS) {
        fprintf(stderr, "forge: error: %s\n", slurm_strerror(errno));
        return 1;
    }
    printf("%u\n", SLURM_COMPAT_JOB_OF(answer));
    return 0;
}
