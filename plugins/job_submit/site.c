/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf as slurmctld has it (site.h). */
#include "config.h"

#include "src/common/slurm_xlator.h"

#include "src/common/log.h"

#include "plugins/job_submit/site.h"

#include "common/conf_file.h"

/* Slurm's plugin calls have no cookie. They are made one at a time, under a lock of Slurm's. */
static struct conf *site;
static struct error problem;
static time_t read_at;

static void reload(void)
{
    conf_destroy(site);
    site = conf_file_load(NULL, &problem);
    if (!site)
        error("job_submit/elastic: %s; elastic jobs are refused until it is repaired and "
              "'scontrol reconfigure' is run", problem.text);
}

const struct conf *site_conf(time_t configured, struct error *err)
{
    if (!read_at || configured != read_at) {
        reload();
        read_at = configured;
    }
    if (!site && err)
        *err = problem;
    return site;
}

void site_forget(void)
{
    conf_destroy(site);
    site = NULL;
    read_at = 0;
}
