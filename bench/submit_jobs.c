/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit_jobs COUNT ELASTIC PARTITION: submits so many jobs of one whole node, by libslurm,
 * which is quicker than sbatch. ELASTIC percent of them, evenly spread, are elastic ones of 1:4
 * nodes, as spank_elastic would mark them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/slurm_compat.h"

static int submit(char *partition, int elastic)
{
    char sizes[] = "_SLURM_SPANK_OPTION_elastic_elastic=1:4", *job_environment[] = {sizes, NULL};
    char *environment[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    char script[] = "#!/bin/sh\ntrue\n", output[] = "/dev/null", directory[] = "/";
    submit_response_msg_t *answer = NULL;
    job_desc_msg_t desc;
    int rc;

    slurm_init_job_desc_msg(&desc);
    desc.user_id = getuid();
    desc.group_id = getgid();
    desc.work_dir = directory;
    desc.std_out = output;
    desc.script = script;
    desc.environment = environment;
    desc.env_size = 1;
    desc.min_nodes = desc.max_nodes = 1;
    desc.min_cpus = 1;
    desc.shared = 0;
    desc.time_limit = 600;
    desc.partition = partition;
    desc.spank_job_env = job_environment;
    desc.spank_job_env_size = elastic ? 1 : 0;
    rc = slurm_submit_batch_job(&desc, &answer);
    slurm_free_submit_response_response_msg(answer);
    return rc;
}

int main(int argc, char **argv)
{
    int count, percent, elastic = 0;

    if (argc != 4) {
        fprintf(stderr, "Usage: submit_jobs COUNT ELASTIC PARTITION\n");
        return 2;
    }
    count = atoi(argv[1]);
    percent = atoi(argv[2]);
    slurm_init(NULL);
    for (int i = 0; i < count; i++) {
        int now = (int)((long)(i + 1) * percent / 100);

        if (submit(argv[3], now > elastic) != SLURM_SUCCESS) {
            fprintf(stderr, "submit_jobs: %s\n", slurm_strerror(errno));
            return 1;
        }
        elastic = now;
    }
    return 0;
}
