/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a leader, and who may lead after it, listens for agents. */
#ifndef ELASTIC_AGENT_LISTEN_H
#define ELASTIC_AGENT_LISTEN_H

#include <stdint.h>
#include <sys/types.h>

#include "common/link.h"
#include "lib/conf.h"

/* Of that run of the job. conf and state_dir, which may be NULL, must outlive what is returned. */
struct link_server_options listen_options(const struct conf *conf, uint32_t job, uint32_t restarts,
                                          const char *state_dir, uid_t slurm_user);

#endif
