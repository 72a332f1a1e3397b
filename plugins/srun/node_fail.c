/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-node-fail: tell the srun of a step that a node is lost, as slurmctld would do.
 *
 *     elastic-node-fail HOST PORT JOB STEP NODES
 *
 * slurmctld tells srun so when it takes the node for down. srun then expects nothing from the node
 * any more. Without this, srun waits for a task whose slurmstepd is gone for as long as the job may
 * last. And if the node is back before Slurm calls it down, slurmctld asks srun about the step that
 * is missing there. srun then finds its connection reset, and ends the whole step, whatever
 * --no-kill says.
 *
 * srun listens to slurmctld, root and its own user. Exit status 0: srun has taken the message (srun
 * sends no answer to messages of this kind); 1: it has not; 2: wrong usage.
 *
 * This program is built from the source of the same Slurm that it speaks to, as the plugins are:
 * the form of the message is not stable. */
#include "config.h"

#include "slurm/slurm.h"
#include "slurm/slurm_errno.h"
#include "src/common/slurm_protocol_api.h"
#include "src/common/slurm_protocol_defs.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LIMIT 30 /* seconds, for srun can be stopped */

static bool read_number(const char *text, unsigned long max, unsigned long *number)
{
    char *end;

    *number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && *number <= max;
}

int main(int argc, char **argv)
{
    srun_node_fail_msg_t fail = {.step_id.step_het_comp = NO_VAL};
    unsigned long port, job, step;
    slurm_msg_t msg;

    if (argc != 6 || !read_number(argv[2], UINT16_MAX, &port) ||
        !read_number(argv[3], UINT32_MAX, &job) || !read_number(argv[4], UINT32_MAX, &step)) {
        fprintf(stderr, "usage: elastic-node-fail HOST PORT JOB STEP NODES\n");
        return 2;
    }
    alarm(LIMIT);
    slurm_init(NULL);
    fail.step_id.job_id = (uint32_t)job;
    fail.step_id.step_id = (uint32_t)step;
    fail.nodelist = argv[5];
    slurm_msg_t_init(&msg);
    slurm_msg_set_r_uid(&msg, getuid());
    msg.msg_type = SRUN_NODE_FAIL;
    msg.data = &fail;
    slurm_set_addr(&msg.address, (uint16_t)port, argv[1]);
    if (slurm_send_only_node_msg(&msg) == SLURM_SUCCESS)
        return 0;
    fprintf(stderr, "elastic-node-fail: srun at %s:%s: %s\n", argv[1], argv[2],
            slurm_strerror(errno));
    return 1;
}
