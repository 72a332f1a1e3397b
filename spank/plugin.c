/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spank_elastic.so: which function does what, by the context that Slurm has loaded the plugin in.
 *
 * Only options and environment are dealt with here. In slurmd, and in prolog and epilog, there is
 * nothing to do: what has to be done on the node's side is in scripts/epilog.d. */
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
    /* slurmstepd would complain about each option of a job that it does not know. */
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
