/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf as slurmctld has it. */
#ifndef ELASTIC_JOB_SUBMIT_SITE_H
#define ELASTIC_JOB_SUBMIT_SITE_H

#include <time.h>

#include "lib/conf.h"

/* The site's configuration; NULL with err where elastic.conf is broken. Belongs to this module.
 *
 * The file is read when configured, the time at which slurmctld has read its own configuration, is
 * not the one that it was last read for: once after each start and each `scontrol reconfigure`. A
 * broken file is one line in slurmctld's log. */
const struct conf *site_conf(time_t configured, time_t now, struct error *err);

void site_forget(void);

#endif
