/* SPDX-License-Identifier: GPL-2.0-or-later */
/* select/cons_tres, and all calls that go straight to it (stock.h).
 *
 * It is loaded by dlopen and not linked: it reads its own symbol plugin_id, which our symbol would
 * replace. Where slurmctld has loaded it as well, as it does with all select plugins that it finds,
 * both are the same copy in memory. */
#include "config.h"

#include "src/common/slurm_xlator.h"

#include "src/common/plugin.h"
#include "src/slurmctld/slurmctld.h"

#include "plugins/select/stock.h"

/* In the order of slurm_select_ops_t. */
static const char *symbols[] = {
    "plugin_id",
    "select_p_state_save",
    "select_p_state_restore",
    "select_p_job_init",
    "select_p_node_init",
    "select_p_job_test",
    "select_p_job_begin",
    "select_p_job_ready",
    "select_p_job_expand",
    "select_p_job_resized",
    "select_p_job_signal",
    "select_p_job_fini",
    "select_p_job_suspend",
    "select_p_job_resume",
    "select_p_step_pick_nodes",
    "select_p_step_start",
    "select_p_step_finish",
    "select_p_select_nodeinfo_pack",
    "select_p_select_nodeinfo_unpack",
    "select_p_select_nodeinfo_alloc",
    "select_p_select_nodeinfo_free",
    "select_p_select_nodeinfo_set_all",
    "select_p_select_nodeinfo_set",
    "select_p_select_nodeinfo_get",
    "select_p_select_jobinfo_alloc",
    "select_p_select_jobinfo_free",
    "select_p_select_jobinfo_set",
    "select_p_select_jobinfo_get",
    "select_p_select_jobinfo_copy",
    "select_p_select_jobinfo_pack",
    "select_p_select_jobinfo_unpack",
    "select_p_select_jobinfo_sprint",
    "select_p_select_jobinfo_xstrdup",
    "select_p_get_info_from_plugin",
    "select_p_update_node_config",
    "select_p_reconfigure",
    "select_p_resv_test",
};

_Static_assert(sizeof(symbols) == sizeof(slurm_select_ops_t),
               "this Slurm's select plugins have other functions");

slurm_select_ops_t stock;
static plugin_context_t *context;

int stock_load(void)
{
    context = plugin_context_create("select", "select/cons_tres", (void **)&stock, symbols,
                                    sizeof(symbols));
    return context != NULL ? SLURM_SUCCESS : SLURM_ERROR;
}

void stock_unload(void)
{
    if (context != NULL)
        plugin_context_destroy(context);
    context = NULL;
}

/* select_p_NAME(PARAMETERS), which does no more than to call the one of select/cons_tres. */
#define STRAIGHT(type, name, field, parameters, arguments)                                         \
    extern type select_p_##name parameters;                                                        \
    type select_p_##name parameters                                                                \
    {                                                                                              \
        return stock.field arguments;                                                              \
    }

STRAIGHT(int, state_save, state_save, (char *dir), (dir))
STRAIGHT(int, state_restore, state_restore, (char *dir), (dir))
STRAIGHT(int, job_ready, job_ready, (job_record_t * job), (job))
STRAIGHT(int, job_signal, job_signal, (job_record_t * job, int signal), (job, signal))
STRAIGHT(int, job_suspend, job_suspend, (job_record_t * job, bool indefinite), (job, indefinite))
STRAIGHT(int, job_resume, job_resume, (job_record_t * job, bool indefinite), (job, indefinite))
STRAIGHT(bitstr_t *, step_pick_nodes, step_pick_nodes,
         (job_record_t * job, select_jobinfo_t *info, uint32_t count, bitstr_t **available),
         (job, info, count, available))
STRAIGHT(int, step_start, step_start, (step_record_t * step), (step))
STRAIGHT(int, step_finish, step_finish, (step_record_t * step, bool killing), (step, killing))
STRAIGHT(int, select_nodeinfo_pack, nodeinfo_pack,
         (select_nodeinfo_t * info, buf_t *buffer, uint16_t version), (info, buffer, version))
STRAIGHT(int, select_nodeinfo_unpack, nodeinfo_unpack,
         (select_nodeinfo_t * *info, buf_t *buffer, uint16_t version), (info, buffer, version))
STRAIGHT(select_nodeinfo_t *, select_nodeinfo_alloc, nodeinfo_alloc, (void), ())
STRAIGHT(int, select_nodeinfo_free, nodeinfo_free, (select_nodeinfo_t * info), (info))
STRAIGHT(int, select_nodeinfo_set_all, nodeinfo_set_all, (void), ())
STRAIGHT(int, select_nodeinfo_set, nodeinfo_set, (job_record_t * job), (job))
STRAIGHT(int, select_nodeinfo_get, nodeinfo_get,
         (select_nodeinfo_t * info, enum select_nodedata_type type, enum node_states state,
          void *data),
         (info, type, state, data))
STRAIGHT(select_jobinfo_t *, select_jobinfo_alloc, jobinfo_alloc, (void), ())
STRAIGHT(int, select_jobinfo_free, jobinfo_free, (select_jobinfo_t * info), (info))
STRAIGHT(int, select_jobinfo_set, jobinfo_set,
         (select_jobinfo_t * info, enum select_jobdata_type type, void *data), (info, type, data))
STRAIGHT(int, select_jobinfo_get, jobinfo_get,
         (select_jobinfo_t * info, enum select_jobdata_type type, void *data), (info, type, data))
STRAIGHT(select_jobinfo_t *, select_jobinfo_copy, jobinfo_copy, (select_jobinfo_t * info), (info))
STRAIGHT(int, select_jobinfo_pack, jobinfo_pack,
         (select_jobinfo_t * info, buf_t *buffer, uint16_t version), (info, buffer, version))
STRAIGHT(int, select_jobinfo_unpack, jobinfo_unpack,
         (select_jobinfo_t * *info, buf_t *buffer, uint16_t version), (info, buffer, version))
STRAIGHT(char *, select_jobinfo_sprint, jobinfo_sprint,
         (select_jobinfo_t * info, char *text, size_t size, int mode), (info, text, size, mode))
STRAIGHT(char *, select_jobinfo_xstrdup, jobinfo_xstrdup, (select_jobinfo_t * info, int mode),
         (info, mode))
STRAIGHT(int, get_info_from_plugin, get_info_from_plugin,
         (enum select_plugindata_info type, job_record_t *job, void *data), (type, job, data))
STRAIGHT(int, update_node_config, update_node_config, (int index), (index))
STRAIGHT(bitstr_t *, resv_test, resv_test,
         (resv_desc_msg_t * reservation, uint32_t count, bitstr_t *available, bitstr_t **cores),
         (reservation, count, available, cores))
