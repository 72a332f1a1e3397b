/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spank_elastic.so: what the plugin does in each context in which Slurm loads it.
 *
 * The plugin handles options and environment only. It does nothing in slurmd, prolog and epilog:
 * scripts/prolog.d and scripts/epilog.d do the work on the node. */
#include <stdbool.h>

#include <slurm/spank.h>

#include "spank/client.h"
#include "spank/options.h"
#include "spank/stepd.h"

SPANK_PLUGIN(elastic, 1)

static bool in_client(void)
{
    return spank_context() == S_CTX_ALLOCATOR || spank_context() == S_CTX_LOCAL;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (in_client()) {
        client_forget_outer_job(sp);
        return options_register(sp);
    }
    /* slurmstepd complains about each option of a job that it does not know. */
    return spank_context() == S_CTX_REMOTE ? options_register(sp) : ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return in_client() ? client_send_policy(sp) : ESPANK_SUCCESS;
}

/* In slurmstepd, with the rights of the job's user. */
int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    stepd_set_environment(sp);
    return ESPANK_SUCCESS;
}
