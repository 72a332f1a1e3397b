/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration of a site in the words of Slurm's own programs (slurm_client.h). Their form is
 * the same in all versions of Slurm, that of slurm_conf_t is not. */
#include <stdio.h>
#include <stdlib.h>

#include "common/program.h"
#include "common/slurm_client.h"

#define TEXT_MAX   ((size_t)16 << 20)
#define TIMEOUT_MS 15000

char *slurm_client_show(enum slurm_show what, const char *user, struct error *err)
{
    char name[128] = "";
    const char *const argvs[][8] = {
        [SLURM_SHOW_CONFIG] = {"scontrol", "show", "config", NULL},
        [SLURM_SHOW_PARTITIONS] = {"scontrol", "--oneliner", "--all", "show", "partition", NULL},
        [SLURM_SHOW_QOS] = {"sacctmgr", "-nP", "show", "qos", "format=name,gracetime,preemptmode",
                            NULL},
        [SLURM_SHOW_ASSOCIATION] = {"sacctmgr", "-nP", "show", "assoc", name,
                                    "format=account,maxjobs,maxsubmit,grpjobs,grpsubmit", NULL},
    };
    char *text;

    if (what == SLURM_SHOW_ASSOCIATION)
        snprintf(name, sizeof(name), "user=%s", user);
    if (program_output((char *const *)argvs[what], TIMEOUT_MS, TEXT_MAX, &text, err) == 0)
        return text;
    free(text);
    return NULL;
}
