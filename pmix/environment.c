/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment that the PMIx library starts with (environment.h). */
#include "pmix/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The library reads its settings from the environment. Settings that this process has inherited may
 * be those of another server. An entry may have no value, and unsetenv() would not find it. */
void environment_prepare(void)
{
    static const char *const settings[][2] = {
        /* Other modules lock memory that they share with clients: a client that is killed at the
         * wrong moment would stop the server. */
        {"PMIX_MCA_gds", "hash"},
        /* Our own; the library's syslog would write clients' lines as ours. */
        {"PMIX_MCA_plog", "default"},
        {"PMIX_MCA_psec", "native"},              /* accept.c checks who connects */
        {"PMIX_MCA_ptl_base_max_msg_size", "64"}, /* MiB; without limit otherwise */
        {"PMIX_MCA_prm", "default"},              /* the other module asks Slurm by itself */
        {"HWLOC_COMPONENTS", "-gl"},              /* asks an X server */
    };
    char **kept = environ;

    for (char **each = environ; *each != NULL; each++)
        if (strncmp(*each, "PMIX_", 5) != 0)
            *kept++ = *each;
    *kept = NULL;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        setenv(settings[i][0], settings[i][1], 1);
}
