/* SPDX-License-Identifier: GPL-2.0-or-later */
/* start_jobs COUNT NODES: starts and ends so many jobs of whole nodes on NODES (at least 8)
 * nodes, in which nothing runs, by libslurm: a base of 1:6 nodes, extensions of it, rigid jobs
 * beside them, and now and then one for which the extensions leave. Prints how many it has
 * started, after each round. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/slurm_compat.h"

#define PATIENCE 600 /* seconds for a job to start */
#define EVERY    10  /* rounds, in which one has a preemptor */

static int started;

/* A job with so many nodes, once it has them. option: as spank_elastic would mark it, NULL: a
 * rigid one. */
static uint32_t start(int nodes, char *partition, char *option, char *comment)
{
    char *options[] = {option, NULL}, directory[] = "/";
    char *environment[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    resource_allocation_response_msg_t *answer;
    job_desc_msg_t desc;
    uint32_t id;

    slurm_init_job_desc_msg(&desc);
    desc.user_id = getuid();
    desc.group_id = getgid();
    desc.work_dir = directory;
    desc.environment = environment;
    desc.env_size = 1;
    desc.min_nodes = desc.max_nodes = (uint32_t)nodes;
    desc.min_cpus = (uint32_t)nodes;
    desc.shared = 0;
    desc.time_limit = 60;
    desc.partition = partition;
    desc.comment = comment;
    desc.spank_job_env = options;
    desc.spank_job_env_size = option ? 1 : 0;
    answer = slurm_compat_allocate(&desc, PATIENCE);
    if (!answer) {
        fprintf(stderr, "start_jobs: %d nodes in %s: %s\n", nodes, partition,
                slurm_strerror(errno));
        exit(1);
    }
    id = SLURM_COMPAT_JOB_OF(answer);
    slurm_free_resource_allocation_response_msg(answer);
    started++;
    return id;
}

static uint32_t extend(uint32_t base, int nodes)
{
    char option[80], comment[80];

    snprintf(option, sizeof(option), "_SLURM_SPANK_OPTION_elastic_elastic_extend=%u", base);
    snprintf(comment, sizeof(comment), "elastic-extension-of=%u.0", base);
    return start(nodes, (char *)"elastic", option, comment);
}

static void round_of_jobs(int number, int nodes)
{
    char sizes[] = "_SLURM_SPANK_OPTION_elastic_elastic=1:6", batch[] = "batch";
    uint32_t jobs[6];
    int count = 0;

    jobs[count++] = start(1, batch, sizes, NULL);
    jobs[count++] = extend(jobs[0], 2);
    jobs[count++] = start(2, batch, NULL, NULL);
    jobs[count++] = extend(jobs[0], 1);
    jobs[count++] = start(1, batch, NULL, NULL);
    if (number % EVERY == 0)
        jobs[count++] = start(nodes - 4, batch, NULL, NULL);
    /* Those that have left for it are gone. */
    while (count > 0)
        slurm_compat_kill(jobs[--count], 9);
}

int main(int argc, char **argv)
{
    int count;

    if (argc != 3 || atoi(argv[2]) < 8) {
        fprintf(stderr, "Usage: start_jobs COUNT NODES\n");
        return 2;
    }
    count = atoi(argv[1]);
    slurm_init(NULL);
    for (int i = 0; started < count; i++) {
        round_of_jobs(i, atoi(argv[2]));
        printf("%d\n", started);
        fflush(stdout);
    }
    return 0;
}
