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
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;   /* as libslurm's own state, of the whole process */
static char *cluster_name; /* asked for once */

void slurm_client_enter(void)
{
    pthread_mutex_lock(&mutex);
    if (!initialised)
        slurm_init(NULL);
    initialised = true;
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

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
static int load_switches(struct slurm_switch **list, int *count, struct error *err)
{
    topo_info_response_msg_t *msg = NULL;

    if (slurm_load_topo(&msg) != SLURM_SUCCESS)
        return slurm_client_failed(err, "tell its topology");
    *list = calloc((size_t)msg->record_count + 1, sizeof(**list));
    for (uint32_t i = 0; *list != NULL && i < msg->record_count; i++) {
        const topo_info_t *info = &msg->topo_array[i];

        (*list)[(*count)++] = (struct slurm_switch){
            .name = strdup(info->name != NULL ? info->name : ""),
            .level = info->level,
            .nodes = slurm_client_copy(info->nodes),
            .switches = slurm_client_copy(info->switches),
        };
    }
    slurm_free_topo_info_msg(msg);
    return *list != NULL ? 0 : error_set(err, "out of memory");
}
#else
/* Since 23.11 the answer is one of several kinds that only Slurm's own programs can read. */
static int load_switches(struct slurm_switch **list, int *count, struct error *err)
{
    (void)list;
    (void)count;
    return error_set(err, "Slurm %s tells its topology to its own programs only",
                     SLURM_VERSION_STRING);
}
#endif

int slurm_client_switches(struct slurm_switch **list, int *count, struct error *err)
{
    int rc;

    *list = NULL;
    *count = 0;
    slurm_client_enter();
    rc = load_switches(list, count, err);
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
