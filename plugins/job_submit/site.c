/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf as slurmctld has it (site.h). */
#include "plugins/slurmctld.h"

#include "plugins/job_submit/site.h"

#include "common/conf_file.h"

/* Slurm passes no pointer of ours to a plugin. plugin.c lets in one call at a time. */
static struct conf *site;
static struct error problem;
/* The time of the configuration that site belongs to. 0: none. */
static time_t read_for;

static void reload(void)
{
    conf_destroy(site);
    problem.text[0] = '\0';
    site = conf_file_load(NULL, &problem);
}

const struct conf *site_conf(time_t configured, time_t now, struct error *err)
{
    if (configured != read_for) {
        reload();
        /* Slurm counts in seconds, and may be configured again in the same second. */
        read_for = now > configured ? configured : 0;
    }
    if (!site && err)
        *err = problem;
    return site;
}

void site_forget(void)
{
    conf_destroy(site);
    site = NULL;
    read_for = 0;
}
