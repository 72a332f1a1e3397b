/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection to slurmctld that all calls share, the site's configuration, and its switches
 * (slurm_client.h).
 *
 * - libslurm keeps its configuration and its state in globals: it was made for programs with one
 *   thread. One mutex serialises all calls, so that any worker thread may make them.
 * - A missing or broken slurm.conf ends the process in libslurm itself ("fatal: ..."): libslurm has
 *   no other way to fail there. */
#include "common/slurm_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;   /* as libslurm's own state, of the whole process */
static char *cluster_name; /* asked for once */
static _Atomic int64_t calls;

void slurm_client_enter(void)
{
    pthread_mutex_lock(&mutex);
    if (!initialised)
        slurm_init(NULL);
    initialised = true;
    calls++;
}

int64_t slurm_client_calls(void)
{
    return calls;
}

void slurm_client_leave(void)
{
    pthread_mutex_unlock(&mutex);
}

int slurm_client_failed(struct error *err, const char *what)
{
    return error_set(err, "Slurm cannot %s: %s", what, slurm_strerror(errno));
}

char *slurm_client_copy(const char *text)
{
    return text != NULL && text[0] != '\0' ? strdup(text) : NULL;
}

/* ---- the cluster ----------------------------------------------------------------------------- */

/* slurm_user may be NULL. */
static int load_site(uid_t *slurm_user, struct error *err)
{
    slurm_conf_t *conf = NULL;

    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return slurm_client_failed(err, "tell its configuration");
    if (slurm_user != NULL)
        *slurm_user = conf->slurm_user_id;
    if (cluster_name == NULL)
        cluster_name = slurm_client_copy(conf->cluster_name);
    slurm_free_ctl_conf(conf);
    return 0;
}

int slurm_client_site(uid_t *slurm_user, char **cluster, struct error *err)
{
    int result;

    *cluster = NULL;
    slurm_client_enter();
    result = load_site(slurm_user, err);
    if (result == 0)
        *cluster = slurm_client_copy(cluster_name);
    slurm_client_leave();
    return result;
}

/* ---- the topology ---------------------------------------------------------------------------- */

int slurm_client_switches(struct slurm_switch **list, int *count, struct error *err)
{
    int rc;

    *list = NULL;
    *count = 0;
    slurm_client_enter();
    rc = slurm_compat_switches(list, count, err);
    slurm_client_leave();
    return rc;
}

void slurm_switch_free_list(struct slurm_switch *list, int count)
{
    for (int i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].nodes);
        free(list[i].switches);
    }
    free(list);
}
