/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf as slurmctld has it. */
#ifndef ELASTIC_JOB_SUBMIT_SITE_H
#define ELASTIC_JOB_SUBMIT_SITE_H

#include <time.h>

#include "lib/conf.h"

/* The configuration of the site, which belongs to this module. NULL with err if elastic.conf is
 * wrong; slurmctld's log then has one line about it (watch.h).
 *
 * configured is the time at which slurmctld has read its own configuration. The file is read again
 * when that time has changed: once after each start and each `scontrol reconfigure`. */
const struct conf *site_conf(time_t configured, time_t now, struct error *err);

void site_forget(void);

#endif
