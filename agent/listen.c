/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a leader listens (listen.h). */
#include "agent/listen.h"

struct link_server_options listen_options(const struct conf *conf, uint32_t job, uint32_t restarts,
                                          const char *state_dir, uid_t slurm_user)
{
    return (struct link_server_options){
        .job_id = job,
        .restarts = restarts,
        .munge_socket = conf->munge_socket,
        .slurm_user = slurm_user,
        .port_first = conf->port_first,
        .port_last = conf->port_last,
        .state_dir = state_dir,
    };
}
